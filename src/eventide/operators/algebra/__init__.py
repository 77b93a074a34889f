"""NEXT and FOLD: events that wait, and the events that follow them.

follow.py    the operator
keyed.py     events by key, as those that may follow others are looked up
compiler.py  conditions and what chains carry → instructions for the kernel
words.py     values as words of 64 bits, and back
search.py    one search: what the kernel reads and writes
results.py   what a search has found, and the rows that it becomes
asked.py     functions that the kernel cannot compute: their values for the events that it asks for
waiting.py   events and chains that wait, by key
instants.py  AT INSTANT: aggregates over the events of an instant
"""
