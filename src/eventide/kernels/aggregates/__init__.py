"""Sums, extremes, order statistics and sketches."""
