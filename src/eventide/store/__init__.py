"""Keep events on disk, durably, and read them back in order of time.

store.py     a database: a folder of streams
stream.py    one stream: append, stage and commit, snapshot, maintenance
snapshot.py  a stream as it was at one moment
source.py    what engines read: the `EventSource` protocol, and balanced slices
memory.py    an Arrow table as an event source
options.py   how a stream is stored
lifetimes.py what is left of a stream whose events expire
stats.py     statistics of a stream
order.py     rows in order of (ts, _seq)

files/       bytes on disk                     segments/  files of events with their index
index/       what the index knows of events    writing/   from an append to the disk
reading/     from a query to rows              upkeep/    merge, change, copy, verify, repair
"""

from eventide.store.memory import TableSource
from eventide.store.options import StreamOptions
from eventide.store.segments.segment import StagedSegment
from eventide.store.snapshot import Snapshot
from eventide.store.source import EventSource, TimeSlice
from eventide.store.store import Store
from eventide.store.stream import StoredStream
from eventide.store.writing.append import Appended

__all__ = [
    "Appended",
    "EventSource",
    "Snapshot",
    "StagedSegment",
    "Store",
    "StoredStream",
    "StreamOptions",
    "TableSource",
    "TimeSlice",
]
