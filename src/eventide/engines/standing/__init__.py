"""Standing queries: how they are placed in a tree, and what they read.

build.py          their operators in a tree
choice.py         which plan is run
statistics.py     what is known of its streams; sampling.py: measured in stored events
reach.py          how far back an answer looks, so what has to be read
resume.py         a live query that goes on from a dumped state
explained.py      how a query runs, as text
"""
