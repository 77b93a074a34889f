"""What many live queries compute together.

slices.py    where slices begin, which rows belong to which, which windows end
queries.py   whose rows they are, and how many
nodes.py     a tree over slices: the few nodes that a window consists of
"""
