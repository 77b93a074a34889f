"""Scans with conditions: what brute force finds, from the leaves that can hold it and no others."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import SchemaError
from eventide.instants import ALL_TIME, TimeRange
from eventide.store import Snapshot
from eventide.store.index.ranges import ValueRange
from eventide.store.options import StreamOptions
from eventide.store.reading.scan import StoredLeaf, StreamColumns, Wanted, stored_leaves
from tests.naive.ranges import qualifies
from tests.naive.store import NaiveStream, Row, number
from tests.store.events import new_stream, tiny_files, values
from tests.store.history import (
    EVERY_TYPE,
    FIRST_TS,
    LAST_TS,
    TYPES,
    History,
    as_table,
    options,
    pools,
    scanned_rows,
    seeds,
)
from tests.store.values import conditions

EPOCH = datetime(2024, 1, 1)
# One value of each type that grows with time: the index can tell leaves apart.
GROWING: dict[str, list[object]] = {
    "flag": [turn >= 60 for turn in range(120)],
    "lane": list(range(120)),
    "speed": [turn * 1.5 for turn in range(120)],
    "car": [f"car {turn:03}" for turn in range(120)],
    "seen": [EPOCH + timedelta(hours=turn) for turn in range(120)],
    "price": [Decimal(turn).scaleb(-2) for turn in range(120)],
    "mark": [bytes([turn]) for turn in range(120)],
}


@contextlib.contextmanager
def leaves_read() -> Iterator[list[StoredLeaf]]:
    """Collect the leaves that are read."""
    read: list[StoredLeaf] = []
    original = StoredLeaf.read

    def counted(piece: StoredLeaf, wanted: Wanted, names: Sequence[str]) -> pa.RecordBatch:
        read.append(piece)
        return original(piece, wanted, names)

    with patch.object(StoredLeaf, "read", counted):
        yield read


@settings(deadline=None, max_examples=40)
@given(options, pools, seeds, st.data())
def test_conditions_find_what_brute_force_finds(
    chosen: StreamOptions, found: dict[str, list[object]], seed: int, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder, tiny_files():
        history = History.new(Path(folder), chosen, found, seed, steps=10)
        snapshot = history.stream.snapshot()
        assert scanned_rows(snapshot) == history.expected()
        leaves = rows_by_leaf(snapshot)
        # Mostly times that events have, so that ranges begin and end where leaves do.
        known = [FIRST_TS - 5, LAST_TS + 5, *(number(row["ts"]) for row in history.naive.rows)]
        instants = st.sampled_from(known)
        for _ in range(4):
            names = data.draw(st.lists(st.sampled_from(list(TYPES)), max_size=3, unique=True))
            where = {name: data.draw(conditions(TYPES[name], found[name])) for name in names}
            start, end = data.draw(instants), data.draw(instants)
            for time_range in (ALL_TIME, TimeRange(start, end), TimeRange(end, start + 1)):
                asked = {"time_range": time_range, "where": where}
                with leaves_read() as read:
                    assert scanned_rows(snapshot, **asked) == history.expected(**asked)
                kept = {(piece.segment.file, piece.address) for piece in read}
                for place, rows in leaves.items():
                    assert place in kept or not qualifying(rows, time_range, where)


def rows_by_leaf(snapshot: Snapshot) -> dict[tuple[str, int], list[Row]]:
    """Read every leaf by itself, whatever a scan would do."""
    names = ["ts", *TYPES]
    columns = StreamColumns(snapshot.schema, snapshot.manifest.column_ids)
    wanted = Wanted(columns, tuple(names), ALL_TIME, {})
    found: dict[tuple[str, int], list[Row]] = {}
    for segment in snapshot.segments:
        for leaves in segment.tree(snapshot.path).leaves(ALL_TIME):
            for piece in stored_leaves(snapshot.path, segment, leaves):
                rows = piece.read(wanted, names)
                ts = values(rows.column("ts"))
                found[segment.file, piece.address] = [
                    {**row, "ts": at} for row, at in zip(rows.to_pylist(), ts, strict=True)
                ]
    assert sum(map(len, found.values())) == sum(segment.rows for segment in snapshot.segments)
    return found


def qualifying(rows: Sequence[Row], time_range: TimeRange, where: dict[str, ValueRange]) -> bool:
    """Whether a scan must return one of the rows."""
    twin = NaiveStream()
    twin.append(rows)
    return bool(twin.scan(["ts"], time_range, where))


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("state", ["open", "sealed", "staged", "arrival"])
def test_leaves_that_cannot_qualify_are_not_read(tmp_path: Path, name: str, state: str) -> None:
    order: StreamOptions = StreamOptions(order="arrival" if state == "arrival" else "time")
    low, high = GROWING[name][40], GROWING[name][44]
    with tiny_files():
        snapshot = grown(tmp_path, state, order)
        with leaves_read() as read:
            rows = scanned_rows(snapshot, where={name: ValueRange(low, high)})
        inside = [value for value in GROWING[name] if qualifies(value, ValueRange(low, high))]
        assert len(rows) == len(inside)
        # A leaf has three rows, and a run of n values lies in at most n/3 + 2 leaves.
        assert len(inside) / 3 <= len(read) <= len(inside) / 3 + 2
        with leaves_read() as read:
            assert scanned_rows(snapshot, where={name: (high, low)}) == [] or name == "flag"
        assert read == [] or name == "flag"


def grown(folder: Path, state: str, chosen: StreamOptions) -> Snapshot:
    """Return a stream of 120 events, all in leaves."""
    stream = new_stream(folder, options=chosen, schema=EVERY_TYPE)
    rows: list[Row] = [
        {"ts": turn * 10, **{each: GROWING[each][turn] for each in TYPES}} for turn in range(120)
    ]
    if state == "staged":
        stream.append(as_table([{"ts": 0}]))
        stream.commit([stream.stage(as_table(rows).to_batches())])
        return stream.snapshot()
    stream.append(as_table(rows))
    with patch("eventide.store.segments.segment_writer.SEGMENT_ROWS", 1000):
        stream.flush(seal=state == "sealed")
    return stream.snapshot()


def test_without_summaries_every_leaf_of_the_time_is_read(tmp_path: Path) -> None:
    with tiny_files():
        snapshot = grown(tmp_path, "sealed", StreamOptions(summaries=("car",)))
        cases: list[tuple[dict[str, object], int, int]] = [
            ({"lane": (40, 44)}, 40, 40),
            ({"car": ("car 040", "car 044")}, 2, 3),
            ({"car": ("car 040", "car 044"), "lane": (0, 41)}, 2, 3),
        ]
        for where, least, most in cases:
            with leaves_read() as read:
                rows = scanned_rows(snapshot, where=where)
            assert len(rows) == (2 if len(where) == 2 else 5)
            assert least <= len(read) <= most
        with leaves_read() as read:
            scanned_rows(snapshot, time_range=TimeRange(100, 200), where={"lane": (0, 120)})
        assert len(read) <= 5


def test_conditions_on_several_attributes_prune_together(tmp_path: Path) -> None:
    with tiny_files():
        snapshot = grown(tmp_path, "open", StreamOptions())
        with leaves_read() as read:
            rows = scanned_rows(
                snapshot, where={"lane": (10, 80), "price": (Decimal("0.79"), None)}
            )
        assert len(rows) == 2
        assert len(read) == 1
        with leaves_read() as read:
            assert (
                scanned_rows(snapshot, where={"lane": (None, 10), "car": ("car 100", None)}) == []
            )
        assert read == []


@pytest.mark.parametrize(
    "where", [{"colour": 1}, {"lane": "one"}, {"lane": 1.5}, {"car": 1}, {"lane": None}]
)
def test_conditions_that_make_no_sense_are_refused(
    tmp_path: Path, where: dict[str, object]
) -> None:
    stream = new_stream(tmp_path, schema=EVERY_TYPE)
    with pytest.raises(SchemaError):
        stream.snapshot().scan(["ts"], where=where)
