"""What many live queries compute together.

slices.py    where slices begin, which rows belong to which, which windows end
nodes.py     a tree over slices: the few nodes that a window consists of
"""
