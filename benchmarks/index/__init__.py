"""Patterns and windows through the index: `python -m benchmarks index`.

data.py      their events: five attributes of growing noise, and a city's crimes
queries.py   what is asked, drawn at random
patterns.py  the chosen way against replay and against other choices
windows.py   windows over a week of events, replayed and from the index
report.py    their tables
"""
