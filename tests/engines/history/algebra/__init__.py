"""Sequences over history, with and without the index."""
