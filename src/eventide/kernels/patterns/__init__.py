"""The searches for matches of row patterns.

tables.py      what all are given: the automaton, rows by key, rules
scan.py        conditions on single rows only: two passes over the rows, notes.py and walk.py
paths.py       values along the paths of such matches
search.py      conditions on the match itself: room for the search, and what it found
ground.py      what the searches share
preferred.py   the search for one match from each start row; ways_on.py: the next row of it
every.py       the search for all matches; node_sets.py: where a path can be; completion.py: its end
remembered.py  states of a search that are known to lead nowhere
code.py        conditions as instructions; machine.py runs them
registers.py   what they can see of a match; numbers.py: how they compare and calculate
entry.py       where searches meet that began at different rows
"""
