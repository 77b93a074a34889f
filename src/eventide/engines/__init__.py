"""Run a plan: here over history, here live, or on Spark. The same operators everywhere.

build.py         a plan becomes a pipeline of operators
answer.py        a plan over what is stored: each block the cheapest way
choice.py        the ways to answer a block; access.py what a way is, weights.py what steps take
history.py       replay: every event through the operators, in threads
slices.py        where a plan can be cut in time, so that the parts run side by side
match_slices.py  row patterns over a slice of time; situation_slices.py temporal patterns, and
                 situation_text.py what `explain` says of them
window_index.py  windows of time from the index; count_index.py windows by count;
                 window_calls.py what they ask, window_costs.py what they take, above_windows.py
                 what runs above them
intervals/       row patterns from the index
pruning.py       what conditions rule out before anything is read
live.py          a plan over events as they arrive
buckets.py       rows by bucket of keys, where they have to be spread
joined.py        blocks whose periods are joined by relation; pairs.py joins while one reads
placement.py     where a plan would run, for `explain`
explained.py     the ways considered and what they took; explained_text.py says it, leaf_strip.py
                 has the leaves for its picture
profiling.py     a replay that takes the time of every operator
calibrate.py     the weights of this machine, measured by calibrate_queries.py
rest.py          the ordinary SQL around our operators, by DuckDB
spark/           the same on Spark
"""
