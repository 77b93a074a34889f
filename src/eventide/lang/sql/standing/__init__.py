"""Queries over windows in square brackets.

clause.py       [RANGE 60 SECONDS] behind a stream, ISTREAM (…) around a query: the grammar
find.py         which queries are standing ones
plan.py         the plan of one; select.py: of a SELECT; check.py: errors in one
from_clause.py  the sources in FROM; join.py, outer.py, as_of.py: how they are joined
scope.py        what names mean
sets.py         UNION, EXCEPT, INTERSECT; exists.py: EXISTS and IN
"""
