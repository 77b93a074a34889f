"""Temporal patterns in slices of time, and periods joined by relation.

slices.py  what a slice has to read, and from where on
joined.py  blocks whose periods are joined by relation; pairs.py joins while somebody reads
"""
