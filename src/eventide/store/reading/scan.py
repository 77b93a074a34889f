"""Read leaves of many segments, and rows in memory, as one sequence sorted by (ts, _seq).

Sources (a leaf, or rows in memory) are taken in order of their first key. One that overlaps no
other is passed on as it is: only the wanted columns are read, and nothing is compared. Sources that
overlap (late data) are read a few at a time; all rows before the first key of the next unread one
are complete, so they are sorted and passed on, and the others wait. If so many overlap that they
would not fit into memory, time is cut into periods that are read one by one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa

from eventide.arrays import no_rows, to_arrow
from eventide.instants import TimeRange
from eventide.schema import SEQ, TS, Schema
from eventide.store.files.frame import Kind
from eventide.store.files.mapped import MAPPED, damaged
from eventide.store.index.ranges import ValueRange
from eventide.store.order import int64_view, sort_rows
from eventide.store.reading.lookup import index_hits
from eventide.store.segments.encodings import DamagedLeafError
from eventide.store.segments.leaf import decode_leaf
from eventide.store.segments.segment import Key, Segment
from eventide.store.segments.segment_writer import begun
from eventide.store.segments.tree import place
from eventide.store.source import SCAN_ROWS

SCAN_BYTES = 256 << 20
MOST_OVERLAPPING_ROWS = 8 << 20
"""More overlapping rows than this are read in several passes over time."""
HITS_PER_LEAF = 2
"""If so many events qualify that most leaves have one, an index rules out almost nothing."""
DECODERS = os.cpu_count() or 1
WIDE_COLUMNS = 4
"""A leaf with fewer columns is decoded sooner than another thread can start."""


@dataclass(frozen=True, slots=True)
class StreamColumns:
    """The columns of a stream: names, types, and the identities that outlive a name."""

    schema: Schema
    ids: tuple[int, ...]

    def stored_in(self, segment: Segment, names: Sequence[str]) -> list[str]:
        """Return those names that a segment has columns for."""
        if segment.form.column_ids == self.ids:
            return list(names)
        own = dict(zip(self.schema.names, self.ids, strict=True))
        stored = dict(zip(segment.form.schema.names, segment.form.column_ids, strict=True))
        return [n for n in names if n in (TS, SEQ) or (n in stored and stored[n] == own[n])]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a scan asks for."""

    columns: StreamColumns
    names: tuple[str, ...]
    time_range: TimeRange
    where: Mapping[str, ValueRange]


@dataclass(frozen=True, slots=True)
class StoredLeaf:
    """One leaf of one segment."""

    folder: Path
    segment: Segment
    address: int
    length: int
    rows: int
    first_key: Key
    last_key: Key

    def read(self, wanted: Wanted, names: Sequence[str]) -> pa.RecordBatch:
        """Return the rows of the leaf that are wanted, in order."""
        times = wanted.time_range
        cut = self.first_key[0] < times.start_us or self.last_key[0] >= times.end_us
        tested = [*wanted.where, *([TS] if cut else [])]
        if wanted.where and any(name not in tested for name in names):
            # Most leaves have no row that meets the conditions: first read only their columns.
            found = chosen(self.decoded(wanted, tested), wanted, tested, cut=cut)
            if not found.num_rows:
                return no_rows_of(wanted.columns.schema, tuple(names))
        rows = self.decoded(wanted, list(dict.fromkeys([*names, *tested])))
        return chosen(rows, wanted, names, cut=cut)

    def decoded(self, wanted: Wanted, names: Sequence[str]) -> pa.RecordBatch:
        """Return some columns of all rows of the leaf, in order."""
        segment, path = self.segment, self.folder / self.segment.file
        keys = [] if segment.form.in_order else [TS, SEQ]
        needed = list(dict.fromkeys([*names, *keys]))
        stored = wanted.columns.stored_in(segment, needed)
        payload = MAPPED.frame(path, self.address, self.length, Kind.LEAF).payload
        try:
            rows = decode_leaf(payload, segment.form.schema.arrow, stored or [SEQ])
        except DamagedLeafError as error:
            raise damaged(path, f"the leaf at byte {self.address}: {error}") from error
        if rows.num_rows != self.rows:
            raise damaged(path, f"the leaf at byte {self.address} has {rows.num_rows} rows")
        rows = with_seq_offset(rows, segment.seq_offset)
        if len(stored) < len(needed):
            rows = with_missing(rows, needed, wanted.columns.schema)
        return rows if segment.form.in_order else sort_rows(rows)


@dataclass(frozen=True, slots=True)
class MemoryRows:
    """Sorted rows in memory."""

    content: pa.RecordBatch
    first_key: Key
    last_key: Key

    @property
    def rows(self) -> int:
        """How many rows there are."""
        count: int = self.content.num_rows
        return count

    def read(self, wanted: Wanted, names: Sequence[str]) -> pa.RecordBatch:
        """Return the rows that are wanted, in order."""
        return chosen(self.content, wanted, names, cut=True)


class Lasting(Protocol):
    """Segments that are read without some of their rows."""

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments."""
        ...

    @property
    def attribute(self) -> str:
        """The attribute that decides."""
        ...

    def left(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that are there."""
        ...


@dataclass(frozen=True, slots=True)
class ExpiringLeaf:
    """One leaf, without the rows that have expired."""

    leaf: StoredLeaf
    expiring: Lasting

    @property
    def rows(self) -> int:
        """How many rows there are at most."""
        return self.leaf.rows

    @property
    def first_key(self) -> Key:
        """The key of its first row, or one before."""
        return self.leaf.first_key

    @property
    def last_key(self) -> Key:
        """The key of its last row, or one behind."""
        return self.leaf.last_key

    def read(self, wanted: Wanted, names: Sequence[str]) -> pa.RecordBatch:
        """Return the rows that are wanted, in order."""
        needed = list(dict.fromkeys((*names, self.expiring.attribute)))
        return self.expiring.left(self.leaf.read(wanted, needed)).select(list(names))


RowSource = StoredLeaf | ExpiringLeaf | MemoryRows
Part = TypeVar("Part", StoredLeaf | ExpiringLeaf | MemoryRows, Segment | MemoryRows)


@lru_cache(maxsize=256)
def no_rows_of(schema: Schema, names: tuple[str, ...]) -> pa.RecordBatch:
    """Return no rows of some columns."""
    fields = [pa.field(name, schema.type_of(name).arrow) for name in names]
    return no_rows(pa.schema(fields))


def memory_rows(rows: pa.RecordBatch) -> MemoryRows:
    """Return sorted rows, at least one, as a source."""
    ts, seq = int64_view(rows.column(TS)), int64_view(rows.column(SEQ))
    return MemoryRows(rows, (int(ts[0]), int(seq[0])), (int(ts[-1]), int(seq[-1])))


def with_seq_offset(rows: pa.RecordBatch, offset: int) -> pa.RecordBatch:
    """Return the rows with `offset` added to `_seq`, where they have that column."""
    index = rows.schema.get_field_index(SEQ)
    if index < 0 or not offset:
        return rows
    seq = pa.array(int64_view(rows.column(index)) + offset)
    return rows.set_column(index, rows.schema.field(index), seq)


def with_missing(rows: pa.RecordBatch, names: Sequence[str], schema: Schema) -> pa.RecordBatch:
    """Return rows with nulls for the columns that their segment does not have."""
    found = set(rows.schema.names)
    types = [schema.type_of(name).arrow for name in names]
    columns = [
        rows.column(name) if name in found else pa.nulls(rows.num_rows, kind)
        for name, kind in zip(names, types, strict=True)
    ]
    fields = [pa.field(name, kind) for name, kind in zip(names, types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def chosen(
    rows: pa.RecordBatch, wanted: Wanted, names: Sequence[str], *, cut: bool
) -> pa.RecordBatch:
    """Return the rows of the time range that meet every condition, with the columns asked for."""
    if cut:
        ts = int64_view(rows.column(TS))
        bounds = [wanted.time_range.start_us, wanted.time_range.end_us]
        start, end = np.searchsorted(ts, bounds)
        rows = rows.slice(start, max(0, end - start))
    for attribute, condition in wanted.where.items():
        holds = condition.mask(rows.column(attribute))
        if not holds.all():
            rows = rows.filter(to_arrow(holds))
    return rows.select(list(names))


def wanted_leaves(folder: Path, segment: Segment, wanted: Wanted) -> Iterator[StoredLeaf]:
    """Yield the leaves of a segment that may have wanted rows, in the order of its index."""
    where = {
        name: condition
        for name, condition in wanted.where.items()
        if wanted.columns.stored_in(segment, [name])
    }
    if len(where) < len(wanted.where):
        return  # a column that is not there is null in every row, which meets no condition
    if where and not may_hold(segment, where):
        return
    leaves = segment.tree(folder).leaves(wanted.time_range, where)
    sources = (source for some in leaves for source in stored_leaves(folder, segment, some))
    if any(index.attribute in where for index in segment.indexes):
        yield from those_hit(folder, segment, where, list(sources))
    else:
        yield from sources


def may_hold(segment: Segment, where: Mapping[str, ValueRange]) -> bool:
    """Whether a segment may have rows that meet conditions, by its totals."""
    totals = segment.summary()
    return all(
        condition.may_hold(totals.column(f"{name}.min"), totals.column(f"{name}.max")).any()
        for name, condition in where.items()
        if name in segment.form.summaries
    )


def those_hit(
    folder: Path, segment: Segment, where: Mapping[str, ValueRange], sources: list[StoredLeaf]
) -> list[StoredLeaf]:
    """Return the leaves that the secondary indexes do not rule out."""
    hits = index_hits(folder, segment, where, most=HITS_PER_LEAF * len(sources))
    if hits is None:
        return sources
    first = np.searchsorted(hits, [source.first_key[0] for source in sources], "left")
    last = np.searchsorted(hits, [source.last_key[0] for source in sources], "right")
    return [source for source, found in zip(sources, first < last, strict=True) if found]


def stored_leaves(folder: Path, segment: Segment, leaves: pa.RecordBatch) -> Iterator[StoredLeaf]:
    """Yield the leaves that entries of the index stand for."""
    offset = segment.seq_offset
    names = ("address", "length", "rows", "ts_min", "first_seq", "ts_max", "last_seq")
    for address, length, rows, ts_min, first, ts_max, last in zip(
        *(place(leaves, name).tolist() for name in names), strict=True
    ):
        yield StoredLeaf(
            folder,
            segment,
            address,
            length,
            rows,
            (ts_min, offset + first),
            (ts_max, offset + last),
        )


def scan_parts(
    folder: Path,
    segments: Sequence[Segment],
    memory: Sequence[pa.RecordBatch],
    wanted: Wanted,
    expiring: Lasting | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the wanted rows of segments and of sorted rows in memory, in order, none empty."""
    return rebatch(sorted_parts(folder, segments, memory, wanted, expiring))


def sorted_parts(
    folder: Path,
    segments: Sequence[Segment],
    memory: Sequence[pa.RecordBatch],
    wanted: Wanted,
    expiring: Lasting | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield rows in order, in batches of any size, some perhaps empty."""
    every = segments if expiring is None else (*segments, *expiring.segments)
    odd = frozenset() if expiring is None else frozenset(each.file for each in expiring.segments)
    parts: list[Segment | MemoryRows] = [
        segment
        for segment in every
        if not segment.thinned and wanted.time_range.overlaps(segment.time_range)
    ]
    parts += [memory_rows(rows) for rows in memory if rows.num_rows]
    for cluster in overlapping(sorted(parts, key=lambda part: part.first_key)):
        sources: list[RowSource] = []
        for part in cluster:
            if isinstance(part, MemoryRows):
                sources.append(part)
            elif expiring is not None and part.file in odd:
                leaves = wanted_leaves(folder, part, wanted)
                sources += (ExpiringLeaf(leaf, expiring) for leaf in leaves)
            else:
                sources += wanted_leaves(folder, part, wanted)
        sources.sort(key=lambda source: source.first_key)
        yield from read_sources(sources, wanted)


def read_sources(sources: Sequence[RowSource], wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """Yield the rows of sources, sorted by their first key, in order."""
    alone: list[RowSource] = []
    for group in overlapping(sources):
        if len(group) == 1:
            alone += group
            if sum(source.rows for source in alone) >= SCAN_ROWS:
                yield from read_all(alone, wanted)
                alone = []
            continue
        yield from read_all(alone, wanted)
        alone = []
        if sum(source.rows for source in group) > MOST_OVERLAPPING_ROWS:
            yield from merge_in_passes(group, wanted)
        else:
            yield from merge(group, wanted)
    yield from read_all(alone, wanted)


def read_all(sources: Sequence[RowSource], wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """Yield the rows of sources that do not overlap, decoding several at a time."""
    if len(sources) < 2 * DECODERS or len(wanted.names) < WIDE_COLUMNS:
        yield from (source.read(wanted, wanted.names) for source in sources)
        return
    with ThreadPoolExecutor(DECODERS) as threads:
        read = [begun(threads, source.read, wanted, wanted.names) for source in sources]
        yield from (each() for each in read)


def overlapping(parts: Iterable[Part]) -> Iterator[list[Part]]:
    """Group parts so that those of different groups do not overlap; most groups have one."""
    group: list[Part] = []
    last: Key | None = None
    for part in parts:
        if last is not None and part.first_key > last:
            yield group
            group = []
        group.append(part)
        last = part.last_key if last is None else max(last, part.last_key)
    if group:
        yield group


def merge(sources: Sequence[RowSource], wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """Yield the rows of overlapping sources in order, reading about `SCAN_ROWS` rows at a time."""
    needed = [*wanted.names, *(key for key in (TS, SEQ) if key not in wanted.names)]
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for source, following in zip(sources, [*sources[1:], None], strict=True):
        waiting.append(source.read(wanted, needed))
        rows, size = rows + waiting[-1].num_rows, size + waiting[-1].nbytes
        if following is not None and rows < SCAN_ROWS and size < SCAN_BYTES:
            continue
        complete = [rows_before(run, following) for run in waiting]
        yield sort_rows(pa.concat_batches(complete)).select(list(wanted.names))
        waiting = [
            run.slice(done.num_rows)
            for run, done in zip(waiting, complete, strict=True)
            if done.num_rows < run.num_rows
        ]
        rows = size = 0


def merge_in_passes(sources: Sequence[RowSource], wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """Merge sources of which too many overlap: each pass reads one period from all of them."""
    starts = sorted(source.first_key[0] for source in sources)
    passes = -(-sum(source.rows for source in sources) // MOST_OVERLAPPING_ROWS)
    first, last = starts[0], max(source.last_key[0] for source in sources) + 1
    # Where sources begin says more about where rows are than an even cut of time would.
    borders = {starts[len(starts) * turn // passes] for turn in range(1, passes)}
    cuts = sorted({first, last} | borders)
    for start, end in pairwise(cuts):
        times = wanted.time_range.intersect(TimeRange(start, end))
        within = [p for p in sources if p.first_key[0] < end and p.last_key[0] >= start]
        part = Wanted(wanted.columns, wanted.names, times, wanted.where)
        yield from merge(within, part)


def rows_before(run: pa.RecordBatch, following: RowSource | None) -> pa.RecordBatch:
    """Return the rows of a sorted run that come before the next unread source."""
    if following is None:
        return run
    next_ts, next_seq = following.first_key
    ts, seq = int64_view(run.column(TS)), int64_view(run.column(SEQ))
    tie_start, tie_end = np.searchsorted(ts, next_ts, "left"), np.searchsorted(ts, next_ts, "right")
    return run.slice(0, int(tie_start + np.searchsorted(seq[tie_start:tie_end], next_seq)))


def rebatch(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join small batches into ones of about `SCAN_ROWS` rows, dropping empty ones."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        if waiting and (rows + batch.num_rows > SCAN_ROWS or size + batch.nbytes > SCAN_BYTES):
            yield pa.concat_batches(waiting)
            waiting, rows, size = [], 0, 0
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
    if waiting:
        yield pa.concat_batches(waiting)
