"""A plan over events as they arrive: the same operators behind a feed for each stream.

engine.py        the operators under one clock
feeds.py         what has come of each stream, and what waits
silence.py       time without events, by a wall clock
late_windows.py  late events that windows take
start.py         a query that begins with what is stored
refusals.py      why a plan cannot run live
"""
