"""MATCH_RECOGNIZE: conditions, matches, measures.

match.py       the operator: rows in, matches out, undecided rows kept
state.py       its state, written_state.py: as bytes; arranged.py: kept and new rows by key
found.py       input and output of the matchers, and the error that one ended with
masks.py       conditions on single rows, as a bit of each row; row_tests.py: most of them at once
conditions.py  conditions on the match, for the search; compiler.py, aggregates.py, leaves.py,
               registers.py, liveness.py and values.py are its parts
measures.py    MEASURES; one_row.py and all_rows.py for each output
report.py      the rows of the output
entry.py       the row at which a slice may begin to look for matches
"""
