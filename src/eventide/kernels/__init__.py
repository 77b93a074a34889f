"""Inner loops: numpy and numba only, arrays in, arrays out, nothing raised.

compiled.py     how a kernel is compiled, and the types of its arrays
groups.py       rows to groups: windows by key, keys in order
sums.py         exact integer and doubled float sums, by group and by frame
extremes.py     smallest, largest, first and last, by group and by frame
frames.py       which rows belong to the frame of a row, or to a hopping window
ordering.py     is it sorted, and the order that sorts it
hashing.py      keys to numbers that are the same everywhere
summaries.py    the aggregates of runs of values, in one pass
packing.py      numbers in as few bytes or bits as they need
bloom.py        filters that say where a value cannot be
correlation.py  how steadily values change
period_join.py  which periods have a relation to which

Row patterns, when every condition looks at single rows and when not:

match_tables.py      what both are given: the automaton, rows by key, rules
match_scan.py        matches in two passes over the rows
match_paths.py       values along the paths of matches
match_search.py      matches by searching: room and memory for it, and what it found
match_ground.py      what the two searches share
match_preferred.py   the search for one match from each start row
match_every.py       the search for all matches
match_remembered.py  states of a search that lead nowhere
match_code.py        conditions on the match so far, as instructions
match_machine.py     what runs them
match_registers.py   what they can see of a match
match_numbers.py     how they compare and calculate

Inputs are read-only views (`frozen`), outputs are writable: a kernel is then compiled once for
each type of value, and cannot change what it is given.
"""
