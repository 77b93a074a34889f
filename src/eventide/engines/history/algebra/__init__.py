"""Sequences over history: where they can be, by the index."""
