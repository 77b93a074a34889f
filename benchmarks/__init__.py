"""How fast Eventide is, against named rivals, measured in one run: `make bench`.

    data.py      the events, the same for everybody
    setting.py   those events in every form a contestant reads: Arrow, store, Parquet, …
    ways.py      one way to get an answer: Eventide, DuckDB, Polars or Spark over one such form
    cases.py     what is asked, in each contestant's words, and which ratio has to hold
    errands.py   cases that are no query: live, append and scan, the first answer
    guard.py     both sides gave the same rows, or nothing is timed
    measure.py   warm up, then time all ways of a case in turn
    report.py    the table on the screen, and benchmarks/results.md

Reading it for the first time? Start at cases.py.
"""
