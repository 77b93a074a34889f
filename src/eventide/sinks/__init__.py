"""Hand results over.

text.py      rows as a table in a terminal or a notebook
files.py     rows as CSV, JSON lines or Parquet
progress.py  the progress of long work
words.py     counts, times and sizes as text
"""
