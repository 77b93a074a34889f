"""Situations, and searches for the matches of temporal patterns.

runs.py      where conditions begin and end to hold
periods.py   how a list of periods lies to one
problem.py   what a search is given, and where it writes
matching.py  go through what changed, and search from it
search.py    the matches of one run that changed
orders.py    which symbol to join next
"""
