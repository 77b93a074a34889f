"""The searches for matches of row patterns.

tables.py      the input of all: the automaton, rows by key, rules
marks.py       comparisons of numbers as bits of each row
remainder.py   where each key stands, and what remains of it
scan.py        conditions on single rows only: two passes over the rows, notes.py and walk.py
paths.py       values along the paths of such matches
search.py      conditions on the match itself: room for the search, and its result
ground.py      shared by the searches
preferred.py   the search for one match from each start row; ways_on.py: the next row of it
every.py       the search for all matches; node_sets.py: where a path can be; completion.py: its end
remembered.py  states of a search that are known to fail
code.py        conditions as instructions; machine.py runs them
registers.py   what conditions can read of a match
kept.py        aggregates of a match that registers alone do not hold
entry.py       where searches meet that began at different rows
"""
