"""Answer a plan over what is stored: each block in the cheapest way.

answer.py      the entry point: one block, or a plan composed of several
composed.py    derived streams, blocks, then the SQL around them; rest.py hands that to DuckDB
choice.py      which way to answer a block; access.py: what a way is
weights.py     the cost of single steps
calibrate.py   measures it on this machine, with the queries of calibrate_queries.py
replay.py      every event through the operators, slices in threads
merged.py      the events of several scans and of windows, merged in order of time
ends.py        the first or last rows, from the leaves at that end
slices.py      where a plan can be cut in time
pruning.py     what conditions rule out before anything is read
profiling.py   a replay that times every operator
windows/       windows from the aggregates of the index
patterns/      row patterns only where the index leaves room for a match
situations/    temporal patterns in slices, and periods joined by relation
"""
