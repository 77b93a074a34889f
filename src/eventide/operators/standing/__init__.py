"""Operators of standing queries: rows come, and they go.

windows/  windows over streams: events become rows with an expiry
joins/    joins of windows, outer joins, ASOF joins
sets/     DISTINCT, UNION, EXCEPT, INTERSECT, EXISTS
groups/   GROUP BY
answer/   the answer: what is kept of it, and what of it is handed over
"""
