"""Hand results over.

text.py      rows as a table in a terminal or a notebook
files.py     rows as CSV, JSON lines or Parquet
progress.py  how far long work has come
words.py     counts, times and sizes as people say them
"""
