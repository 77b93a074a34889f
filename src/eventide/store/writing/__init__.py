"""From an append to the disk: log, tail and queue, leaves, checkpoints, load.

append.py        events that were appended: to the log, or many at once to a segment
rows.py          events checked, with the columns that the stream has now
staging.py       events in files that a later commit adds
view.py          a stream at one moment: segments, tail and queue
open_stream.py   one stream in this process: its newest view, and how it is changed
log.py           the log of events that are in no segment yet
flush.py         write the open end to segments
late.py          late events, into the leaves they belong to
group_commit.py  sync logs a little later, many appends at once
load.py          how much comes in, and how late
feed.py          a queue before a stream, for many producers
adaptation.py    what to leave out when too much comes in
findings.py      facts about a stream, kept until it has grown
"""
