"""Patterns over XML documents inside SQL: FROM XPATH (blog//item->x[.//author->a]).

written.py  which parts of a text are patterns: the rest is cut into the tokens of SQL
table.py    a pattern as a source in FROM
sources.py  its plan over the stream that it reads
"""
