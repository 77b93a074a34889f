"""Every change to a stored byte is found, or does not matter; a repair keeps what is whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from eventide.errors import StoreError
from eventide.store import Store
from eventide.store.files.frame import ALIGNMENT, HEADER, DamagedFrameError, Kind, read_frame
from eventide.store.files.mapped import stamp_of
from eventide.store.index.secondary.run import END_SIZE, DamagedRunError, Run
from eventide.store.segments.manifest import decode_manifest, encode_manifest, load_manifest
from eventide.store.upkeep.repair import repair_stream
from eventide.store.upkeep.repair.commit import ASIDE
from eventide.store.upkeep.verify import verify_stream
from eventide.store.writing.log import DamagedLogError, RecordKind, read_records
from eventide.store.writing.log import stamp_of as log_stamp
from eventide.store.writing.log_sectors import SECTOR
from tests.exploring import EXPLORING
from tests.store.events import SCHEMA, table, tiny_files
from tests.store.upkeep.damage import (
    Event,
    Original,
    answers_of,
    events_of,
    flipped,
    frames_of,
    make,
    opened,
    rows,
)

APART, MOST = (829, 173), 3
"""How far apart the bytes of a segment and of an index are that are flipped, and how many files of
a kind are damaged in every way."""
if not EXPLORING:
    APART, MOST = (2503, 521), 1
PLACES = (0.01, 0.3, 0.97)
FRACTION = re.compile(rb"(?<=[,\[:])-?\d+(\.\d+|(?=e))(e[+-]?\d+)?(?=[,\]}])")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Original]:
    with tiny_files():
        yield make(tmp_path_factory.mktemp("original"))


def damage_in(folder: Path) -> list[str]:
    return [str(each) for each in verify_stream(folder) if each.severity == "damage"]


def of_kind(original: Original, suffix: str) -> list[str]:
    return sorted(name for name in original.files if name.endswith(suffix))


def read_bytes(original: Original, name: str) -> set[int]:
    """Return the bytes of a segment file that readers look at."""
    found: set[int] = set()
    for segment in original.snapshot.segments:
        if segment.file == name:
            for _, start, end in frames_of(original.stream.path, segment):
                found |= set(range(start, end))
    return found


def check(original: Original, tmp_path: Path, name: str, content: bytes | None) -> bool:
    """Answers are right or refused, and `verify` says which. Return whether it was found."""
    folder = original.copy(tmp_path, **{name: content})
    damage, found = damage_in(folder), answers_of(folder)
    if found is None:
        assert damage, f"{name} cannot be read, and nobody knows why"
    elif name.endswith(".log") and not damage:
        # A log that ends early looks like one that was torn by a power failure.
        assert set(events_of(opened(folder))) <= set(original.events)
    else:
        assert found == original.answers
    return bool(damage)


def check_repair(original: Original, tmp_path: Path, name: str, content: bytes | None) -> None:
    """A repair makes a stream whole, keeps all files, and all events that no damage touched."""
    folder = original.copy(tmp_path, **{name: content})
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    planned = repair_stream(folder, dry_run=True)
    assert {path.name for path in folder.iterdir()} == {*before, "lock"}
    done = repair_stream(folder)
    assert done == planned
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    for kept, old in before.items():
        assert after.get(kept, after.get(kept + ASIDE)) == old, "a file was lost"
    assert damage_in(folder) == []
    assert repair_stream(folder).steps == ()
    check_left(original, events_of(opened(folder)), name, content)


def check_left(original: Original, left: list[Event], name: str, content: bytes | None) -> None:
    """What is left was there before, once; and everything is left that no damage has touched."""
    assert set(left) <= set(original.events)
    assert left == [event for event in original.events if event in set(left)]
    if name.endswith(".log"):
        assert len(left) >= sum(segment.rows for segment in original.snapshot.segments)
        return
    old, content = original.files[name], content or b""
    changed = {at for at in range(len(old)) if content[at : at + 1] != old[at : at + 1]}
    lost = 0
    for segment in original.snapshot.segments:
        if segment.file == name:
            for kind, start, end in frames_of(original.stream.path, segment):
                if kind == Kind.LEAF and changed & set(range(start, end)):
                    lost += 3 * 2  # rows of a leaf, with what late events may add
    assert len(left) >= len(original.events) - lost


# --- single bits ------------------------------------------------------------------------------


def test_every_flip_in_a_manifest_is_found(original: Original) -> None:
    path = Path(of_kind(original, ".json")[-1])
    content = original.files[path.name]
    whole = decode_manifest(content, path)
    assert encode_manifest(whole) == content
    # Only how a number is spelled may change unseen: the last of 17 digits, or a large E.
    spelled = {at for found in FRACTION.finditer(content) for at in range(*found.span())}
    for at in range(len(content)):
        try:
            assert decode_manifest(flipped(content, at, at % 8), path) == whole
        except StoreError:
            continue
        assert at in spelled


def test_every_flip_in_a_log_is_found(original: Original) -> None:
    (name,) = of_kind(original, ".log")
    content, schema = original.files[name], original.snapshot.schema.arrow
    schemas = {RecordKind.CHECKPOINT: schema, RecordKind.EVENTS: schema.remove(1)}
    end = original.snapshot.view.log_end
    for at in range(end):
        broken = flipped(content, at, at % 8)
        with pytest.raises(DamagedLogError, match="fails its checksum"):
            list(read_records(broken, log_stamp(name), schemas, synced=True))
    # Behind it are bytes of an older log. They may be anything but the end of ours.
    assert len(content) > end
    records = list(read_records(content, log_stamp(name), schemas, synced=True))
    for at in range(end, len(content), 7):
        broken = flipped(content, at, at % 8)
        with suppress(DamagedLogError):
            assert list(read_records(broken, log_stamp(name), schemas, synced=True)) == records


def test_every_flip_in_the_header_of_a_frame_is_found(original: Original) -> None:
    for segment in original.snapshot.segments:
        content = bytearray(original.files[segment.file])
        file = pa.py_buffer(content)
        for _, start, _ in frames_of(original.stream.path, segment):
            for at in range(start, start + HEADER.size):
                for bit in range(8):
                    content[at] ^= 1 << bit
                    with pytest.raises(DamagedFrameError):
                        read_frame(file, start, stamp_of(segment.file))
                    content[at] ^= 1 << bit


def test_every_flip_in_the_end_of_an_index_run_is_found(original: Original) -> None:
    for segment in original.snapshot.segments:
        for index in segment.indexes:
            content, (offset, length) = original.files[index.file], index.extents[-1]
            data_type = segment.form.schema.type_of(index.attribute)
            for at in range(offset + length - END_SIZE, offset + length):
                broken = pa.py_buffer(flipped(content, at, at % 8))
                with pytest.raises(DamagedRunError):
                    Run(broken, offset, length, data_type)


def test_a_flip_in_a_segment_is_found_or_not_read(original: Original, tmp_path: Path) -> None:
    for name in of_kind(original, ".ev"):
        content, looked_at = original.files[name], read_bytes(original, name)
        for at in range(48, len(content), APART[0]):
            found = check(original, tmp_path, name, flipped(content, at, at % 8))
            assert found == (at in looked_at)


def test_a_flip_in_an_index_is_found(original: Original, tmp_path: Path) -> None:
    extents = {
        index.file: index.extents
        for segment in original.snapshot.segments
        for index in segment.indexes
    }
    for name in of_kind(original, ".ix"):
        content = original.files[name]
        for at in range(5, len(content), APART[1]):
            found = check(original, tmp_path, name, flipped(content, at, at % 8))
            listed = any(start <= at < start + length for start, length in extents[name])
            # The checksums of a filter are padded; nothing else goes unread.
            assert found == listed or (not found and content[at] == 0)


def test_a_flip_in_any_kept_manifest_is_found(original: Original, tmp_path: Path) -> None:
    for name in of_kind(original, ".json"):
        content = original.files[name]
        assert check(original, tmp_path, name, flipped(content, len(content) // 2, 0))


@pytest.mark.parametrize("suffix", [".ev", ".ix", ".json", ".log"])
def test_a_flip_is_repaired(original: Original, tmp_path: Path, suffix: str) -> None:
    for turn, name in enumerate(of_kind(original, suffix)[::-1]):
        content = original.files[name]
        for part in PLACES if turn < MOST else PLACES[turn % 3 :][:1]:
            at = int(part * len(content))
            check_repair(original, tmp_path, name, flipped(content, at, at % 8))


# --- more than a bit --------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".ev", ".ix", ".json", ".log"])
def test_a_file_that_ends_early(original: Original, tmp_path: Path, suffix: str) -> None:
    for name in of_kind(original, suffix)[-MOST:]:
        content = original.files[name]
        for end in (0, 1, len(content) // 3, len(content) // 2 + 60, len(content) - 1):
            check(original, tmp_path, name, content[:end])
        check_repair(original, tmp_path, name, content[: len(content) // 2])


@pytest.mark.parametrize("suffix", [".ev", ".ix", ".json", ".log"])
def test_a_file_that_is_missing(original: Original, tmp_path: Path, suffix: str) -> None:
    for name in of_kind(original, suffix)[:-1] if suffix == ".json" else of_kind(original, suffix):
        check(original, tmp_path, name, None)
        check_repair(original, tmp_path, name, None)


@pytest.mark.parametrize("suffix", [".ev", ".ix", ".json", ".log"])
def test_a_sector_of_zeros(original: Original, tmp_path: Path, suffix: str) -> None:
    for name in of_kind(original, suffix)[-MOST:]:
        content = original.files[name]
        starts = range(0, len(content), max(1, len(content) // SECTOR // 5) * SECTOR)
        for number, start in enumerate(starts):
            broken = content[:start] + bytes(SECTOR) + content[start + SECTOR :]
            check(original, tmp_path, name, broken[: len(content)])
            if number % 3 == 1:
                check_repair(original, tmp_path, name, broken[: len(content)])


@pytest.mark.parametrize("size", [ALIGNMENT, SECTOR])
def test_blocks_that_changed_places(original: Original, tmp_path: Path, size: int) -> None:
    for name in of_kind(original, ".ev"):
        content = original.files[name]
        for start in range(0, len(content) - 2 * size, size * (SECTOR * 7 // size)):
            one, other = content[start : start + size], content[start + size : start + 2 * size]
            broken = content[:start] + other + one + content[start + 2 * size :]
            check(original, tmp_path, name, broken)


def log_records(original: Original) -> tuple[str, bytes, list[int]]:
    """Return the log, and where its records begin."""
    (name,) = of_kind(original, ".log")
    schema = original.snapshot.schema.arrow
    schemas = {RecordKind.CHECKPOINT: schema, RecordKind.EVENTS: schema.remove(1)}
    content = original.files[name]
    records = list(read_records(content, log_stamp(name), schemas, synced=True))
    return name, content, [0, *(record.end for record in records[:-1])]


def test_no_synced_record_vanishes_under_zeros(original: Original, tmp_path: Path) -> None:
    name, content, starts = log_records(original)
    for start, following in pairwise(starts):
        end = min(start + SECTOR, following)
        broken = content[:start] + bytes(end - start) + content[end:]
        with pytest.raises(StoreError, match="fails its checksum"):
            opened(original.copy(tmp_path, **{name: broken}))


def test_a_last_record_that_was_torn_is_not_there(original: Original, tmp_path: Path) -> None:
    name, content, starts = log_records(original)
    last = starts[-1]
    for torn in (content[:last], content[: last + 20], content[:last] + bytes(SECTOR)):
        left = events_of(opened(original.copy(tmp_path, **{name: torn})))
        assert len(left) == len(original.events) - 2


@pytest.mark.parametrize("content", [b"", bytes(40), bytes(4 * SECTOR)])
def test_a_log_without_its_first_checkpoint_is_damaged(
    original: Original, tmp_path: Path, content: bytes
) -> None:
    name = original.snapshot.manifest.log
    with pytest.raises(StoreError, match="its first record is missing"):
        opened(original.copy(tmp_path, **{name: content}))


def test_a_segment_with_the_content_of_another(original: Original, tmp_path: Path) -> None:
    one, other = of_kind(original, ".ev")[:2]
    assert check(original, tmp_path, one, original.files[other])


def test_a_segment_of_another_stream_is_refused(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    paths: list[Path] = []
    for name, lane in (("a", 1), ("b", 2)):
        stream = store.create_stream(name, SCHEMA)
        stream.append(table([{**row, "lane": lane} for row in rows(0, 5)]))
        stream.flush(seal=True)
        paths += stream.path.glob("seg-*.ev")
    one, other = paths
    one.unlink()
    one.write_bytes(other.read_bytes())
    # Places and lengths are the same in both: only the stamp tells them apart.
    with pytest.raises(StoreError, match="no frame begins"):
        events_of(opened(one.parent))


def test_the_newest_manifest_is_not_missed_silently(original: Original, tmp_path: Path) -> None:
    newest = of_kind(original, ".json")[-1]
    folder = original.copy(tmp_path, **{newest: b"{}"})
    with pytest.raises(StoreError, match="eventide repair"):
        load_manifest(folder)
    repair_stream(folder)
    assert events_of(opened(folder)) == original.events


def test_files_of_another_format_are_refused(original: Original, tmp_path: Path) -> None:
    newest = of_kind(original, ".json")[-1]
    content = original.files[newest].replace(b'"format":3', b'"format":1')
    with pytest.raises(StoreError, match="has format 1; this Eventide reads up to 4"):
        opened(original.copy(tmp_path, **{newest: content}))
