"""Row patterns.

tree.py          which rows follow one another, as written
program.py       the tree as a program that a person can read
automaton.py     the program as the matchers run it
skeleton.py      the rows that every match has
bounds.py        whether the state of a live query is bounded, and what it keeps
looking_back.py  how many rows before a match its expressions read
"""
