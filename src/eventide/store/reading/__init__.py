"""From a question to rows: scans, lookups in indexes, aggregates.

scan.py       leaves of many segments and rows in memory as one sorted sequence
lookup.py     which leaves the secondary indexes rule out
aggregate.py  aggregates over spans of time, from the index
"""
