"""The segments of a snapshot as the entries of a node above their indexes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from eventide.kernels.compiled import Int64s
from eventide.kernels.store.descent import CHILD, PLACES, ROWS, TS_MAX, TS_MIN, descend
from eventide.store.reading.descent.tree import FlatTree, flat_tree
from eventide.store.reading.descent.words import fill_words, no_words
from eventide.store.reading.scan import StreamColumns
from eventide.store.segments.listing import SegmentList
from eventide.store.segments.segment import Segment
from eventide.store.snapshot import Snapshot

KEPT = "table"
"""Where a view keeps it."""


@dataclass(frozen=True, eq=False)
class SegmentTable:
    """Segments, their times and rows, and the words of attributes that were asked for."""

    sealed: SegmentList
    open: Segment | None
    column_ids: tuple[int, ...]
    places: Int64s
    entries: int
    """How many segments and leaves there are."""
    words: dict[tuple[str, int], Int64s | None] = field(default_factory=dict)
    """By attribute and its kind; None if the index of a segment does not have it."""
    trees: dict[int, FlatTree] = field(default_factory=dict)

    @property
    def segments(self) -> Sequence[Segment]:
        """The segments, the open one last."""
        return self.sealed if self.open is None else (*self.sealed, self.open)

    def segment(self, number: int) -> Segment:
        """Return a segment."""
        if number < len(self.sealed):
            return self.sealed[number]
        assert self.open is not None
        return self.open

    def find(self, start_us: int, end_us: int, counts: Int64s) -> Int64s:
        """Return the segments within a period, and those it cuts; see `descend`."""
        rows = len(self.places)
        found = np.empty(rows, np.int64)
        node = np.array([[0, rows, 0]])
        descend(node, 1, self.places, 0, start_us, end_us, found, counts)
        return found

    def tree(self, folder: Path, number: int) -> FlatTree:
        """Return the index of a segment: to all threads the same, for entries have its numbers."""
        found = self.trees.get(number)
        if found is None:
            found = self.trees.setdefault(number, flat_tree(folder, self.segment(number)))
        return found

    def words_of(self, columns: StreamColumns, attribute: str, kind: int) -> Int64s | None:
        """Return the summaries of an attribute, a row a segment; None if a segment has none."""
        key = attribute, kind
        if key not in self.words:
            self.words[key] = words_of(self.segments, columns, attribute, kind)
        return self.words[key]


def words_of(
    segments: Sequence[Segment], columns: StreamColumns, attribute: str, kind: int
) -> Int64s | None:
    """Return the summaries of an attribute, a row for each segment."""
    words = no_words(len(segments))
    for number, segment in enumerate(segments):
        summarised = attribute in segment.form.summaries
        if not summarised or not columns.stored_in(segment, [attribute]):
            return None
        fill_words(words[number : number + 1], segment.summary(), attribute, kind)
    return words


def table_of(snapshot: Snapshot) -> SegmentTable:
    """Return the segments of a snapshot; views with the same segments share it."""
    view = snapshot.view
    kept = view.directories.get(KEPT)
    held = kept if isinstance(kept, SegmentTable) else None
    if (
        held is not None
        and held.sealed is view.manifest.segments
        and held.open is view.segment
        and held.column_ids == view.manifest.column_ids
    ):
        return held
    made = new_table(view.manifest.segments, view.segment, snapshot.columns, held)
    view.directories[KEPT] = made
    return made


def new_table(
    sealed: SegmentList,
    open_one: Segment | None,
    columns: StreamColumns,
    held: SegmentTable | None,
) -> SegmentTable:
    """Make a table, from an older one as far as its segments are still there."""
    segments: Sequence[Segment] = sealed if open_one is None else (*sealed, open_one)
    places = np.empty((len(segments), PLACES), np.int64)
    for column, name in ((TS_MIN, "ts_min"), (TS_MAX, "ts_max"), (ROWS, "rows")):
        places[:, column] = [getattr(each, name) for each in segments]
    places[:, CHILD] = -1
    entries = sum(1 + each.leaves for each in segments)
    made = SegmentTable(sealed, open_one, columns.ids, places, entries)
    if held is not None and held.column_ids == columns.ids:
        take_over(made, held, columns)
    return made


def take_over(made: SegmentTable, held: SegmentTable, columns: StreamColumns) -> None:
    """Take what an older table has, if segments were only added since."""
    count = len(held.sealed)
    # Tuples compare what they hold by identity first.
    if len(made.sealed) < count or made.sealed[:count] != held.sealed:
        return
    added = made.segments[count:]
    for (attribute, kind), words in held.words.items():
        more = None if words is None else words_of(added, columns, attribute, kind)
        together = None if words is None or more is None else np.vstack([words[:count], more])
        made.words[attribute, kind] = together
    made.trees.update({number: tree for number, tree in held.trees.items() if number < count})
