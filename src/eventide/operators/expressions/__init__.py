"""Expressions over the columns of a batch."""
