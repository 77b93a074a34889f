"""Standing queries: how they are answered over history, live, and on Spark.

build.py          a plan becomes a tree of operators
reach.py          how far back an answer looks, so what has to be read
history.py        the answer over what is stored
live.py           the answer as events arrive, several streams under one clock
start.py          a live query that begins with what is stored
partitioning.py   by which keys the work can be distributed
explained.py      how a query runs, as text
"""
