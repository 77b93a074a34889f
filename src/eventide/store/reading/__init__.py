"""From a question to rows: scans, lookups in indexes, aggregates.

scan.py       leaves of many segments and rows in memory as one sorted sequence
lookup.py     which leaves the secondary indexes rule out
aggregate.py  aggregates over spans of time, from the index
spans.py      many spans at once: entries between cuts of time, and leaves that cuts go through
counted.py    the same for cuts at every so many events
leaf_sums.py  what runs of rows of such leaves sum up to
leaves.py     all leaves in order of time, those that overlap as one
hits.py       events that meet a condition
"""
