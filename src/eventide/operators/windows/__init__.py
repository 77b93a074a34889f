"""Aggregates over windows, and ranks within them.

by_time.py   tumbling and hopping windows by key
by_count.py  the same by number of events
sessions.py  sessions by key
frames.py    a frame for every event: OVER
ranks.py     the ranks of the rows of a window
"""
