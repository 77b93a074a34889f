"""Care for a stream: merge, change, copy, verify, repair.

compaction.py      which segments to merge, and which files nobody needs any more
maintenance.py     work on sealed segments, as jobs that run here or on Spark
settling.py        what is due once segments were sealed
changes.py         options, columns, retention: committed changes to how a stream is kept
backup.py          a copy at one moment, while writing goes on
verify.py          is everything whole; verify_segment.py, one segment of it
repair/            make a damaged stream whole
seq_set.py         which numbers were seen
"""
