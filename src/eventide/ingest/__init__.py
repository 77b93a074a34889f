"""Bring events in: from frames, rows and files, checked against a schema.

coerce.py     tables, data frames and dicts become events of a schema
convert.py    one column to one type, losing nothing, or the first value that does not fit
files.py      read events from a file of any known format
columnar.py   Parquet and Arrow files
csv_text.py   CSV files, and which line of one is broken
json_lines.py JSON lines files, and which line of one is broken
compressed.py text files that may be compressed
ordering.py   put events that arrive out of order back into order of time
merging.py    merge streams, each in order of time, under one clock
"""
