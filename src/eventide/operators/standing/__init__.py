"""Operators of standing queries: tuples come, and they go.

windows/  windows over streams: events become tuples with an expiry
joins/    joins of windows, outer joins, ASOF joins
sets/     DISTINCT, UNION, EXCEPT, INTERSECT, EXISTS
groups/   GROUP BY
answer/   the answer: the rows that are kept, and the changes that are reported
"""
