"""Joins: tuples of several sides, and pairs of periods."""
