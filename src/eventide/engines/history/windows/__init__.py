"""Windows from the aggregates of the index.

index.py        windows of time; count_index.py: windows by count
calls.py        what they ask of the index, or why it cannot answer
costs.py        what they take, from the index and by replay
above.py        the operators above them
"""
