"""From a query to rows: scans, lookups in indexes, aggregates.

scan.py       leaves of many segments and rows in memory as one sorted sequence
expiring.py   segments of which some events have expired
lookup.py     which leaves the secondary indexes rule out
aggregate.py  aggregates over periods, from the index
question.py   the aggregates that are asked for, and the partial columns that answer them
cuts.py       where time is cut into periods
periods.py    many periods at once: entries between cuts of time, and leaves that cuts go through
borders.py    the runs of rows of such leaves; leaf_sums.py: their sums
ends.py       the first and last events of a period
counted.py    the same for cuts at every n-th event
leaves.py     all leaves in order of time, overlapping ones merged
heads.py      facts from the heads of leaves, so that less of them is read
rows.py       rows by their numbers in order of time
hits.py       events that meet a condition
"""
