"""From a question to rows: scans, lookups in indexes, aggregates.

scan.py       leaves of many segments and rows in memory as one sorted sequence
lookup.py     which leaves the secondary indexes rule out
aggregate.py  aggregates over periods, from the index
question.py   what is asked of the index, and the partial columns that answer it
cuts.py       where time is cut into periods
periods.py      many periods at once: entries between cuts of time, and leaves that cuts go through
borders.py    the runs of rows of such leaves; leaf_sums.py what runs sum up to
counted.py    the same for cuts at every so many events
leaves.py     all leaves in order of time, those that overlap as one
heads.py      what the heads of leaves tell, so that less of them is read
rows.py       rows by their numbers in order of time
hits.py       events that meet a condition
"""
