"""Hand results over.

text.py     rows as a table in a terminal or a notebook
files.py    rows as CSV, JSON lines or Parquet
chart.py    what lives in time, drawn as SVG
"""
