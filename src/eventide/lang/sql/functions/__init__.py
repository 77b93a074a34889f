"""Functions of SQL.

aggregates.py which of them is which aggregate, and its parts
known.py      which of sqlglot's nodes is which function of ours
arguments.py  make sure that no argument is lost while a query is parsed
formats.py    formats of times, element by element
kinds.py      the kind of value an expression gives
on_spark/     functions in Spark's dialect
"""
