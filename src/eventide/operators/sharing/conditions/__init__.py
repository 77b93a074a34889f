"""Conditions of the predicate index.

registering.py  conditions on their way into the index, and out of it
formulas.py     conditions → AND and OR over tests, without NOT
shapes.py       formulas without their constants → programs and needs
needs.py        what has to be true before a condition can be
segments.py     conditions with the structures that find them
columns.py      expressions over events, computed once a batch
words.py        values as words of 64 bits
texts.py        tests of texts, decided once for each distinct value
looked_for.py   the part that all texts have that pass a test
pattern_table.py  these parts, and the texts that have them
optional.py     templates whose constants may be left out
batches.py      conditions as arrays
apart.py        conditions that are evaluated alone, for they fail
"""
