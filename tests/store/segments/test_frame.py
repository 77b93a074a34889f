"""Frames of a segment: found from the end, for any cut of the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest

from eventide.schema import Schema
from eventide.store.files.frame import (
    HEADER,
    DamagedFrameError,
    Frame,
    Kind,
    frame_bytes,
    frames_backwards,
    read_frame,
)
from eventide.store.files.mapped import map_file, stamp_of
from eventide.store.segments.segment import SegmentForm
from eventide.store.segments.segment_writer import SegmentWriter
from eventide.store.upkeep.repair.salvage import newest_root

SCHEMA = Schema.of({"lane": "int64"})
FORM = SegmentForm.of(SCHEMA, (0,), ("lane",), (), "lz4", in_order=True)
STAMP = bytes(range(16))
FAN_OUT = 4


def frames_from(file: pa.Buffer, address: int, stamp: bytes) -> Iterator[Frame]:
    """Yield the frames from one on, as far as they follow each other without a gap."""
    while address + HEADER.size <= file.size:
        try:
            frame = read_frame(file, address, stamp)
        except DamagedFrameError:
            return
        yield frame
        address = frame.end


def rows(start: int, count: int) -> pa.RecordBatch:
    numbers = list(range(start, start + count))
    return pa.RecordBatch.from_arrays(
        [pa.array(numbers, SCHEMA.arrow.field(0).type), pa.array(numbers), pa.array(numbers)],
        schema=SCHEMA.arrow,
    )


def written(folder: Path, leaves: int, roots: tuple[int, ...]) -> Path:
    """Write a segment of leaves with one row each, and a root after some of them."""
    with (
        patch("eventide.store.segments.tree.FAN_OUT", FAN_OUT),
        patch("eventide.store.segments.segment_writer.LEAF_ROWS", 1),
    ):
        writer = SegmentWriter.create(folder, FORM)
        for number in range(leaves):
            writer.add(rows(number, 1))
            if number + 1 in roots:
                writer.root()
        writer.close()
    return writer.file.path


def test_frames_are_found_wherever_a_file_was_cut(tmp_path: Path) -> None:
    path = written(tmp_path, 6, (3, 6))
    whole, stamp = path.read_bytes(), stamp_of(path.name)
    frames = list(frames_from(pa.py_buffer(whole), 0, stamp))
    assert "".join(frame.kind.name[0] for frame in frames) == "HLLLRLNLLR"
    for end in range(len(whole) + 1):
        file = pa.py_buffer(whole[:end])
        left = [
            frame.address
            for frame in frames
            if frame.address + HEADER.size + frame.payload.size <= end
        ]
        assert [frame.address for frame in frames_from(file, 0, stamp)] == left
        assert [frame.address for frame in frames_backwards(file, stamp)] == left[::-1]


@pytest.mark.parametrize("leaves", [1, FAN_OUT - 1, FAN_OUT, FAN_OUT + 1, FAN_OUT**2, FAN_OUT**3])
def test_the_last_root_reaches_every_leaf(tmp_path: Path, leaves: int) -> None:
    path = written(tmp_path, leaves, (1, leaves))
    file, stamp = map_file(path), stamp_of(path.name)
    kinds = [frame.kind for frame in frames_backwards(file, stamp)]
    assert kinds[0] == Kind.ROOT
    nodes = sum(leaves // FAN_OUT**level for level in (1, 2, 3))
    assert kinds.count(Kind.NODE) == nodes
    found = newest_root(file, stamp, path.name, FORM)
    assert found is not None
    assert (found.rows, found.leaves, found.ts_min, found.ts_max) == (leaves, leaves, 0, leaves - 1)


@pytest.mark.parametrize("cut", [0, 1, 63, 64])
def test_a_torn_last_root_leaves_the_one_before(tmp_path: Path, cut: int) -> None:
    path = written(tmp_path, 5, (2, 5))
    whole, stamp = path.read_bytes(), stamp_of(path.name)
    last = next(frames_backwards(pa.py_buffer(whole), stamp))
    found = newest_root(pa.py_buffer(whole[: last.address + cut]), stamp, path.name, FORM)
    assert found is not None
    assert found.rows == 2


def test_an_empty_file_has_no_frames() -> None:
    empty = pa.py_buffer(b"")
    assert list(frames_from(empty, 0, STAMP)) == []
    assert list(frames_backwards(empty, STAMP)) == []


def test_a_segment_whose_first_root_was_never_written(tmp_path: Path) -> None:
    path = written(tmp_path, 3, ())
    file, stamp = map_file(path), stamp_of(path.name)
    kinds = [frame.kind for frame in frames_backwards(file, stamp)]
    assert kinds == [Kind.LEAF] * 3 + [Kind.HEAD]
    assert newest_root(file, stamp, path.name, FORM) is None


def test_bytes_that_look_like_a_frame_are_not_taken_for_one() -> None:
    inner = b"".join(map(bytes, frame_bytes(Kind.ROOT, 0, 0, STAMP, [b"stolen"])))
    other = b"".join(map(bytes, frame_bytes(Kind.ROOT, 0, 128, bytes(16), [b"foreign"])))
    outer = b"".join(map(bytes, frame_bytes(Kind.NODE, 1, 0, STAMP, [bytes(16) + inner])))
    file = pa.py_buffer(outer + other)
    assert len(outer) == 128
    assert [frame.address for frame in frames_backwards(file, STAMP)] == [0]
    assert [frame.address for frame in frames_from(file, 0, STAMP)] == [0]


def test_a_frame_of_a_kind_that_is_not_known_is_refused() -> None:
    file = pa.py_buffer(b"".join(frame_bytes(9, 0, 0, STAMP, [b"later"])))  # type: ignore[arg-type]
    with pytest.raises(DamagedFrameError, match="no known kind"):
        read_frame(file, 0, STAMP)


@pytest.mark.parametrize("address", [-64, 1, 32, 128, 1 << 62])
def test_a_frame_begins_only_at_a_multiple_of_64_in_the_file(address: int) -> None:
    file = pa.py_buffer(b"".join(frame_bytes(Kind.HEAD, 0, 0, STAMP, [b"head"])))
    assert isinstance(read_frame(file, 0), Frame)
    with pytest.raises(DamagedFrameError, match="no frame can begin"):
        read_frame(file, address)


@pytest.mark.parametrize(("end", "found"), [(55, 0), (56, 1), (63, 1), (64, 1)])
def test_a_short_frame_without_its_padding_is_whole(end: int, found: int) -> None:
    content = b"".join(map(bytes, frame_bytes(Kind.ROOT, 0, 0, STAMP, [bytes(8)])))
    file = pa.py_buffer(content[:end])
    assert len(list(frames_backwards(file, STAMP))) == found
    assert len(list(frames_from(file, 0, STAMP))) == found
