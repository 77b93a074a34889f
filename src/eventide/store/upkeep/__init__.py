"""Maintain a stream: merge, change, copy, verify, repair.

compaction.py      which segments to merge, and which files are no longer needed
maintenance.py     work on sealed segments, as jobs that run here or on Spark
settling.py        what is due once segments were sealed
changes.py         options, columns, retention: committed changes to how a stream is stored
backup.py          a copy at one moment, while writing goes on
verify.py          check that everything is whole; verify_segment.py: one segment of it
repair/            make a damaged stream whole
seq_set.py         which numbers were seen
"""
