"""A plan over events as they arrive: the same operators behind a feed for each stream.

engine.py    the operators under one clock
feeds.py     what has come of each stream, and what waits
start.py     a query that begins with what is stored
refusals.py  why a plan cannot run live
"""
