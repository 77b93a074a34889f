"""After any operations on a stream, it reads like a sorted list."""

from __future__ import annotations

import pickle
import tempfile
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.instants import ALL_TIME, TimeRange
from eventide.store import EventSource, StagedSegment, StoredStream, TableSource
from tests.naive.store import NaiveStream, Row
from tests.store.events import (
    COLUMNS,
    SCHEMA,
    column_lists,
    new_stream,
    reopened,
    rows,
    scanned,
    segment_files,
    table,
    time_ranges,
    tiny_files,
)

batches = st.lists(rows, max_size=20)
steps = st.one_of(
    st.tuples(st.just("append"), batches),
    st.tuples(st.just("commit"), st.lists(batches, max_size=3), st.sampled_from(["x", "y", None])),
    st.tuples(st.just("discard"), batches),
    st.tuples(st.just("compact")),
    st.tuples(st.just("reopen")),
    st.tuples(st.just("flush"), st.booleans()),
)


def take_step(stream: StoredStream, naive: NaiveStream, step: tuple[object, ...]) -> StoredStream:
    match step:
        case ("append", list(events)):
            first_seq = len(naive.rows)
            appended = stream.append(table(events))
            assert (appended.rows, appended.first_seq) == (naive.append(events), first_seq)
        case ("commit", list(parts), commit_id):
            assert commit_id is None or isinstance(commit_id, str)
            staged = [stage(stream, part) for part in parts]
            added = naive.append([row for part in parts for row in part], commit_id)
            assert stream.commit(staged, commit_id).rows == added
        case ("discard", list(events)):
            stream.discard([stage(stream, events)])
        case ("compact",):
            stream.compact()
        case ("flush", bool(seal)):
            stream.flush(seal=seal)
        case ("reopen",):
            return reopened(stream)
    return stream


def stage(stream: StoredStream, events: list[Row]) -> StagedSegment:
    staged = stream.stage(table(events).to_batches(max_chunksize=4))
    assert staged.rows == len(events)
    return StagedSegment.from_json(staged.to_json())


@settings(deadline=None, max_examples=150)
@given(st.lists(steps, max_size=8), st.lists(st.tuples(column_lists, time_ranges), max_size=4))
def test_any_history_reads_like_a_sorted_list(
    history: list[tuple[object, ...]], scans: list[tuple[list[str], TimeRange]]
) -> None:
    with tempfile.TemporaryDirectory() as folder, tiny_files():
        stream, naive = new_stream(Path(folder)), NaiveStream()
        for step in history:
            stream = take_step(stream, naive, step)
        snapshot = stream.snapshot()
        assert scanned(snapshot) == naive.scan(COLUMNS)
        for columns, time_range in scans:
            assert scanned(snapshot, columns, time_range) == naive.scan(columns, time_range)
        assert snapshot.row_count == len(naive.rows)
        assert_time_range_is_tight(snapshot, naive)
        listed = snapshot.manifest.files | {name for s in snapshot.segments for name in s.files}
        assert {path.name for path in segment_files(stream)} <= listed


@settings(deadline=None, max_examples=120)
@given(st.lists(batches, min_size=1, max_size=6), time_ranges, st.integers(1, 30), st.booleans())
def test_slices_cover_a_scan_without_overlap(
    parts: list[list[Row]], time_range: TimeRange, target_rows: int, in_memory: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder, tiny_files():
        stream = new_stream(Path(folder))
        for part in parts:
            stream.append(table(part))
        events = table([row for part in parts for row in part])
        source = TableSource("cars", SCHEMA, events) if in_memory else stream.snapshot()
        slices = source.slices(time_range, target_rows)
        joined = [row for piece in slices for row in scanned(source, COLUMNS, piece.time_range)]
        assert joined == scanned(source, COLUMNS, time_range)
        for before, after in pairwise(slices):
            assert before.time_range.end_us == after.time_range.start_us
        for piece in slices:
            assert not piece.time_range.is_empty
            assert piece.rows >= 0
            covered = source.time_range.intersect(time_range)
            assert piece.time_range.intersect(covered) == piece.time_range
        if time_range == ALL_TIME:
            assert sum(piece.rows for piece in slices) == source.row_count


@settings(deadline=None, max_examples=60)
@given(batches, column_lists, time_ranges, st.booleans(), st.integers(1, 7))
def test_a_table_reads_like_a_sorted_list(
    events: list[Row], columns: list[str], time_range: TimeRange, with_seq: bool, chunk: int
) -> None:
    naive = NaiveStream()
    naive.append(events)
    chunked = pa.Table.from_batches(table(events).to_batches(max_chunksize=chunk), table([]).schema)
    if with_seq:
        # Numbers against the order of the rows: the table's own numbers must win.
        numbers = list(range(len(events)))[::-1]
        chunked = chunked.append_column("_seq", pa.array(numbers, pa.int64()))
        naive.rows = [
            {**row, "_seq": number} for row, number in zip(naive.rows, numbers, strict=True)
        ]
    with tiny_files():
        source = pickle.loads(pickle.dumps(TableSource("cars", SCHEMA, chunked)))
        assert scanned(source, columns, time_range) == naive.scan(columns, time_range)
        assert source.row_count == len(events)
        assert_time_range_is_tight(source, naive)


def assert_time_range_is_tight(source: EventSource, naive: NaiveStream) -> None:
    found = [row[0] for row in naive.scan(["ts"])]
    if not found:
        assert source.time_range.is_empty
        return
    assert isinstance(found[-1], int)
    assert source.time_range == TimeRange(found[0], found[-1] + 1)  # type: ignore[arg-type]
