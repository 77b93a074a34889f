"""Keep events on disk, durably, and read them back in order of time.

source.py      what engines read: the `EventSource` protocol, and balanced slices of time
memory.py      an Arrow table as an event source
store.py       a database: a folder of streams
stream.py      one stream: append, stage and commit, snapshot, compact
snapshot.py    a stream as it was at one commit
scan.py        read blocks of many segments as one sorted sequence
segment.py     one immutable, sorted file of blocks, and their statistics
block.py       one block: columns compressed apart, each under a checksum
manifest.py    the versioned list of a stream's segments
compaction.py  which segments to merge, and which files nobody needs any more
order.py       sort rows by (ts, seq), doing nothing where they are sorted
durable.py     write files so that a crash leaves the old or the new, never half
lock.py        one writer at a time
"""

from eventide.store.memory import TableSource
from eventide.store.segment import StagedSegment
from eventide.store.snapshot import Snapshot
from eventide.store.source import EventSource, TimeSlice
from eventide.store.store import Store
from eventide.store.stream import Appended, StoredStream

__all__ = [
    "Appended",
    "EventSource",
    "Snapshot",
    "StagedSegment",
    "Store",
    "StoredStream",
    "TableSource",
    "TimeSlice",
]
