"""Temporal patterns in slices, and periods joined by relation.

slices.py  what a slice has to read
joined.py  blocks whose periods are joined by relation; pairs.py joins while the pairs are read
"""
