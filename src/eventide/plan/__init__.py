"""Turn a query into a checked, optimised plan. Decides everything, runs nothing.

expressions.py  what is computed for a row
functions.py    the functions an expression may call, with their types
aggregates.py   the aggregates a window may compute, with their types
nodes.py        what is done with rows
bind.py         names become typed columns
passes/         rewrites, one a file, in the order of passes/__init__.py
explain.py      a plan as text
"""
