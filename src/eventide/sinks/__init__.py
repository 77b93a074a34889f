"""Hand results over.

text.py         rows as a table in a terminal or a notebook
files.py        rows as CSV, JSON lines or Parquet
chart/          what lives in time, drawn as SVG; plan_picture/ draws how a query is answered,
                situation_picture/ situations and their matches as bars over time
page.py         one HTML page of text, charts and tables; page_style.py is its looks
progress.py     how far long work has come
words.py        counts, spans and sizes as people say them
"""
