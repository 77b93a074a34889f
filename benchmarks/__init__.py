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

The store has cases of its own, `python -m benchmarks store`:

    sensors.py        its events, in chunks: a hundred million do not fit into memory
    store_setting.py  how many events, and the data sets that several cases read
    race.py           check, time in turn, compare: a line of the table
    store_cases.py    ingest, appends, scans, late events, conditions, size
    store_answers.py  aggregates over ranges, and the first answer after a crash
    store_child.py    the processes that those kill and start
    store_paper.py    what the ChronicleDB paper measures

So have patterns, `python -m benchmarks patterns`:

    pattern_data.py          their events: prices of 100 keys
    pattern_setting.py       those events in every form, and what the rivals made of them
    pattern_cases.py         what is asked, in each contestant's words, and how it is timed
    pattern_rivals.py        engines that know MATCH_RECOGNIZE, in environments of their own
    pattern_pandas_child.py  what pandas-match-recognize's process does
    pattern_flink_child.py   what PyFlink's process does

Patterns through the index have series of queries, `python -m benchmarks index`:

    index_data.py      their events: five attributes of growing noise, and a city's crimes
    index_queries.py   what is asked, drawn at random
    index_patterns.py  the chosen way against replay and against other choices
    index_report.py    their tables

Situations and temporal patterns too, `python -m benchmarks situations`:

    situation_data.py     their events: cars on an expressway, booleans that hold for a while
    situation_queries.py  what is asked: a pattern as a plan and as text
    situation_sql.py      the same in the SQL of DuckDB and Flink
    situation_scan.py     a rival in the manner of ISEQ, compiled
    situation_setting.py  the events in every form, and how Eventide is asked
    situation_cases.py    against rivals: drivers, four situations
    situation_windows.py  ever larger windows: against scans, and how much memory
    situation_child.py    a process whose memory is measured
    situation_streams.py  patterns of many situations, and booleans in which they occur
    situation_paper.py    latency
    situation_orders.py   orders of joining, adaptation
    situation_gains.py    how much sooner matches are certain, from theory alone
    situation_joins.py    on Spark, and joins by a relation
    situation_report.py   their table

`python -m benchmarks keys` has no rival: keys.py shows that live queries over a million keys that
come and go take as long, and remember as much, at the end as at the beginning.

Reading it for the first time? Start at cases.py.
"""
