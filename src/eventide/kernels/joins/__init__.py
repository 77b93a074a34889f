"""Joins: tuples of several sides, and pairs of periods.

join.py     joins over windows by equal keys; pool.py: the tuples that they keep
as_of.py    joins as of a time
periods.py  pairs of periods by relation
"""
