"""Functions of the rest in Spark's dialect: the same answer as DuckDB's, or no answer.

rewrites.py   how each function is rewritten
templates.py  expressions made from templates, and errors
times.py      functions of times
texts.py      functions of texts
numbers.py    functions of numbers, and casts
"""
