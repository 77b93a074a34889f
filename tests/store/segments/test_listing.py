"""Segments in listings: written once, read when asked for, as if they were all in the manifest."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import StoreError
from eventide.schema import DataType
from eventide.store import StoredStream
from eventide.store.options import StreamOptions
from eventide.store.segments.listing import Listing, SegmentList, in_listings
from eventide.store.segments.manifest import decode_manifest, load_manifest, manifest_path
from eventide.store.segments.segment import Segment
from eventide.store.upkeep.compaction import RETIRED_KEPT_S
from eventide.store.upkeep.repair import repair_stream
from eventide.store.upkeep.verify import verify_stream
from tests.store.events import at, new_stream, reopened, times

FEW = 3
"""How many segments, or listings, a listing has here."""
APART = StreamOptions(split_us=10)
"""Segments of different periods are not merged."""


@pytest.fixture(autouse=True)
def short_listings() -> Iterator[None]:
    with patch("eventide.store.segments.listing.LISTED", FEW):
        yield


def with_segments(folder: Path, count: int) -> StoredStream:
    """Return a stream with so many segments, a period each."""
    stream = new_stream(folder, options=APART)
    add_segments(stream, 0, count)
    return stream


def add_segments(stream: StoredStream, first: int, count: int) -> None:
    """Seal a segment of one event for each of so many periods."""
    for number in range(first, first + count):
        stream.append(at(10 * number))
        stream.flush(seal=True)


def listings(stream: StoredStream) -> set[str]:
    """Return the files of listings that there are."""
    return {path.name for path in stream.path.glob("listing-*.json")}


def newest(stream: StoredStream) -> Path:
    """Return the file of the newest manifest."""
    return manifest_path(stream.path, stream.snapshot().version)


def tops(segments: SegmentList) -> list[Listing]:
    """Return the listings that a manifest names."""
    return [part for part in segments.parts if isinstance(part, Listing)]


# --- lists --------------------------------------------------------------------------------------

segments_of_a_stream: list[Segment] = []


@pytest.fixture(scope="module", autouse=True)
def segments(tmp_path_factory: pytest.TempPathFactory) -> None:
    stream = with_segments(tmp_path_factory.mktemp("segments"), 12)
    segments_of_a_stream[:] = stream.snapshot().segments


# What a commit does: segments are added, and any of those there are go.
steps = st.lists(
    st.tuples(st.integers(0, 5), st.sets(st.integers(0, 11), max_size=2)), min_size=1, max_size=8
)


@given(steps)
@settings(deadline=None)
def test_listed_segments_are_those_that_were_given(
    commits: list[tuple[int, set[int]]],
) -> None:
    waiting = list(segments_of_a_stream)
    with TemporaryDirectory() as name:
        held, plain = SegmentList(), list[Segment]()
        for added, gone in commits:
            come = [waiting.pop() for _ in range(min(added, len(waiting)))]
            waiting += [plain[place] for place in gone if place < len(plain)]
            plain = [each for place, each in enumerate(plain) if place not in gone] + come
            before = {each.file for each in held.listings}
            wanted = held.with_more(come) if not gone else SegmentList(plain)
            held = in_listings(Path(name), wanted, held)
            assert held == tuple(plain)
            assert tuple(held) == tuple(plain)
            assert (len(held), held.rows) == (len(plain), len(plain))
            levels = [part.level if isinstance(part, Listing) else -1 for part in held.parts]
            assert levels == sorted(levels, reverse=True)
            assert all(levels.count(level) < FEW for level in levels)
            if not gone:
                assert before <= {each.file for each in held.listings}
            again = [Listing.from_json(Path(name), each.to_json()) for each in held.listings]
            assert [each.segments for each in again] == [each.segments for each in held.listings]
            read = SegmentList(Listing.from_json(Path(name), top.to_json()) for top in tops(held))
            assert [each.file for each in read.listings] == [each.file for each in held.listings]
            assert pickle.loads(pickle.dumps(held)) == held


# --- streams ------------------------------------------------------------------------------------


def test_a_commit_does_not_write_what_did_not_change(tmp_path: Path) -> None:
    stream = with_segments(tmp_path, 2 * FEW)
    before = {name: (stream.path / name).stat().st_mtime_ns for name in listings(stream)}
    assert len(before) == 2
    short = newest(stream).stat().st_size
    add_segments(stream, 2 * FEW, FEW)
    assert {name: (stream.path / name).stat().st_mtime_ns for name in before} == before
    assert len(listings(stream)) == 4
    assert len(tops(stream.snapshot().manifest.segments)) == 1
    assert newest(stream).stat().st_size < short
    assert times(reopened(stream).snapshot()) == [10 * number for number in range(3 * FEW)]


def test_few_segments_need_no_listing_and_no_new_format(tmp_path: Path) -> None:
    stream = with_segments(tmp_path, FEW - 1)
    assert not listings(stream)
    assert newest(stream).read_bytes().startswith(b'{"format":3,')
    add_segments(stream, FEW - 1, 1)
    assert newest(stream).read_bytes().startswith(b'{"format":4,')


@pytest.mark.parametrize("count", [7, 10])
def test_opening_and_counting_reads_no_listing(tmp_path: Path, count: int) -> None:
    stream = with_segments(tmp_path, count)
    for name in listings(stream):
        (stream.path / name).write_bytes(b"damaged")
    again = reopened(stream)
    assert again.snapshot().row_count == count
    with pytest.raises(StoreError, match=r"listing-.*is damaged"):
        times(again.snapshot())


def test_a_commit_reads_no_listing(tmp_path: Path) -> None:
    stream = with_segments(tmp_path, 2 * FEW * FEW)
    again = reopened(stream)
    with patch.object(
        Listing, "read_file", side_effect=AssertionError("nothing of it has changed")
    ):
        again.add_column("more", DataType.parse("int64"))
    assert again.snapshot().row_count == 2 * FEW * FEW


def test_a_manifest_names_few_of_many_listings(tmp_path: Path) -> None:
    stream = with_segments(tmp_path, FEW**3 + FEW + 1)
    parts = stream.snapshot().manifest.segments.parts
    assert [part.level for part in parts if isinstance(part, Listing)] == [2, 0]
    assert len(parts) == 3
    every = [10 * number for number in range(FEW**3 + FEW + 1)]
    assert times(reopened(stream).snapshot()) == every
    assert list(verify_stream(stream)) == []
    # Segments from the oldest on go: the listings with the others are as before.
    names = listings(stream)
    assert reopened(stream).drop_before(30) == 3
    assert len(listings(stream) - names) <= 3
    assert times(reopened(stream).snapshot()) == every[3:]


def test_another_process_goes_on_with_listings(tmp_path: Path) -> None:
    stream = with_segments(tmp_path, 4)
    (first,) = listings(stream)
    again = reopened(stream)
    add_segments(again, 4, 4)
    assert first in listings(again)
    assert times(again.snapshot()) == [10 * number for number in range(8)]


def test_a_listing_goes_with_the_segments_it_had(tmp_path: Path) -> None:
    stream = with_segments(tmp_path, 2 * FEW)
    earlier, names = stream.snapshot(), listings(stream)
    assert stream.drop_before(10) == 1
    assert names < listings(stream)  # an older snapshot may be read for an hour
    assert times(earlier) == [10 * number for number in range(2 * FEW)]
    assert times(reopened(stream).snapshot()) == [10 * number for number in range(1, 2 * FEW)]
    with patch("time.time", lambda: time.time_ns() / 1e9 + RETIRED_KEPT_S + 1):
        stream.compact()
    assert listings(stream) == {each.file for each in stream.snapshot().manifest.segments.listings}


# --- damage -------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [None, b"", b"{}", b'{"forms":[],"segments":[]}\n'])
@pytest.mark.parametrize(("count", "which"), [(2 * FEW + 1, 0), (FEW * FEW, 0), (FEW * FEW, 2)])
def test_a_damaged_listing_is_found_and_repaired(
    tmp_path: Path, content: bytes | None, count: int, which: int
) -> None:
    stream = with_segments(tmp_path, count)
    path = stream.path / stream.snapshot().manifest.segments.listings[which].file
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    again = reopened(stream)
    with pytest.raises(StoreError, match=path.name):
        times(again.snapshot())
    found = "\n".join(map(str, verify_stream(stream.path)))
    assert path.name in found
    repair_stream(stream.path)
    assert times(reopened(stream).snapshot()) == [10 * number for number in range(count)]
    assert not [found for found in verify_stream(stream.path) if found.severity != "info"]


def test_every_flip_in_a_listing_is_found(tmp_path: Path) -> None:
    stream = with_segments(tmp_path, FEW)
    (listing,) = load_manifest(stream.path).segments.listings
    path = stream.path / listing.file
    content = path.read_bytes()
    for place in range(0, len(content), 7):
        path.write_bytes(
            content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :]
        )
        with pytest.raises(StoreError, match="checksum"):
            listing.read_file()


@pytest.mark.parametrize(
    "changed",
    [
        {"listing": "../listing-00000000000000000000000000000000.json"},
        {"listing": 7},
        {"segments": 0},
        {"rows": "3"},
        {"level": -1},
        {"level": 1.5},
        {"checksum": None},
    ],
)
def test_a_listing_that_cannot_be_is_refused(tmp_path: Path, changed: dict[str, object]) -> None:
    stream = with_segments(tmp_path, FEW)
    (listing,) = load_manifest(stream.path).segments.listings
    with pytest.raises((ValueError, TypeError)):
        Listing.from_json(stream.path, {**listing.to_json(), **changed})


def test_a_listing_with_other_segments_is_refused(tmp_path: Path) -> None:
    stream = with_segments(tmp_path, FEW)
    (listing,) = load_manifest(stream.path).segments.listings
    other = Listing.from_json(stream.path, {**listing.to_json(), "rows": FEW + 1})
    with pytest.raises(StoreError, match="other segments"):
        other.read_file()
    assert decode_manifest(newest(stream).read_bytes(), newest(stream)).segments.rows == FEW


def test_listings_cannot_go_round_in_circles(tmp_path: Path) -> None:
    stream = with_segments(tmp_path, FEW)
    (listing,) = load_manifest(stream.path).segments.listings
    upper = Listing.write(stream.path, (listing,), 1)
    with pytest.raises(StoreError, match="KeyError"):
        Listing.from_json(stream.path, {**upper.to_json(), "level": 0}).read_file()
    wrong = Listing.write(stream.path, (upper,), 1)
    with pytest.raises(StoreError, match="only lower ones"):
        Listing.from_json(stream.path, wrong.to_json()).read_file()
