"""Tuples that come and go: when they expire, and what follows from it."""
