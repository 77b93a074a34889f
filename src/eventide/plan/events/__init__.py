"""Rows as events: the rows of a query that another reads, and whether rows follow time."""
