"""Aggregates of groups whose rows come and go.

sliding.py  the aggregates, and the rows that result
tables.py   groups by number: their keys, counts and emitted rows
reading.py  aggregates computed from the parts of a group
"""
