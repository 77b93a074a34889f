"""Joins of windows."""
