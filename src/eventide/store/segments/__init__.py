"""Segments: files of events that are their own index, and the manifest that lists them.

leaf.py            a block of rows, its columns encoded and compressed apart
encodings.py       how the values of one column are written
tree.py            the index of time, with aggregates in every entry
segment.py         a segment as the manifest lists it, and its form
segment_writer.py  leaves and index in one stream of appends
manifest.py        the versioned list of a stream's segments
"""
