"""What users work with: databases, streams, results, live queries.

database.py    open a database, append events, ask, subscribe; sql() and tpstream() over tables
stream.py      one stream: append, look back, aggregate, keep it in shape
relation.py    rows by key that change in time
result.py      the rows of a query; matches.py: matches of temporal patterns, which draw themselves
builder.py     row patterns in Python, as query text; steps.py: the parts of a pattern
tables.py      tables in memory as streams
calendars.py   days, months and quarters of an hour in any time zone
lifetimes.py   when rows of standing queries came and went, drawn
live_side.py   what runs live in a database, made with the first live query
live/          queries that run: how events reach them, and their rows a receiver
replay/        stored events once more, at full speed or paced by a clock
explanation/   how a query is answered, as text and as a picture
"""
