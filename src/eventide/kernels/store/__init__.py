"""Encodings and index structures of the event store.

packing.py      columns into fewer bytes and back
leaves.py       which leaves of a file are whole
bloom.py        Bloom filters
correlation.py  how far consecutive values are apart
"""
