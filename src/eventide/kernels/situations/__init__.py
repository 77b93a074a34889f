"""Situations, and searches for the matches of temporal patterns.

runs.py      where conditions begin and end to hold
periods.py   the relations of a list of periods to one
problem.py   input and output of a search
matching.py  go through the changes, and search from each
search.py    the matches of one run that changed
orders.py    which symbol to join next
"""
