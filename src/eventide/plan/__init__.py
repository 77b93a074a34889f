"""Turn a query into a checked, optimised plan. Decides everything, runs nothing.

expressions.py  what is computed for a row
tree.py         what a node says of itself, so that passes need not know its kind
nodes.py        the nodes that no folder below owns
functions.py    the functions an expression may call; signatures.py: their type rules
user_functions.py  those that users write in Python
aggregates.py   the aggregates a window may compute, with their types
types.py        how types mix, and which casts exist
constants.py    casts of constants; times.py reads and prints times and durations
failing.py      which expressions may fail for some values
bounds.py       whether the state of a live query is bounded, and what it keeps
bind.py         names become typed columns; bind_hints.py: hints where types do not fit
check.py        what must hold for every plan
meaning.py      when two plans are the same
explain.py      a plan as text; render.py does its expressions
events/         the rows of a query as events: their time and their order
passes/         rewrites, one a file, in the order of passes/__init__.py
windows/        windows of time and of events
patterns/       row patterns
situations/     situations and the relations of periods
standing/       standing queries
"""
