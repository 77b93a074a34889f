"""After any operations on a stream, by any process, it reads like a sorted list."""

from __future__ import annotations

import contextlib
import pickle
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from eventide.errors import StoreError
from eventide.instants import TimeRange
from eventide.schema import DataType
from eventide.store import Snapshot, StagedSegment, Store, StoredStream
from eventide.store.index.ranges import ValueRange
from eventide.store.options import StreamOptions
from eventide.store.reading.aggregate import AggregateCall, aggregate
from eventide.store.upkeep.backup import backup_stream
from eventide.store.writing.open_stream import OPENED, OpenStream
from eventide.store.writing.view import Reduced
from tests.exploring import EXPLORING
from tests.naive.store import NaiveStream, Row
from tests.store.check_tree import check_tree
from tests.store.events import SCHEMA, reopened, rows, time_ranges, tiny_files, values
from tests.store.values import conditions

batches = st.lists(rows, max_size=6)
ADDED: dict[str, DataType] = {
    "extra": DataType.parse("int64"),
    "note": DataType.parse("string"),
}
stream_options = st.builds(
    StreamOptions,
    durability=st.sampled_from(["none", "group", "batch"]),
    codec=st.sampled_from(["none", "lz4", "zstd"]),
    split_us=st.sampled_from([None, None, 15]),
    order=st.sampled_from(["time", "time", "arrival"]),
    summaries=st.sampled_from([None, None, (), ("speed",)]),
    indexes=st.sampled_from([(), ("speed",), ("car", "lane")]),
    spare=st.sampled_from([0.0, 0.1, 1.0]),
)


def content(snapshot: Snapshot, **asked: Any) -> list[tuple[object, ...]]:  # noqa: ANN401
    """Return all columns of a scan."""
    names = ["ts", "_seq", *snapshot.schema.names]
    found: list[tuple[object, ...]] = []
    # What is left of a thinned stream: reading it as a whole is refused otherwise.
    with patch.object(Snapshot, "check_whole"):
        batches = snapshot.scan(names, **asked)
    for batch in batches:
        assert batch.num_rows
        assert batch.schema.names == names
        found += zip(*(values(column) for column in batch.columns), strict=True)
    return found


class StreamMachine(RuleBasedStateMachine):
    """A stream under every operation there is, beside its naive twin."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.sizes = contextlib.ExitStack()
        self.sizes.enter_context(tiny_files())
        OPENED.clear()
        self.elsewhere: dict[Path, OpenStream] = {}
        self.store = Store.open(self.folder / "db")
        self.copies = count()
        self.names: dict[str, DataType] = {}

    @initialize(options=stream_options)
    def create(self, options: StreamOptions) -> None:
        self.stream: StoredStream = self.store.create_stream("cars", SCHEMA, options)
        self.naive = NaiveStream()
        self.thinned: list[Row] = []
        self.staged: list[tuple[StagedSegment, list[Row]]] = []
        self.kept: list[tuple[Snapshot | bytes, list[tuple[object, ...]]]] = []
        self.names = {name: SCHEMA.type_of(name) for name in SCHEMA.names}

    def teardown(self) -> None:
        try:
            if self.names:
                self.old_snapshots_have_not_changed()
                if not self.thinned:
                    check_tree(self.stream.snapshot())
        finally:
            self.sizes.close()
            OPENED.clear()
            shutil.rmtree(self.folder)

    # What comes in.

    def fitting(self, events: list[Row]) -> list[Row]:
        """Return events with the columns that the stream has now."""
        return [
            {
                "ts": row["ts"],
                **{name: row.get(name, self.invented(name, row)) for name in self.names},
            }
            for row in events
        ]

    def invented(self, name: str, row: Row) -> object:
        """Return a value for a column that was added."""
        if row["lane"] is None:
            return None
        return row["ts"] if name == "extra" else str(row["ts"])

    def table(self, events: list[Row]) -> pa.Table:
        return pa.Table.from_pylist(events, schema=self.stream.schema.arrow.remove(1))

    @rule(events=batches)
    def append(self, events: list[Row]) -> None:
        events = self.fitting(events)
        first_seq = self.naive.next_seq
        appended = self.stream.append(self.table(events))
        assert (appended.rows, appended.first_seq) == (self.naive.append(events), first_seq)

    @rule(events=batches, times=st.integers(5, 9), step=st.integers(-3, 7))
    def append_many(self, events: list[Row], times: int, step: int) -> None:
        more = [
            {**row, "ts": int(str(row["ts"])) + turn * step}
            for turn in range(times)
            for row in events
        ]
        self.append(more)

    @rule(events=batches, late=st.integers(0, 60))
    def append_in_order(self, events: list[Row], late: int) -> None:
        newest = self.stream.snapshot().time_range.end_us
        self.append([{**row, "ts": newest - late + turn} for turn, row in enumerate(events)])

    @rule(events=batches, producer=st.sampled_from("ab"), sequence=st.integers(0, 6))
    def produce(self, events: list[Row], producer: str, sequence: int) -> None:
        events = self.fitting(events)
        found = self.stream.append(self.table(events), producer=producer, sequence=sequence)
        assert found.rows == self.naive.produce(events, producer, sequence)

    @rule(
        parts=st.lists(batches, max_size=3),
        commit_id=st.sampled_from(["x", "y", None, None]),
        again=st.booleans(),
    )
    def stage_and_commit(self, parts: list[list[Row]], commit_id: str | None, again: bool) -> None:
        parts = [self.fitting(part) for part in parts]
        staged = [self.stream.stage(self.table(part).to_batches(max_chunksize=4)) for part in parts]
        added = self.naive.append([row for part in parts for row in part], commit_id)
        assert self.stream.commit(staged, commit_id).rows == added
        if again and commit_id is not None:
            assert self.stream.commit(staged, commit_id).rows == 0

    @rule(events=batches)
    def stage_for_later(self, events: list[Row]) -> None:
        events = self.fitting(events)
        staged = self.stream.stage(self.table(events).to_batches(max_chunksize=4))
        self.staged.append((StagedSegment.from_json(staged.to_json()), events))

    @precondition(lambda self: self.staged)
    @rule()
    def commit_what_was_staged(self) -> None:
        added = self.naive.append([row for _, events in self.staged for row in events])
        assert self.stream.commit([staged for staged, _ in self.staged]).rows == added
        self.staged = []

    @rule(events=batches)
    def stage_and_discard(self, events: list[Row]) -> None:
        staged = self.stream.stage(self.table(self.fitting(events)).to_batches())
        self.stream.discard([staged])
        if staged.rows:
            with pytest.raises(StoreError, match="missing or incomplete"):
                self.stream.commit([staged])

    # What changes nothing that can be read.

    @rule(seal=st.booleans())
    def flush(self, seal: bool) -> None:
        self.stream.flush(seal=seal)

    @rule(in_order=st.booleans())
    def split(self, in_order: bool) -> None:
        self.stream.split(Reduced(in_order, ()))

    @rule()
    def compact(self) -> None:
        self.stream.compact()
        # A file written anew may come out as two, the second so small that it joins a neighbour.
        self.stream.compact()
        assert self.stream.compact() == 0

    @rule()
    def sync(self) -> None:
        self.stream.sync()

    @rule()
    def reopen(self) -> None:
        self.stream = reopened(self.stream)

    @rule(options=stream_options, split=st.booleans())
    def set_options(self, options: StreamOptions, split: bool) -> None:
        named = {*(options.summaries or ()), *options.indexes}
        if named <= set(self.names):
            kept = self.stream.options.aggregates if options.summaries is None else ()
            self.stream.set_options(replace(options, aggregates=kept), split=split)

    @rule(name=st.sampled_from(["car", "lane"]), how=st.sampled_from(["next", "split", "backfill"]))
    def add_index(self, name: str, how: Any) -> None:  # noqa: ANN401
        if name in self.names:
            self.stream.add_index(name, how)

    @precondition(lambda self: self.stream.options.indexes)
    @rule()
    def drop_index(self) -> None:
        self.stream.drop_index(self.stream.options.indexes[0])

    @rule(how=st.sampled_from(["next", "split", "backfill"]))
    def add_aggregate(self, how: Any) -> None:  # noqa: ANN401
        if "lane" in self.names and self.stream.options.summaries is None:
            self.stream.add_aggregate("max2", "lane", how)

    # Another process.

    @contextlib.contextmanager
    def another_process(self) -> Iterator[StoredStream]:
        """Lend a handle that knows only what is on the disk, or what it knew the last time."""
        own = dict(OPENED)
        OPENED.clear()
        OPENED.update(self.elsewhere)
        try:
            yield self.store.stream("cars")
        finally:
            self.elsewhere = dict(OPENED)
            OPENED.clear()
            OPENED.update(own)

    @rule(events=batches, seal=st.none() | st.booleans())
    def append_elsewhere(self, events: list[Row], seal: bool | None) -> None:
        events = self.fitting(events)
        with self.another_process() as stream:
            stream.append(self.table(events))
            if seal is not None:
                stream.flush(seal=seal)
        self.naive.append(events)

    @rule()
    def read_elsewhere(self) -> None:
        with self.another_process() as stream:
            assert content(stream.snapshot()) == self.expected()

    # What takes something away.

    @precondition(lambda self: not self.thinned)
    @rule(before=st.integers(-10, 60))
    def drop_before(self, before: int) -> None:
        dropped = self.stream.drop_before(before)
        gone = self.lost()
        assert all(int(str(row["ts"])) < before for row in gone)
        assert len(gone) == dropped

    @precondition(lambda self: not self.thinned)
    @rule(keep_us=st.integers(1, 60))
    def retain(self, keep_us: int) -> None:
        options, segments = self.stream.options, self.stream.snapshot().segments
        self.stream.set_options(replace(options, keep_us=keep_us))
        dropped = self.stream.retain()
        self.stream.set_options(options)
        gone = self.lost()
        assert len(gone) == dropped
        newest = max((segment.ts_max for segment in segments), default=0)
        assert all(int(str(row["ts"])) < newest - keep_us for row in gone)

    @rule(before=st.integers(-10, 60), level=st.integers(1, 2))
    def thin(self, before: int, level: int) -> None:
        self.stream.thin(before, level)
        gone = self.lost()
        assert all(int(str(row["ts"])) < before for row in gone)
        self.thinned += gone

    def lost(self) -> list[Row]:
        """Take those rows out of the twin that the stream has no more, and return them."""
        left = {row[1] for row in content(self.stream.snapshot())}
        gone = [row for row in self.naive.rows if row["_seq"] not in left]
        self.naive.rows = [row for row in self.naive.rows if row["_seq"] in left]
        return gone

    @rule(name=st.sampled_from(list(ADDED)))
    def add_column(self, name: str) -> None:
        if name not in self.names:
            self.stream.add_column(name, ADDED[name])
            self.names[name] = ADDED[name]

    @rule(name=st.sampled_from([*ADDED, "car", "speed"]))
    def drop_column(self, name: str) -> None:
        if name in self.names:
            self.stream.drop_column(name)
            del self.names[name]
            waiting = [row for _, events in self.staged for row in events]
            for row in (*self.naive.rows, *self.thinned, *waiting):
                row.pop(name, None)

    @rule(options=stream_options)
    def drop_and_create(self, options: StreamOptions) -> None:
        old = self.stream
        self.store.drop_stream("cars")
        self.create(options)
        with pytest.raises(StoreError):
            old.append(old_table([]))
        with pytest.raises(StoreError):
            old.snapshot()

    # What is read.

    def expected(self, **asked: Any) -> list[tuple[object, ...]]:  # noqa: ANN401
        return self.naive.scan(["ts", "_seq", *self.names], **asked)

    @rule(pickled=st.booleans())
    def take_a_snapshot(self, pickled: bool) -> None:
        snapshot = self.stream.snapshot()
        kept = pickle.dumps(snapshot) if pickled else snapshot
        self.kept = [*self.kept, (kept, self.expected())][-3:]

    @rule()
    def old_snapshots_have_not_changed(self) -> None:
        for kept, expected in self.kept:
            snapshot = pickle.loads(kept) if isinstance(kept, bytes) else kept
            assert content(snapshot) == expected

    @rule(time_range=time_ranges, data=st.data())
    def scan_with_conditions(self, time_range: TimeRange, data: st.DataObject) -> None:
        chosen = data.draw(st.lists(st.sampled_from(sorted(self.names)), max_size=2, unique=True))
        where: dict[str, ValueRange] = {}
        for name in chosen:
            known = [row.get(name) for row in self.naive.rows[-8:]]
            where[name] = data.draw(conditions(self.names[name], known))
        asked = {"time_range": time_range, "where": where}
        assert content(self.stream.snapshot(), **asked) == self.expected(**asked)

    @rule(cuts=st.lists(st.integers(-30, 60), min_size=2, max_size=12))
    def aggregates(self, cuts: list[int]) -> None:
        calls = [
            AggregateCall("count"),
            AggregateCall("max", "lane"),
            AggregateCall("max2", "lane"),
            AggregateCall("avg", "lane"),
        ]
        calls += [
            AggregateCall("sum", "speed"),
            AggregateCall("min", "car"),
            AggregateCall("count", "note"),
        ]
        calls = [call for call in calls if call.attribute is None or call.attribute in self.names]
        every = NaiveStream([*self.naive.rows, *self.thinned])
        try:
            found = aggregate(self.stream.snapshot(), calls, sorted(cuts))
        except StoreError:
            assert self.thinned
            return
        for call in calls:
            expected = [
                every.aggregate(call.function, call.attribute, TimeRange(*period))
                for period in pairwise(sorted(cuts))
            ]
            assert found.column(str(call)).to_pylist() == [
                each if each is None or call.function != "avg" else pytest.approx(each, rel=1e-15)
                for each in expected
            ]

    @rule(time_range=time_ranges, target_rows=st.integers(1, 40))
    def slices(self, time_range: TimeRange, target_rows: int) -> None:
        snapshot = self.stream.snapshot()
        pieces = snapshot.slices(time_range, target_rows)
        joined = [row for each in pieces for row in content(snapshot, time_range=each.time_range)]
        assert joined == self.expected(time_range=time_range)
        for one, other in pairwise(pieces):
            assert one.time_range.end_us == other.time_range.start_us

    @rule()
    def back_up(self) -> None:
        target = self.folder / f"copy-{next(self.copies)}"
        manifest = backup_stream(self.stream.snapshot(), target)
        copy = StoredStream("copy", target, manifest.stream_id)
        assert content(copy.snapshot()) == self.expected()
        events = self.fitting([{"ts": 5, "car": "a", "speed": None, "lane": 3}])
        copy.append(self.table(events))
        copy.flush(seal=True)
        assert copy.snapshot().row_count == len(self.naive.rows) + 1

    @rule()
    def stats(self) -> None:
        stats = self.stream.stats()
        assert stats.events == len(self.naive.rows)
        assert stats.options == self.stream.options

    @invariant()
    def reads_like_its_twin(self) -> None:
        if not self.names:
            return
        snapshot = self.stream.snapshot()
        expected = self.expected()
        assert snapshot.schema.names == tuple(self.names)
        assert content(snapshot) == expected
        assert snapshot.row_count == len(expected)
        assert snapshot.view.next_seq == self.naive.next_seq
        if expected:
            first, last = expected[0][0], expected[-1][0]
            assert snapshot.time_range == TimeRange(first, last + 1)  # type: ignore[arg-type, operator]
        else:
            assert snapshot.time_range.is_empty


def old_table(events: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(events, schema=SCHEMA.arrow.remove(1))


def test_a_stream_reads_like_its_twin_whatever_is_done_to_it() -> None:
    run_state_machine_as_test(
        StreamMachine,
        settings=settings(
            deadline=None, max_examples=100 if EXPLORING else 40, stateful_step_count=25
        ),
    )
