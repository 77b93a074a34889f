"""A small stream that has everything, and copies of it with damage done."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from eventide.errors import StoreError
from eventide.instants import ALL_TIME, TimeRange
from eventide.store import Snapshot, Store, StoredStream, StreamOptions
from eventide.store.files.frame import HEADER, Kind, read_frame
from eventide.store.files.mapped import MAPPED, map_file, stamp_of
from eventide.store.index.ranges import ValueRange
from eventide.store.index.secondary import DamagedRunError, SecondaryReader
from eventide.store.segments.segment import Segment
from eventide.store.segments.tree import place
from eventide.store.upkeep.repair import Repair, repair_stream
from eventide.store.upkeep.verify import verify_stream
from eventide.store.writing.open_stream import OpenStream
from tests.naive.store import Row
from tests.store.events import COLUMNS, SCHEMA, table, values

Event = tuple[object, ...]


@dataclass(frozen=True)
class Original:
    """A whole stream: its files, what it holds, and what it answers."""

    stream: StoredStream
    files: dict[str, bytes]
    snapshot: Snapshot
    events: list[Event]
    answers: list[object]
    numbers: Iterator[int]

    def copy(self, folder: Path, **changed: bytes | None) -> Path:
        """Write the files to a new folder, some of them changed, or missing if None."""
        target = folder / str(next(self.numbers)) / "streams" / "cars"
        target.mkdir(parents=True)
        for name, content in {**self.files, **changed}.items():
            if content is not None:
                (target / name).write_bytes(content)
        return target


def make(folder: Path) -> Original:
    """Make a stream with sealed, staged and open segments, late events, an index and a log."""
    options = StreamOptions(indexes=("car",))
    stream = Store.open(folder).create_stream("cars", SCHEMA, options)
    for start in (0, 100):
        stream.commit([stream.stage(table(rows(start, 11)).to_batches())])
    for start in (200, 210, 220, 230):
        stream.append(table(rows(start, 4)))
        stream.flush()
    stream.append(table(rows(214, 3)))
    stream.flush(seal=True)
    for start in (300, 310, 320):
        stream.append(table(rows(start, 5)))
        stream.flush()
    stream.append(table(rows(311, 3)))
    stream.flush()
    stream.append(table(rows(500, 2)))
    stream.append(table(rows(305, 2)))
    stream.append(table(rows(502, 2)))
    snapshot = stream.snapshot()
    assert snapshot.view.segment is not None
    assert snapshot.view.tail
    assert snapshot.view.queue
    files = {path.name: path.read_bytes() for path in stream.path.iterdir() if path.name != "lock"}
    listed = {name: files[name] for name in files if name in snapshot.view.files}
    manifests = {name: files[name] for name in files if name.startswith("manifest-")}
    kept = {**listed, **manifests}
    found = answers(snapshot)
    return Original(stream, kept, snapshot, events_of(snapshot), found, itertools.count())


def rows(start: int, count: int) -> list[Row]:
    """Return events from a time on."""
    return [
        {
            "ts": start + step,
            "car": "abcde"[step % 5],
            "speed": step / 3,
            "lane": start * 1000 + step,
        }
        for step in range(count)
    ]


def events_of(snapshot: Snapshot) -> list[Event]:
    """Return all events in order."""
    batches = list(snapshot.scan(COLUMNS))
    columns = pa.Table.from_batches(batches, schema=SCHEMA.arrow).columns
    return list(zip(*(values(column.combine_chunks()) for column in columns), strict=True))


def repaired(folder: Path) -> Repair:
    """Repair a stream, and make sure that it is whole, and stays so when it is written to."""
    done = repair_stream(folder)
    assert [each for each in verify_stream(folder) if each.severity == "damage"] == []
    count = opened(folder).row_count
    stream = Store(folder.parent.parent).stream(folder.name)
    stream.append(table(rows(600, 4)))
    stream.append(table(rows(302, 1)))
    stream.flush()
    assert [each for each in verify_stream(folder) if each.severity == "damage"] == []
    assert opened(folder).row_count == count + 5
    return done


def opened(folder: Path) -> Snapshot:
    """Return a stream as a process would see it that has read nothing before."""
    return Snapshot(folder, OpenStream(folder).view())


def answers(snapshot: Snapshot) -> list[object]:
    """Return all that a stream answers: a scan, conditions, aggregates, lookups."""
    found: list[object] = [events_of(snapshot)]
    where = snapshot.scan(COLUMNS, where={"car": "b"})
    found.append([values(batch.column("lane")) for batch in where])
    for segment in snapshot.segments:
        found += [covered(snapshot.path, segment, each) for each in (ALL_TIME, TimeRange(95, 330))]
        found += looked_up(snapshot.path, segment)
    return found


def covered(folder: Path, segment: Segment, times: TimeRange) -> object:
    """Return what the time index says of a time."""
    names = ["rows", "lane.whole.low", "speed.max"]
    whole, cut = segment.tree(folder).cover(times, names)
    return sorted(
        repr(row)
        for batch in (*whole, *(each.select(names) for each in cut))
        for row in batch.to_pylist()
    )


def looked_up(folder: Path, segment: Segment) -> Iterator[object]:
    """Yield what the indexes of a segment answer."""
    for index in segment.indexes:
        end = max(start + length for start, length in index.extents)
        data_type = segment.form.schema.type_of(index.attribute)
        try:
            reader = SecondaryReader(
                MAPPED.content(folder / index.file, end), index.extents, data_type
            )
            for wanted in (ValueRange.of("a"), ValueRange(low="b", high="d")):
                yield [part.tolist() for part in reader.lookup(wanted)]
        except DamagedRunError as error:
            raise StoreError(str(error)) from error


def answers_of(folder: Path) -> list[object] | None:
    """Return the answers of a stream, or None if it says that it is damaged."""
    try:
        return answers(opened(folder))
    except StoreError:
        return None


def frames_of(folder: Path, segment: Segment) -> Iterator[tuple[Kind, int, int]]:
    """Yield the frames that a reader of a segment looks at, without their padding."""
    content, stamp = map_file(folder / segment.file), stamp_of(segment.file)
    tree = segment.tree(folder)
    waiting = [(entries, level) for level, entries in enumerate(tree.levels)]
    addresses = [0, segment.root]
    while waiting:
        entries, level = waiting.pop()
        addresses += place(entries, "address").tolist()
        if level:
            waiting += [(tree.child(entries, row), level - 1) for row in range(entries.num_rows)]
    for address in addresses:
        frame = read_frame(content, address, stamp)
        yield frame.kind, address, address + HEADER.size + frame.payload.size


def flipped(content: bytes, at: int, bit: int) -> bytes:
    """Return bytes with one bit changed."""
    return content[:at] + bytes([content[at] ^ (1 << bit)]) + content[at + 1 :]
