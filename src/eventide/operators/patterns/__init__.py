"""MATCH_RECOGNIZE: conditions, matches, measures.

match.py       the operator: rows in, matches out, undecided rows kept
state.py       what it remembers; found.py: what the matchers take and give
masks.py       conditions on single rows, as a bit of each row
conditions.py  conditions on the match, for the search; compiler.py, leaves.py, registers.py,
               liveness.py and values.py are its parts
measures.py    what matches say; one_row.py and all_rows.py for each output
report.py      the rows that come out
entry.py       where a slice of rows may begin to look for matches
"""
