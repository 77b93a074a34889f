"""Situations and temporal patterns.

derive.py       situations as rows, each when it is over
match.py        matches of temporal patterns
runs.py         situations of a batch of events, and their changes
search.py       matches among them; plan.py: input of the search
values.py       aggregates over the events of situations
report.py       the rows of matches
keys.py         the state, by key; state.py: the same as bytes
period_join.py  two tables joined by the relation of their periods
"""
