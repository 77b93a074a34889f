"""One file of events with its index: leaves, index nodes and roots, one after the other.

    head   leaf leaf … node leaf … node root leaf … root … seal

The head says what the columns are. A root makes everything before it reachable; the manifest, or
the log while the segment is open, says which root counts. frame.py has the layout of a frame,
leaf.py of a leaf, tree.py of nodes and roots.

A segment's `_seq` column may count from 0: `Segment.seq_offset`, which lives in the manifest, is
added on reading. So a file can be written before its place in the stream is known.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias, get_args

import pyarrow as pa

from eventide.errors import StoreError
from eventide.instants import TimeRange
from eventide.schema import MAX_TS_US, MIN_TS_US, Schema
from eventide.store.files.frame import Kind
from eventide.store.files.json_text import whole
from eventide.store.files.mapped import MAPPED, damaged
from eventide.store.index.aggregates import BoundAggregate, find_registered
from eventide.store.index.summaries import SummaryLayout
from eventide.store.segments.leaf import Codec
from eventide.store.segments.tree import PLACES, Levels, Tree, decode_levels

SEGMENT_NAME = re.compile(r"seg-[0-9a-f]{32}\.ev")
INDEX_NAME = re.compile(r"seg-[0-9a-f]{32}-\d+\.ix")

Message: TypeAlias = bytes
Key = tuple[int, int]
"""(ts, _seq): unique in a stream, and its order."""


@dataclass(frozen=True, slots=True)
class SegmentForm:
    """How the rows of a segment are laid out, and what its index knows of them."""

    schema: Schema
    column_ids: tuple[int, ...]
    summaries: tuple[str, ...]
    aggregates: tuple[tuple[str, str], ...]
    aggregate_columns: Message
    """The partial columns of `aggregates`, as a serialised Arrow schema: a process that has not
    registered them can read everything else."""
    codec: Codec
    in_order: bool

    @classmethod
    def of(
        cls,
        schema: Schema,
        column_ids: tuple[int, ...],
        summaries: tuple[str, ...],
        aggregates: tuple[tuple[str, str], ...],
        codec: Codec,
        *,
        in_order: bool,
    ) -> SegmentForm:
        """Return the form of a new segment. All its aggregates have to be registered."""
        layout = layout_of(schema, summaries, aggregates)
        known = set(layout_of(schema, summaries, ()).arrow.names)
        own = pa.schema([field for field in layout.arrow if field.name not in known])
        columns = own.serialize().to_pybytes()
        return cls(schema, column_ids, summaries, aggregates, columns, codec, in_order)

    @property
    def layout(self) -> SummaryLayout:
        """The aggregates that entries have, as far as this process knows them."""
        known = tuple(pair for pair in self.aggregates if find_registered(pair[0]))
        return layout_of(self.schema, self.summaries, known)

    @property
    def entry_schema(self) -> pa.Schema:
        """The columns of an entry of the index."""
        return entry_schema_of(self.schema, self.summaries, self.aggregate_columns)

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads back."""
        return {
            "schema": self.schema.to_json(),
            "column_ids": list(self.column_ids),
            "summaries": list(self.summaries),
            "aggregates": [list(pair) for pair in self.aggregates],
            "aggregate_columns": base64.b64encode(self.aggregate_columns).decode(),
            "codec": self.codec,
            "in_order": self.in_order,
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> SegmentForm:
        """Read what `to_json` wrote."""
        return form_in(json.dumps(entry))


@lru_cache(maxsize=64)
def form_in(text: str) -> SegmentForm:
    """Read a form; most segments of a stream have the same."""
    entry = json.loads(text)
    form = SegmentForm(
        schema=Schema.of(entry["schema"]),
        column_ids=tuple(map(whole, entry["column_ids"])),
        summaries=tuple(map(str, entry["summaries"])),
        aggregates=tuple((str(name), str(on)) for name, on in entry["aggregates"]),
        aggregate_columns=base64.b64decode(entry["aggregate_columns"]),
        codec=entry["codec"],
        in_order=bool(entry["in_order"]),
    )
    check_form(form)
    return form


def layout_of(
    schema: Schema, summaries: tuple[str, ...], aggregates: tuple[tuple[str, str], ...]
) -> SummaryLayout:
    """Return the layout of a form; `SummaryLayout.of` keeps those it has made."""
    bound = [BoundAggregate(name, attribute) for name, attribute in aggregates]
    return SummaryLayout.of(schema, summaries, bound)


@lru_cache(maxsize=256)
def entry_schema_of(
    schema: Schema, summaries: tuple[str, ...], aggregate_columns: Message
) -> pa.Schema:
    """Return the columns of an entry: its place, then its aggregates."""
    own = pa.ipc.read_schema(pa.py_buffer(aggregate_columns))
    return pa.schema([*PLACES, *layout_of(schema, summaries, ()).arrow, *own])


@dataclass(frozen=True, slots=True)
class SegmentIndex:
    """A secondary index of a segment: a file of sorted runs, of which these extents count."""

    attribute: str
    file: str
    extents: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        check_name(self.file, INDEX_NAME)

    def to_json(self) -> list[Any]:
        """Return what `from_json` reads back."""
        return [self.attribute, self.file, [list(extent) for extent in self.extents]]

    @classmethod
    def from_json(cls, entry: Iterable[Any]) -> SegmentIndex:
        """Read what `to_json` wrote."""
        attribute, file, extents = entry
        return cls(str(attribute), str(file), tuple((whole(a), whole(b)) for a, b in extents))


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment as the manifest or the log lists it. Keys are relative to `seq_offset`."""

    file: str
    bytes: int
    root: int
    root_length: int
    seq_offset: int
    rows: int
    leaves: int
    ts_min: int
    ts_max: int
    first_seq: int
    last_seq: int
    seq_max: int
    form: SegmentForm
    totals: Message
    """The entry of all rows, as the message of a record batch of one row."""
    sealed: bool = True
    wasted: int = 0
    """How many bytes of the file cannot be reached any more: leaves and nodes that were rewritten
    for late events, and roots before the last."""
    thinned: int = 0
    """Only index nodes of this level and above are left; 0 for a whole segment."""
    indexes: tuple[SegmentIndex, ...] = ()
    correlation: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        # Names come from JSON that other processes wrote: they must not point out of the folder.
        check_name(self.file, SEGMENT_NAME)

    @property
    def first_key(self) -> Key:
        """The smallest (ts, _seq)."""
        return self.ts_min, self.seq_offset + self.first_seq

    @property
    def last_key(self) -> Key:
        """The largest (ts, _seq)."""
        return self.ts_max, self.seq_offset + self.last_seq

    @property
    def time_range(self) -> TimeRange:
        """[first ts, last ts + 1)."""
        return TimeRange(self.ts_min, self.ts_max + 1)

    @property
    def files(self) -> tuple[str, ...]:
        """The segment's file, and those of its indexes."""
        return (self.file, *(index.file for index in self.indexes))

    def summary(self) -> pa.RecordBatch:
        """Return the aggregates of all rows."""
        try:
            message = pa.ipc.read_message(pa.py_buffer(self.totals))
            found = pa.ipc.read_record_batch(message, self.form.entry_schema)
            found.validate(full=True)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise damaged(Path(self.file), f"the totals in its listing: {error}") from error
        if found.num_rows != 1:
            raise damaged(Path(self.file), f"the totals in its listing have {found.num_rows} rows")
        return found

    def levels(self, folder: Path) -> Levels:
        """Read the root."""
        path = folder / self.file
        kind = Kind.SEAL if self.sealed else Kind.ROOT
        frame = MAPPED.frame(path, self.root, self.root_length, kind)
        try:
            return decode_levels(frame.payload, self.form.entry_schema)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise damaged(path, f"the root at byte {self.root}: {error}") from error

    def tree(self, folder: Path) -> Tree:
        """Return the time index."""
        return tree_of(folder, self)

    def to_json(self, form: int | None = None) -> dict[str, Any]:
        """Return what `from_json` reads back; `form` stands for the form, if that is elsewhere."""
        numbers = {name: getattr(self, name) for name in NUMBERS}
        return {
            "file": self.file,
            **numbers,
            "form": self.form.to_json() if form is None else form,
            "totals": base64.b64encode(self.totals).decode(),
            "sealed": self.sealed,
            "indexes": [index.to_json() for index in self.indexes],
            "correlation": [list(pair) for pair in self.correlation],
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any], form: SegmentForm | None = None) -> Segment:
        """Read what `to_json` wrote."""
        segment = cls(
            file=str(entry["file"]),
            **checked_numbers(entry),
            form=SegmentForm.from_json(entry["form"]) if form is None else form,
            totals=base64.b64decode(entry["totals"]),
            sealed=bool(entry["sealed"]),
            indexes=tuple(SegmentIndex.from_json(index) for index in entry["indexes"]),
            correlation=tuple((str(name), float(tc)) for name, tc in entry["correlation"]),
        )
        for index in segment.indexes:
            below = any(min(extent) < 0 for extent in index.extents)
            if below or index.attribute not in segment.form.schema.names:
                message = f"{index.file} cannot be an index of {index.attribute!r}"
                raise ValueError(message)
        return segment


NUMBERS = (
    "bytes",
    "root",
    "root_length",
    "seq_offset",
    "rows",
    "leaves",
    "ts_min",
    "ts_max",
    "first_seq",
    "last_seq",
    "seq_max",
    "wasted",
    "thinned",
)


def checked_numbers(entry: Mapping[str, Any]) -> dict[str, int]:
    """Return the numbers of a listing, refusing those that no segment has."""
    numbers = {name: whole(entry[name]) for name in NUMBERS}
    times = numbers["ts_min"], numbers["ts_max"]
    below = [name for name in NUMBERS if not name.startswith("ts_") and numbers[name] < 0]
    if below or not numbers["rows"] or not MIN_TS_US <= times[0] <= times[1] <= MAX_TS_US:
        message = f"no segment has {', '.join(f'{name} {numbers[name]}' for name in NUMBERS)}"
        raise ValueError(message)
    return numbers


def check_form(form: SegmentForm) -> None:
    """Refuse a form that no segment has."""
    names = form.schema.names
    known = {*form.summaries, *(on for _, on in form.aggregates)} <= set(names)
    if not known or len(form.column_ids) != len(names) or form.codec not in get_args(Codec):
        message = "the form of a segment has columns, aggregates or a codec that do not fit"
        raise ValueError(message)
    pa.ipc.read_schema(pa.py_buffer(form.aggregate_columns))


@lru_cache(maxsize=512)
def tree_of(folder: Path, segment: Segment) -> Tree:
    """Return the time index of a segment; its root is read once."""
    form = segment.form
    path = folder / segment.file
    floor = max(0, segment.thinned - 1)
    return Tree(path, form.entry_schema, form.summaries, segment.levels(folder), floor)


def check_name(name: str, allowed: re.Pattern[str]) -> None:
    """Refuse a file name that a segment cannot have."""
    if not allowed.fullmatch(name):
        message = f"{name!r} is not the name of a segment file"
        raise StoreError(message, hint="pass on staged segments as `stage` returned them")


@dataclass(frozen=True, slots=True)
class StagedSegment:
    """Files written but not yet part of the stream; their places in it come with the commit."""

    segments: tuple[Segment, ...]

    @property
    def rows(self) -> int:
        """How many events are staged."""
        return sum(segment.rows for segment in self.segments)

    def to_json(self) -> list[dict[str, Any]]:
        """Return what `from_json` reads back."""
        return [segment.to_json() for segment in self.segments]

    @classmethod
    def from_json(cls, entries: Iterable[Mapping[str, Any]]) -> StagedSegment:
        """Read what `to_json` wrote."""
        return cls(tuple(Segment.from_json(entry) for entry in entries))


def placed(segment: Segment, seq_offset: int) -> Segment:
    """Return a staged segment with its place in the stream."""
    return replace(segment, seq_offset=seq_offset)
