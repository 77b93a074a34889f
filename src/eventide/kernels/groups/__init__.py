"""Aggregates of groups whose rows come and go."""
