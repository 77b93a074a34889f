"""The steps a plan is made of, one operator a file: frozen configuration plus travelling state.

evaluate.py           expressions over the columns of a batch; functions_*.py are what they call
aggregate.py          the accumulator of a bound aggregate
filter_project.py     rows in, rows out, no state
window_aggregate.py   tumbling and hopping windows of time
count_windows.py      the same by number of events
sliding_aggregate.py  a frame for every event
order_rows.py         rows in the order of ORDER BY
period_join.py        two tables joined by the relation of their periods
columns.py, state.py  batches put together, keys numbered; between states and bytes

Row patterns:

match_rows.py         the operator: rows in, matches out, undecided rows kept; match_state.py is
                      what it remembers, match_found.py what the matchers take and give
match_report.py       the rows that come out
match_masks.py        conditions on single rows, as a bit of each row
match_conditions.py   conditions on the match, for the search; match_compiler.py, match_leaves.py,
                      match_registers.py, match_liveness.py and match_values.py are its parts
match_measures.py     what matches say; match_one_row.py and match_all_rows.py for each output
match_entry.py        where a slice of rows may begin to look for matches
"""
