"""Standing queries: how they are answered over history, live, and on Spark.

build.py          a plan becomes a tree of operators
choice.py         which plan is run
statistics.py     what is known of its streams; sampling.py: measured in stored events
reach.py          how far back an answer looks, so what has to be read
history.py        the answer over what is stored
live.py           the answer as events arrive, several streams under one clock
feeds.py          the streams of a live query: what has come, what waits, what is late
start.py          a live query that begins with what is stored
resume.py         a live query that goes on from a dumped state
partitioning.py   by which keys the work can be distributed
explained.py      how a query runs, as text
"""
