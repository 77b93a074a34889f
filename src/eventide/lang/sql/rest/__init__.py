"""The SQL that remains once our operators are cut out.

remainder.py  which events it needs of each stream, and what it calls its columns
outside.py    what it may not do: read files, ask the time, use random numbers
text.py       its text for DuckDB and for Spark
"""
