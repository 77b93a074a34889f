"""After a power failure at any moment, exactly what was promised is there.

A history runs on a disk that is recorded. Then, for many moments of it, and for several states that
the disk may be in at that moment, the stream is opened, read, and appended to again.
"""

from __future__ import annotations

import contextlib
import copy
import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.instants import TimeRange
from eventide.store import Store, StoredStream
from eventide.store.files.mapped import MAPPED
from eventide.store.index.secondary import SecondaryReader
from eventide.store.options import StreamOptions
from eventide.store.segments.segment import Segment
from eventide.store.writing.group_commit import COMMITS
from eventide.store.writing.open_stream import OPENED
from tests.exploring import EXPLORING
from tests.naive.store import NaiveStream, Row
from tests.store.events import COLUMNS, SCHEMA, rows, scanned, table, tiny_files
from tests.store.writing.faults import (
    Image,
    RecordingDisk,
    Trace,
    Write,
    crash_images,
    lay_out,
    recorded,
)

HOUR_MS = 3_600_000
"""So long that only `COMMITS.finish` syncs: a history has the same trace every time."""

Step = tuple[object, ...]
Facts = tuple[frozenset[str], dict[str, int]]


@dataclass
class Model:
    """The stream as it should be."""

    naive: NaiveStream
    producers: dict[str, int]

    @classmethod
    def empty(cls) -> Model:
        return cls(NaiveStream(), {})

    def take(self, step: Step) -> None:
        match step:
            case ("append", list(events)):
                self.naive.append(events)
            case ("produce", list(events), str(producer), int(sequence)):
                if sequence > self.producers.get(producer, -1):
                    self.naive.append(events)
                    self.producers[producer] = sequence
            case ("commit", list(parts), commit_id):
                assert commit_id is None or isinstance(commit_id, str)
                self.naive.append([row for part in parts for row in part], commit_id)

    def facts(self) -> Facts:
        return frozenset(self.naive.commit_ids), self.producers


@dataclass(frozen=True)
class Moment:
    """A step was acknowledged after `changes` of the disk; `safe` if that survives anything."""

    changes: int
    model: Model
    safe: bool


@dataclass(frozen=True)
class History:
    """What happened to a disk, and what the stream was meanwhile."""

    trace: Trace
    moments: Sequence[Moment]

    def possible(self, upto: int) -> list[Model]:
        """Return what may be left: nothing safe is lost, and one step may be under way."""
        done = [moment for moment in self.moments if moment.changes <= upto]
        safe = max(at for at, moment in enumerate(done) if moment.safe)
        return [moment.model for moment in self.moments[safe : len(done) + 1]]


def take(stream: StoredStream, step: Step) -> None:
    match step:
        case ("append", list(events)):
            stream.append(table(events))
        case ("produce", list(events), str(producer), int(sequence)):
            stream.append(table(events), producer=producer, sequence=sequence)
        case ("commit", list(parts), commit_id):
            assert commit_id is None or isinstance(commit_id, str)
            staged = [stream.stage(table(part).to_batches()) for part in parts]
            stream.commit(staged, commit_id)
        case ("flush", bool(seal)):
            stream.flush(seal=seal)
        case ("compact",):
            stream.compact()
        case ("sync",):
            stream.sync()
        case ("interval passes",):
            COMMITS.finish()
        case ("reopen",):
            forget()


def forget() -> None:
    """Forget all streams, as a new process has."""
    OPENED.clear()
    MAPPED.__init__()  # type: ignore[misc]


@contextlib.contextmanager
def tiny_and_hasty() -> Iterator[None]:
    """Make everything small, and delete at once what is otherwise kept for a while."""
    with (
        tiny_files(),
        patch("eventide.store.upkeep.compaction.RETIRED_KEPT_S", -1.0),
        patch("eventide.store.segments.manifest.KEPT_VERSIONS", 2),
    ):
        try:
            yield
        finally:
            COMMITS.finish()
            forget()


def run(folder: Path, steps: Sequence[Step], options: StreamOptions) -> History:
    """Take the steps on a new stream, and return what happened."""
    stream = Store.open(folder).create_stream("cars", SCHEMA, options)
    model = Model.empty()
    moments = [Moment(0, copy.deepcopy(model), safe=True)]
    with recorded(folder) as disk:
        for step in steps:
            take(stream, step)
            model.take(step)
            safe = options.durability == "batch" or is_safe(stream, disk)
            moments.append(Moment(len(disk.trace.changes), copy.deepcopy(model), safe))
    return History(disk.trace, moments)


def is_safe(stream: StoredStream, disk: RecordingDisk) -> bool:
    """Whether the whole log is synced: then all that is acknowledged must stay."""
    return disk.is_synced(stream.path / stream.snapshot().manifest.log)


class Checker:
    """Opens what crashes leave. The same remains are looked at once."""

    def __init__(self, folder: Path, seed: int = 1) -> None:
        self.folder = folder
        self.rng = random.Random(seed)
        self.seen: set[object] = set()

    def check(self, history: History, upto: int) -> None:
        """Look at some of what may be left at a moment."""
        possible = history.possible(upto)
        for image in some_images(history.trace, upto, self.rng):
            key = (frozenset(image.items()), len(possible), id(possible[0]))
            if key not in self.seen:
                self.seen.add(key)
                self.recover(image, possible)

    def recover(self, image: Image, possible: Sequence[Model]) -> None:
        """Open a stream and read it; open it again and go on with it; and again."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            folder = Path(name)
            lay_out(image, folder)
            model = found_in(folder, possible)
            stream = opened(folder)
            more = append_more(stream, model)[-1]
            if self.rng.random() < 0.3:
                stream.flush(seal=self.rng.random() < 0.5)
            assert found_in(folder, [more]) is more
            if self.rng.random() < 0.25:
                self.query(opened(folder), more)

    def query(self, stream: StoredStream, model: Model) -> None:
        """Ask something, and look whether all parts of the stream agree."""
        snapshot = stream.snapshot()
        start = self.rng.randint(-25, 45)
        columns = self.rng.sample(COLUMNS, 2)
        part = TimeRange(start, start + self.rng.randint(0, 40))
        assert scanned(snapshot, columns, part) == model.naive.scan(columns, part)
        slices = snapshot.slices(part, 4)
        pieces = [row for each in slices for row in scanned(snapshot, COLUMNS, each.time_range)]
        assert pieces == model.naive.scan(COLUMNS, part)
        assert snapshot.row_count == len(model.naive.rows)
        for segment in snapshot.segments:
            check_segment(stream.path, segment)

    def crash_while_recovering(self, image: Image, possible: Sequence[Model]) -> None:
        """Crash again, at every moment of opening what is left and appending to it."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            folder = Path(name)
            lay_out(image, folder)
            before = found_in(folder, possible)
            with recorded(folder) as disk:
                grown = append_more(opened(folder), before)
        for upto in range(len(disk.trace.changes)):
            for left in some_images(disk.trace, upto, self.rng):
                self.recover(left, [before, *grown])


def some_images(trace: Trace, upto: int, rng: random.Random) -> Sequence[Image]:
    """Return what may be left at a moment, of the three that are drawn by lot only one."""
    *certain, whole, first, some = crash_images(trace, upto, rng, 1)
    drawn = [whole, first, some]
    return [*certain, *(drawn if EXPLORING else [rng.choice(drawn)])]


def opened(folder: Path) -> StoredStream:
    """Open the stream as a new process does."""
    forget()
    return Store.open(folder, create=False).stream("cars")


def found_in(folder: Path, possible: Sequence[Model]) -> Model:
    """Return which of the possible streams is there; fail if it is none of them."""
    snapshot = opened(folder).snapshot()
    found = scanned(snapshot)
    facts = (frozenset(snapshot.manifest.commit_ids), dict(snapshot.view.producers))
    for model in possible:
        if model.naive.scan(COLUMNS) == found and model.facts() == facts:
            return model
    expected = [(model.naive.scan(COLUMNS), model.facts()) for model in possible]
    pytest.fail(f"found {found} and {facts}, where one of {expected} should be")


def append_more(stream: StoredStream, model: Model) -> list[Model]:
    """Append something late, then something new; return what the stream is after each."""
    grown = [model]
    for ts in (3, 50):
        event: Row = {"ts": ts, "car": "more", "speed": None, "lane": ts}
        assert stream.append(table([event])).first_seq == len(grown[-1].naive.rows)
        grown.append(copy.deepcopy(grown[-1]))
        grown[-1].naive.append([event])
    return grown[1:]


def check_segment(folder: Path, segment: Segment) -> None:
    """Compare what a segment says of itself with its leaves and its indexes."""
    everything = TimeRange(segment.ts_min, segment.ts_max + 1)
    leaves = list(segment.tree(folder).leaves(everything))
    assert sum(sum(entries.column("rows").to_pylist()) for entries in leaves) == segment.rows
    for index in segment.indexes:
        end = max((start + length for start, length in index.extents), default=0)
        content = MAPPED.content(folder / index.file, end)
        reader = SecondaryReader(content, index.extents, SCHEMA.type_of(index.attribute))
        reader.verify()
        assert reader.rows <= segment.rows


def events(*times: int, size: int = 0) -> list[Row]:
    """Return events; with a size, they are as many bytes larger."""
    return [
        {"ts": ts, "car": "x" * size, "speed": float(ts), "lane": lane}
        for lane, ts in enumerate(times)
    ]


SMALL = [("append", events(*range(start, start + 3))) for start in range(0, 12, 3)]
HISTORIES: dict[str, tuple[list[Step], dict[str, object]]] = {
    "small appends": ([*SMALL, ("append", events(40, size=700)), ("append", events(41))], {}),
    "bulk appends": ([("append", events(*range(at, at + 20))) for at in (0, 20, 40)], {}),
    "late events": (
        [
            ("append", events(*range(0, 40, 2))),
            ("append", events(3, 5, 7, 9, 11)),
            ("flush", False),
            ("append", events(-3, 1, 15)),
            ("append", events(*range(40, 60))),
            ("flush", False),
        ],
        {"indexes": ("speed", "car")},
    ),
    "splits": ([("append", events(*range(at, at + 18))) for at in (0, 10, 35)], {"split_us": 10}),
    "seals": (
        [*SMALL[:2], ("flush", True), *SMALL[2:], ("reopen",), ("flush", False), ("flush", True)],
        {"indexes": ("lane",)},
    ),
    "commits": (
        [
            ("append", events(1)),
            ("commit", [events(5, 2), events(3)], "x"),
            ("append", events(4)),
            ("commit", [events(9)], "x"),
            ("commit", [events(7)], "y"),
            ("commit", [events(8)], None),
            ("compact",),
        ],
        {},
    ),
    "producers": (
        [
            ("produce", events(1), "p", 3),
            ("produce", events(2), "p", 3),
            ("produce", [], "q", 1),
            ("produce", events(*range(30)), "q", 2),
            ("flush", True),
            ("produce", events(8), "p", 4),
        ],
        {},
    ),
    "a long log": ([("append", events(at, size=250)) for at in range(12)], {}),
    "syncs now and then": (
        [*SMALL[:2], ("interval passes",), *SMALL[2:], ("sync",), ("append", events(50, size=900))],
        {},
    ),
    "as they come": (
        [("append", events(9, 1, 5)), ("flush", False), ("append", events(*range(20, 0, -1)))],
        {"order": "arrival"},
    ),
}


LONG = 50
"""With so many changes of the disk, every other moment is enough; with twice as many, every third.
"""
LOGGED = ["small appends", "commits", "producers", "a long log"]
"""Histories in which it matters when the log is synced."""


def scripted(folder: Path, name: str, durability: str) -> History:
    """Run one of the histories."""
    steps, chosen = HISTORIES[name]
    options = {"durability": durability, "commit_interval_ms": HOUR_MS, **chosen}
    return run(folder, steps, StreamOptions.from_json(options))


@pytest.mark.parametrize(
    ("name", "durability"),
    [
        *((name, "batch") for name in HISTORIES),
        *((name, "none") for name in LOGGED),
        ("syncs now and then", "group"),
    ],
)
def test_a_crash_at_every_moment(tmp_path: Path, name: str, durability: str) -> None:
    with tiny_and_hasty():
        history = scripted(tmp_path / "db", name, durability)
        checker = Checker(tmp_path)
        changes = len(history.trace.changes)
        for upto in range(0, changes + 1, 1 if EXPLORING else 1 + changes // LONG):
            checker.check(history, upto)


@pytest.mark.parametrize(("name", "durability"), [("small appends", "none"), ("seals", "batch")])
def test_a_crash_while_recovering_from_one(tmp_path: Path, name: str, durability: str) -> None:
    with tiny_and_hasty():
        history = scripted(tmp_path / "db", name, durability)
        checker = Checker(tmp_path)
        for upto in range(3, len(history.trace.changes), 11 if EXPLORING else 23):
            *_, image = crash_images(history.trace, upto, checker.rng)
            checker.crash_while_recovering(image, history.possible(upto))


batches = st.lists(rows, max_size=15)
steps = st.one_of(
    st.tuples(st.just("append"), batches),
    st.tuples(st.just("produce"), batches, st.sampled_from(["p", "q"]), st.integers(0, 3)),
    st.tuples(st.just("commit"), st.lists(batches, max_size=3), st.sampled_from(["x", "y", None])),
    st.tuples(st.just("flush"), st.booleans()),
    st.sampled_from([("compact",), ("sync",), ("interval passes",), ("reopen",)]),
)
all_options = st.builds(
    StreamOptions,
    durability=st.sampled_from(["batch", "group", "none"]),
    commit_interval_ms=st.just(HOUR_MS),
    split_us=st.sampled_from([None, 10]),
    order=st.sampled_from(["time", "time", "arrival"]),
    indexes=st.sampled_from([(), ("speed", "car")]),
)


@settings(deadline=None, max_examples=30)
@given(st.lists(steps, min_size=1, max_size=7), all_options, st.integers(0, 2**32))
def test_a_crash_in_any_history(history: list[Step], options: StreamOptions, seed: int) -> None:
    with tempfile.TemporaryDirectory() as name, tiny_and_hasty():
        happened = run(Path(name) / "db", history, options)
        checker = Checker(Path(name), seed)
        for _ in range(8 if EXPLORING else 4):
            checker.check(happened, checker.rng.randint(0, len(happened.trace.changes)))


def test_streams_come_and_go_whole(tmp_path: Path) -> None:
    kept = events(1, 2)
    with tiny_and_hasty():
        root = tmp_path / "disk"
        root.mkdir()
        done: list[tuple[int, set[str]]] = [(0, set())]
        with recorded(root) as disk:
            store = Store.open(root / "db")
            for name in ("cars", "trucks"):
                store.create_stream(name, SCHEMA)
                done.append((len(disk.trace.changes), {*done[-1][1], name}))
            store.stream("cars").append(table(kept))
            filled = len(disk.trace.changes)
            store.drop_stream("cars")
            done.append((len(disk.trace.changes), {"trucks"}))
        rng = random.Random(1)
        for upto in range(len(disk.trace.changes) + 1):
            count = sum(changes <= upto for changes, _ in done)
            possible = [names for _, names in done[count - 1 : count + 1]]
            for image in some_images(disk.trace, upto, rng):
                with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
                    lay_out(image, Path(folder))
                    forget()
                    left = Store.open(Path(folder) / "db")
                    assert set(left.streams()) in possible
                    if "cars" in left.streams() and upto >= filled:
                        assert len(scanned(left.stream("cars").snapshot())) == len(kept)
                    for name in {"cars", "trucks"} - set(left.streams()):
                        left.create_stream(name, SCHEMA)
                    for name in left.streams():
                        left.stream(name).append(table(kept))
                        left.drop_stream(name)
                    assert left.streams() == ()


def test_images_tear_records_in_the_middle(tmp_path: Path) -> None:
    with tiny_and_hasty():
        history = scripted(tmp_path / "db", "small appends", "batch")
    changes = history.trace.changes
    upto, large = max(
        ((at, change) for at, change in enumerate(changes) if isinstance(change, Write)),
        key=lambda pair: len(pair[1].content),
    )
    kinds = set()
    for image in crash_images(history.trace, upto, random.Random(1), 20):
        log = max((content or b"" for path, content in image.items() if path.suffix == ".log"))
        found = log[large.offset :].ljust(len(large.content), b"\0")
        kinds.add((any(found), found == large.content, len(log) < large.offset + len(found)))
    assert {(True, False, True), (True, False, False), (True, True, False)} <= kinds
