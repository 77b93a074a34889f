"""Operators that run many live queries as one.

windows.py      many time windows over the same rows
slices.py       partial results of slices, which windows share
partials.py     the partial results that aggregates need, each once
partial_log.py  rows of partial results, found by number
known_keys.py   numbers of keys that stay as long as they are needed
written.py      the written form of all that

predicate_index.py  which of many conditions are true on each event, with conditions/
"""
