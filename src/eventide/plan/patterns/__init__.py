"""Row patterns.

nodes.py         the node of a pattern, with what it measures and where it goes on
tree.py          which rows follow one another, as it is written
program.py       the tree as a program that a person can read
automaton.py     the program as the matchers run it
skeleton.py      the rows that every match has
looking_back.py  how many rows before a match its expressions read
"""
