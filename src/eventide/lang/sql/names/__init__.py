"""What the names of a query mean, and what its columns are called.

scope.py       what the names in one SELECT mean
streams.py     which stream a table in FROM names
columns.py     names of the columns of a SELECT
lists.py       lists of names behind a table, AS c(t, who)
qualifiers.py  names in front of a dot
written.py     names and expressions as our clauses write them
"""
