"""Windows from the aggregates of the index.

index.py        windows of time; count_index.py: windows by count
calendar.py     aggregates over all of time, or by a unit of the calendar
calls.py        the aggregates to look up, or why the index cannot answer
costs.py        the cost, from the index and by replay
above.py        the operators above the windows
"""
