"""Replay stored events in order of time: at full speed, or paced by a clock.

calls.py     what a database offers to replay streams
run.py       the replay itself: steps, the clock, progress
pace.py      event time against a clock
queries.py   through live queries
events.py    the events as they are, merged
"""
