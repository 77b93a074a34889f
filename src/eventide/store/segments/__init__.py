"""Segments: files of events with their index, and the manifest that lists them.

leaf.py            some thousand rows, each column encoded and compressed by itself
encodings.py       how the values of one column are written
tree.py            the index of time, with aggregates in every entry
segment.py         a segment as the manifest lists it, and its form
segment_writer.py  leaves and index in one sequence of appends
listing.py         files with the entries of segments, so that a commit need not write them again
manifest.py        the versioned list of a stream's segments
"""
