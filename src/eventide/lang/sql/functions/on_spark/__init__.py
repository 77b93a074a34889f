"""Functions of the rest in Spark's words: the same answer as DuckDB's, or no answer.

rewrites.py   which function is rewritten how
templates.py  expressions made from templates, and what is refused
times.py      functions of times
texts.py      functions of texts
numbers.py    functions of numbers, and casts
"""
