"""How fast Eventide is, against named rivals, measured in one run: `make bench`.

    data.py      the events, the same for everybody
    setting.py   those events in every form a contestant reads: Arrow, store, Parquet, …
    ways.py      one way to get an answer: Eventide, DuckDB, Polars or Spark over one such form
    cases.py     what is asked, in each contestant's words, and which ratio has to hold
    errands.py   cases that are no query: live, append and scan, the first answer
    guard.py     both sides gave the same rows, or nothing is timed
    measure.py   warm up, then time all ways of a case in turn
    report.py    the table on the screen, and the same as Markdown
    promises.py  the targets, and whether they are met
    pages.py     benchmarks/results.md, and a page for each section in benchmarks/results

Five kinds of question have a folder each, and `python -m benchmarks NAME` runs it: store, patterns,
index, situations, standing. They share

    race.py      check, time in turn, compare: a line of the table
    sensors.py   events in chunks: a hundred million do not fit into memory

`python -m benchmarks keys` has no rival: keys.py shows that live queries over a million keys that
come and go take as long, and remember as much, at the end as at the beginning.

Reading it for the first time? Start at cases.py.
"""
