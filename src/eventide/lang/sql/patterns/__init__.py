"""MATCH_RECOGNIZE.

clause.py   its parts; parser.py: its grammar; pattern.py reads PATTERN
names.py    which row of a match each column of DEFINE and MEASURES is taken from
check.py    errors in the clause; hints.py: what to write instead
plan.py     the plan node
"""
