"""What the index knows of events: aggregates, ranges of values, correlation, sorted values.

summaries.py            the aggregates that every entry of the time index has
attribute_summaries.py  those of one attribute, by its type
aggregates.py           aggregates that users define
ranges.py               conditions on one attribute
correlation.py          how steadily an attribute changes
secondary/              sorted runs of values, with Bloom filters
"""
