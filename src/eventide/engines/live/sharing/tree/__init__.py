"""Many queries over the same streams as one tree of operators.

states.py      the queries of a tree, and what their templates remember
templates.py   how queries come and go
matching.py    which rows which queries take
uniting.py     how queries go on alone, and become one with others
stepping.py    the tree: steps, sizes, and states as they are written
"""
