"""Partial results of panes, for windows that slide.

panes.py    aggregates of groups, and the rows that result
entries.py  the partial results
lists.py    the panes of a group in order of expiry; ring.py: groups by their next expiry
waiting.py  panes until they expire
reading.py  aggregates computed from totals and panes
"""
