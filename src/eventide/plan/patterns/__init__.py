"""Row patterns.

nodes.py         the node of a pattern, with its measures and where to go on after a match
tree.py          which rows follow one another, as written
program.py       the tree as a program that a person can read
automaton.py     the program as the matchers run it
cutting.py       whether its matches can be found slice by slice
skeleton.py      the rows that every match has
looking_back.py  how many rows before a match its expressions read
"""
