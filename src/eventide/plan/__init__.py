"""Turn a query into a checked, optimised plan. Decides everything, runs nothing.

expressions.py  what is computed for a row
nodes.py        what is done with rows; situations.py has the parts of those about periods
patterns.py     which rows follow one another; program.py and automaton.py are what becomes
                of it, bounds.py says whether a live one can forget
periods.py      when the situations of a match were, beside what its pattern returns
time_order.py   whether rows follow time
functions.py    the functions an expression may call; signatures.py has their type rules
aggregates.py   the aggregates a window may compute, with their types
types.py        how types mix, and which casts exist
constants.py    casts of constants; times.py reads and prints times and durations
bind.py         names become typed columns
check.py        what must hold of every plan
passes/         rewrites, one a file, in the order of passes/__init__.py
explain.py      a plan as text; render.py does its expressions
"""
