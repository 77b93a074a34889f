"""Functions of SQL.

known.py      which of sqlglot's nodes is which function of ours
arguments.py  no argument is lost while a query is read
formats.py    formats of times, element by element
kinds.py      what kind of value an expression gives
on_spark.py   functions in Spark's words
"""
