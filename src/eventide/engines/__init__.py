"""Run a plan: here over history, here live, or on Spark. The same operators everywhere.

build.py    a plan becomes a pipeline of operators
slices.py   where a plan can be cut in time, so that the parts run side by side
match_slices.py  row patterns over a slice of time
history.py  a plan over stored events, in threads
live.py     a plan over events as they arrive
buckets.py  rows by bucket of keys, where they have to be spread
placement.py  where a plan would run, for `explain`
explained.py  the ways considered and what they took; explained_text.py says it
profiling.py  a replay that takes the time of every operator
calibrate.py  the weights of this machine, measured
rest.py     the ordinary SQL around our operators, by DuckDB
spark/      the same on Spark
"""
