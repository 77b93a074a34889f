"""Tuples that come and go: when they expire, and what follows from it.

calendar_queue.py    handles in order of expiry
expiring.py          tuples that expire: by a calendar, by searching a list, or not by themselves
tuple_operations.py  changes and expiries merged in order of time
emitted.py           the output of a kernel
successors.py        one living tuple for each value, and its successor
two_sides.py         tuples of two sides, counted by value; value_chains.py: their data structures
stream_windows.py    windows whose tuples go because of other tuples
first_rows.py        the first rows in some order
view.py              the rows of an answer
"""
