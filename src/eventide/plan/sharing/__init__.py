"""Nodes that answer many live queries at once: the number of the query is one more column."""
