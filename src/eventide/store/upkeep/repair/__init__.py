"""Bring a damaged stream back to something whole, and say what is lost.

What is damaged         How it is repaired
manifest                the newest whole version counts, with the newest log that fits it, and with
                        segments that hold events which are nowhere else. If there is none, the
                        columns are taken from the heads of segments (`rebuild.py`)
missing manifest        the same: it is noticed if an older version names a log that is gone, and
                        another log is there
log                     its whole records count (`salvage_log.py`). The open segment may have a
                        later root than they know, and leaves behind that: those are taken in,
                        also if no log is left that names the segment
segment                 its readable leaves are written to a new one. Below a damaged node or root
                        the leaves are found by their frames
missing segment         it is taken off the list
secondary index         it is removed from its segment: answers never depend on it

Everything new is written first; then one manifest, with a higher number than any before, makes it
count. Only then are damaged files given the suffix `.damaged`. So a crash leaves a stream that is
as damaged as before, or repaired, and no file is ever deleted or overwritten.

stream.py      one repair, from its first step to its last
report.py      what it did, and what is lost
start.py       which manifest and which log count
rebuild.py     a manifest for a stream that has lost all of them
salvage_log.py what can be read of a damaged log
turn.py        what is known so far, and which events are safe
segments.py    the listed segments: check them, and rewrite what is left of damaged ones
salvage.py     rows of a damaged segment
orphans.py     segments that no list has
losses.py      which events are lost
commit.py      make the result count, and move damaged files out of the way
"""

from eventide.store.upkeep.repair.report import Loss, Repair
from eventide.store.upkeep.repair.stream import repair_stream

__all__ = ["Loss", "Repair", "repair_stream"]
