"""Standing queries: how they are placed in a tree, what they read, and how they begin live.

build.py          their operators in a tree
choice.py         which plan is run
statistics.py     what is known of its streams; sampling.py: measured in stored events
reach.py          how far back an answer looks, so what has to be read
start.py          a live query that begins with what is stored
resume.py         a live query that goes on from a dumped state
explained.py      how a query runs, as text
"""
