"""`verify` reads everything, and says what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from eventide.schema import SEQ, Schema
from eventide.store.options import StreamOptions
from eventide.store.segments.listing import SegmentList
from eventide.store.segments.manifest import encode_manifest, manifest_path
from eventide.store.segments.segment import Segment
from eventide.store.upkeep.repair import Repair, repair_stream
from eventide.store.upkeep.verify import check_view, verify_stream
from eventide.store.writing.log import stamp_of
from eventide.store.writing.log_sectors import CONTENT, SECTOR, in_sectors
from eventide.store.writing.view import StreamView
from tests.store.events import new_stream, tiny_files
from tests.store.upkeep.damage import Original, make


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Original]:
    with tiny_files():
        yield make(tmp_path_factory.mktemp("original"))


def wrong_with(original: Original, view: StreamView) -> str:
    return "\n".join(str(each) for each in check_view(original.stream.path, view))


def with_segment(view: StreamView, segment: Segment) -> StreamView:
    """Return a view in which another segment stands for the first one."""
    manifest = view.manifest
    return replace(
        view, manifest=replace(manifest, segments=SegmentList((segment, *manifest.segments[1:])))
    )


def test_a_whole_stream_is_whole(original: Original, tmp_path: Path) -> None:
    counted: list[int] = []
    assert list(verify_stream(original.copy(tmp_path), counted.append)) == []
    assert sum(counted) == original.snapshot.row_count
    assert not list(check_view(original.snapshot.path, original.snapshot.view))


def test_files_that_nobody_needs_are_only_mentioned(original: Original, tmp_path: Path) -> None:
    folder = original.copy(tmp_path, **{"seg-0.tmp": b"", "old.damaged": b"x"})
    found = list(verify_stream(folder))
    assert [(each.file, each.severity) for each in found] == [
        ("old.damaged", "info"),
        ("seg-0.tmp", "info"),
    ]


def test_a_torn_record_is_only_mentioned(original: Original, tmp_path: Path) -> None:
    name, end = original.snapshot.manifest.log, original.snapshot.view.log_end
    content = original.files[name]
    assert len(content) > end + 3 * SECTOR, "the log was written over another"
    second = in_sectors(bytes(CONTENT), stamp_of(name)).tobytes()
    torn = content[: end + SECTOR] + second + content[end + 2 * SECTOR :]
    folder = original.copy(tmp_path, **{name: torn})
    (found,) = verify_stream(folder)
    assert str(found) == (
        f"{name} at byte {end}: {2 * SECTOR} bytes of a record that was never acknowledged"
    )
    assert found.severity == "info"


def test_a_folder_without_a_manifest(tmp_path: Path) -> None:
    (found,) = verify_stream(tmp_path)
    assert found.what == "no version of the manifest is there"


def test_a_manifest_under_another_name(original: Original, tmp_path: Path) -> None:
    older = replace(original.snapshot.manifest, version=1)
    path = manifest_path(Path(), original.snapshot.version + 1)
    folder = original.copy(tmp_path, **{path.name: encode_manifest(older)})
    assert any("version 1 under another name" in each.what for each in verify_stream(folder))


@pytest.mark.parametrize("name", ["rows", "leaves", "ts_min", "ts_max", "first_seq", "last_seq"])
def test_a_listing_that_is_wrong(original: Original, name: str) -> None:
    view = original.snapshot.view
    segment = view.manifest.segments[0]
    wrong = replace(segment, **{name: getattr(segment, name) + 1})
    assert f"wrong about {name}" in wrong_with(original, with_segment(view, wrong))


def test_totals_that_are_wrong(original: Original) -> None:
    view = original.snapshot.view
    first, second = view.manifest.segments[:2]
    found = wrong_with(original, with_segment(view, replace(first, totals=second.totals)))
    assert "wrong about total" in found


def test_an_event_that_is_there_twice(original: Original) -> None:
    view = original.snapshot.view
    twice = view.manifest.segments.with_more(view.manifest.segments[:1])
    found = wrong_with(original, replace(view, manifest=replace(view.manifest, segments=twice)))
    assert "events of the leaf are in the stream twice" in found
    doubled = replace(view, tail=(*view.tail, *view.tail))
    assert "numbers of the tail are in the stream twice" in wrong_with(original, doubled)


def test_numbers_that_were_never_given_out(original: Original) -> None:
    found = wrong_with(original, replace(original.snapshot.view, next_seq=1))
    assert "it has numbers from 1 on" in found
    assert "the tail has numbers from 1 on" in found


def test_events_on_the_wrong_side_of_the_open_end(original: Original) -> None:
    view = original.snapshot.view
    found = wrong_with(original, replace(view, tail=view.queue, queue=view.tail))
    assert "the tail has events on the other side" in found
    assert "the queue has events on the other side" in found
    assert "goes beyond its end" in wrong_with(original, replace(view, closed_ts=0))


def test_an_index_that_lacks_entries_or_has_too_many(original: Original) -> None:
    view = original.snapshot.view
    assert view.segment is not None
    (index,) = view.segment.indexes
    extents = index.extents
    for wrong in (extents[1:], (*extents, extents[0])):
        segment = replace(view.segment, indexes=(replace(index, extents=wrong),))
        found = wrong_with(original, replace(view, segment=segment))
        assert "the index of car: it has" in found


def test_a_head_of_another_form(original: Original) -> None:
    view = original.snapshot.view
    segment = view.manifest.segments[0]
    other = replace(segment, form=replace(segment.form, column_ids=(7, 8, 9)))
    assert "the head: it belongs to another" in wrong_with(original, with_segment(view, other))


def test_all_that_is_wrong_is_named(original: Original) -> None:
    view = replace(original.snapshot.view, next_seq=1)
    found = [str(each) for each in check_view(original.stream.path, view)]
    assert sum("numbers from 1 on" in each for each in found) >= 2


def test_columns_of_the_log_that_are_wrong(original: Original) -> None:
    view = original.snapshot.view
    batch = pa.RecordBatch.from_pydict({SEQ: [1]})
    assert "the tail has columns ['_seq']" in wrong_with(original, replace(view, tail=(batch,)))


WIDE: dict[str, list[object]] = {
    "int64": [-(2**63), 1, 2**63 - 1],
    "float64": [-1.7e308, -2.0, 2.0, 1.7e308],
    "decimal(38, 0)": [Decimal(-(10**38) + 1), Decimal(0), Decimal(10**38 - 1)],
    "timestamp": [datetime(1, 1, 1), datetime(9999, 12, 31)],
    "string": ["", "\U0010ffff"],
}


@pytest.mark.parametrize("kind", WIDE)
def test_index_keys_as_far_apart_as_can_be_are_no_damage(tmp_path: Path, kind: str) -> None:
    schema = Schema.of({"far": kind})
    stream = new_stream(tmp_path, options=StreamOptions(indexes=("far",)), schema=schema)
    rows = [{"ts": ts, "far": value} for ts, value in enumerate(WIDE[kind])]
    stream.append(pa.Table.from_pylist(rows, schema=schema.arrow.remove(1)))
    stream.flush(seal=True)
    assert list(verify_stream(stream)) == []
    assert repair_stream(stream) == Repair((), ())
    assert stream.snapshot().segments[0].indexes
