"""Partial results of panes, for windows that slide."""
