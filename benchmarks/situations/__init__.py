"""Situations and temporal patterns: `python -m benchmarks situations`.

data.py     their events: cars on an expressway, booleans that hold for a while
queries.py  what is asked: a pattern as a plan and as text
sql.py      the same in the SQL of DuckDB and Flink
scan.py     a rival in the manner of ISEQ, compiled
setting.py  the events in every form, and how Eventide is asked
cases.py    against rivals: drivers, four situations
windows.py  ever larger windows: against scans, and how much memory
child.py    a process whose memory is measured
streams.py  patterns of many situations, and booleans in which they occur
paper.py    latency
orders.py   orders of joining, adaptation
gains.py    how much sooner matches are certain, from theory alone
joins.py    on Spark, and joins by a relation
report.py   their table
"""
