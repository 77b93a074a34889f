"""Aggregates over windows, and ranks within them.

by_time.py   tumbling and hopping windows by key; window_state.py: their state
by_count.py  the same by number of events
sessions.py  sessions by key
late.py      windows that take late events while they are open:
             late_by_time.py, late_sessions.py
frames.py    a frame for every event: OVER
ranks.py     the ranks of the rows of a window
"""
