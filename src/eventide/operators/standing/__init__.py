"""Operators of standing queries: what they take in and give out are tuples that come and go."""
