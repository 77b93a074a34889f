"""Inner loops: numpy and numba only, arrays in, arrays out, nothing raised.

compiled.py     how a kernel is compiled, and the types of its arrays; pieces.py: what it calls
grouping.py     rows to groups: which window and key a row belongs to
ordering.py     whether rows are sorted, and the order that sorts them
hashing.py      keys to numbers that are the same everywhere; fingerprints.py: to two at once
keys.py         rows by key; key_table.py: from a key to a number; key_entries.py: many at once
slabs.py        parts of one array, each with its owner; growing.py: arrays with room to spare
true_rows.py    which of many booleans are true
numbers.py      how numbers compare, and arithmetic that detects overflows; text_numbers.py: in text
aggregates/     sums, extremes, order statistics, sketches
algebra/        the search for events that follow each other
groups/         aggregates of groups whose rows come and go; panes/: of windows that slide
joins/          joins over windows, as of a time, and by the relation of periods
lifetimes/      rows that come and go: when they expire, and what follows from it
patterns/       the searches for matches of row patterns
situations/     situations, and the search for matches of temporal patterns
store/          encodings, filters and checks of the store
xml/            the search for tree patterns in XML documents
machine_code/   the machine code of kernels: kept on disk, shipped, compiled beforehand

Inputs are read-only views (`frozen`), outputs are writable: so a kernel is compiled once for each
type of value, and cannot change its inputs.
"""
