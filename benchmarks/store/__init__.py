"""The store: `python -m benchmarks store`.

setting.py  how many events, and the data sets that several cases read
cases.py    ingest, appends, scans, late events, conditions, size
answers.py  aggregates over ranges, and the first answer after a crash
child.py    the processes that those kill and start
paper.py    what the ChronicleDB paper measures
"""
