"""TPSTREAM, SITUATIONS and the relations of periods.

clause.py             the grammar of both clauses, and of a TPStream statement
tokens.py             their keywords among the tokens of SQL; pattern.py reads PATTERN
names.py              which situation each column belongs to
check.py              errors in a pattern; hints.py: what to write instead
plan.py               the plan nodes
period_relations.py   a OVERLAPS b; period_conditions.py: where it may stand
period_join.py        two tables joined by a relation become one input
"""
