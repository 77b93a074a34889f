"""Aggregates of numbers and times over few periods, without Arrow on the way.

tree.py       the index of a segment as flat arrays, as far as it was visited
table.py      the segments of a snapshot, as the entries of one more node
columns.py    the columns of leaves that periods cut, decoded
totals.py     the summaries of periods, from these three
results.py    totals as partials, and as answers
"""
