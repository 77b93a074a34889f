"""A log ends where nothing of its own follows, whatever its file held before."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.store.files.disk import AppendFile
from eventide.store.writing.log import (
    DamagedLogError,
    LogWriter,
    Record,
    RecordKind,
    log_name,
    next_record,
    read_records,
)
from eventide.store.writing.log_sectors import (
    CONTENT,
    MOST_LOGS,
    SECTOR,
    are_unwritten,
    first_stamp,
    in_sectors,
    is_unwritten,
    next_stamp,
    sectors_in,
    tag_of,
    written_bytes,
)
from tests.store.upkeep.damage import flipped

SCHEMA = pa.schema([("ts", pa.int64())])
SCHEMAS = dict.fromkeys(RecordKind, SCHEMA)
STAMP = bytes(range(12)) + bytes(4)


def later(stamp: bytes, count: int = 1) -> bytes:
    """Return the stamp of a log so many logs later in the same file."""
    for _ in range(count):
        following = next_stamp(stamp)
        assert following is not None
        stamp = following
    return stamp


def written(stamp: bytes, rows: Sequence[int]) -> bytes:
    """Return a log with a record of so many rows each."""
    with tempfile.TemporaryDirectory() as folder:
        file = AppendFile.create(Path(folder) / log_name(stamp))
        writer = LogWriter(file, 0)
        for number, count in enumerate(rows):
            batch = pa.record_batch({"ts": pa.array(range(count), pa.int64())})
            writer.append(RecordKind.EVENTS, {"number": number}, [batch])
        file.close()
        return file.path.read_bytes()


def over(new: bytes, old: bytes) -> bytes:
    """Return a file that held the old bytes and was then written to from its start."""
    return new + old[len(new) :]


def records(content: bytes, stamp: bytes, *, synced: bool = True) -> list[Record]:
    return list(read_records(content, stamp, SCHEMAS, synced=synced))


def counts(found: Sequence[Record]) -> list[int]:
    """Return the rows of records, whose numbers are those in which they come."""
    assert [record.facts["number"] for record in found] == list(range(len(found)))
    return [record.batches[0].num_rows for record in found]


sizes = st.lists(st.sampled_from([0, 1, 30, 63, 64, 200]), max_size=6)


@settings(deadline=None, max_examples=40)
@given(st.lists(sizes, min_size=1, max_size=4), st.integers(0, 3))
def test_only_the_records_of_the_newest_log_are_read(logs: list[list[int]], zeros: int) -> None:
    content = b""
    for number, rows in enumerate(logs):
        content = over(written(later(STAMP, number), rows), content)
    content += bytes(zeros * SECTOR)
    for synced in (True, False):
        found = records(content, later(STAMP, len(logs) - 1), synced=synced)
        assert counts(found) == logs[-1]


def test_logs_of_another_file_are_no_older_ones() -> None:
    """What is neither ours nor unwritten is damage, and not the end."""
    own, other = written(STAMP, [5]), written(first_stamp(), [5, 5, 5])
    with pytest.raises(DamagedLogError, match=f"the record at byte {len(own)} fails its checksum"):
        records(over(own, other), STAMP)


@pytest.mark.parametrize("last", [1, 200])
def test_a_process_is_killed_at_any_byte_of_a_write(last: int) -> None:
    old = written(STAMP, [300, 300])
    own = later(STAMP)
    before, after = written(own, [40]), written(own, [40, last])
    for cut in range(len(before), len(after)):
        assert counts(records(over(after[:cut], old), own)) == [40]
        assert counts(records(after[:cut], own)) == [40], "in a new file"
    assert counts(records(over(after, old), own)) == [40, last]


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 2**32), st.sampled_from([1, 60, 500]), st.booleans())
def test_the_power_fails_while_a_record_is_written(seed: int, last: int, is_new: bool) -> None:
    """Any of its sectors may be as before: then the record is not there, and nothing is damaged."""
    rng, own = Random(seed), later(STAMP, 3)
    old = b"" if is_new else over(written(later(STAMP, 2), [90]), written(STAMP, [300, 300]))
    before, after = written(own, [40]), written(own, [40, last])
    content = over(before, old).ljust(len(after), b"\0")
    survived = []
    for start in range(len(before), len(after), SECTOR):
        survived.append(rng.random() < 0.5)
        if survived[-1]:
            content = content[:start] + after[start : start + SECTOR] + content[start + SECTOR :]
    assert counts(records(content, own)) == ([40, last] if all(survived) else [40])


@pytest.mark.parametrize("lost", range(3))
def test_an_acknowledged_record_is_missed(lost: int) -> None:
    """Under older bytes or zeros, as long as others follow it: those were synced after it."""
    own, rows = later(STAMP), [90, 90, 90, 90]
    old, content = written(STAMP, [300, 300, 300]), written(own, rows)
    starts = [0, *(record.end for record in records(content, own))]
    for start in range(starts[lost], starts[lost + 1], SECTOR):
        for other in (old[start : start + SECTOR], bytes(SECTOR)):
            broken = over(content[:start] + other + content[start + SECTOR :], old)
            with pytest.raises(DamagedLogError, match=f"at byte {starts[lost]} fails"):
                records(broken, own)
            assert counts(records(broken, own, synced=False)) == rows[:lost]
            found = next_record(broken, starts[lost], own, lost)
            assert found == (starts[lost + 1], lost + 1)


def test_every_flip_in_a_record_is_found() -> None:
    own = later(STAMP)
    old, content = written(STAMP, [300]), written(own, [3, 90])
    for at in range(len(content)):
        with pytest.raises(DamagedLogError):
            records(over(flipped(content, at, at % 8), old), own)


def test_records_fill_sectors() -> None:
    content = written(STAMP, [0, 1, 2, 100, 1000])
    assert len(content) % SECTOR == 0
    tag = tag_of(STAMP).to_bytes(8, "little")
    assert {content[end - 8 : end] for end in range(SECTOR, len(content) + 1, SECTOR)} == {tag}


def test_what_was_written_behind_the_end() -> None:
    own, old = later(STAMP), written(STAMP, [300])
    sector = in_sectors(bytes(CONTENT), own).tobytes()
    assert written_bytes(old, own) == 0
    assert written_bytes(b"", own) == 0
    assert written_bytes(old[:SECTOR] + sector + old[2 * SECTOR :], own) == 2 * SECTOR
    assert written_bytes(bytes(100), STAMP) == 100, "a new file has nothing that is not ours"


def test_one_sector_is_judged_as_many_are() -> None:
    own, parts = later(STAMP, 2), [bytes(SECTOR), bytes(range(256)) * 2]
    for stamp in (STAMP, later(STAMP), own, first_stamp()):
        parts.append(in_sectors(bytes([7]) * CONTENT, stamp).tobytes())
    parts += [parts[4][: CONTENT + cut] + parts[2][CONTENT + cut :] for cut in range(1, 8)]
    judged = [is_unwritten(part, own) for part in parts]
    assert judged == are_unwritten(sectors_in(b"".join(parts)), own).tolist()
    assert judged == [True, False, True, True, False, False, *[True] * 7]


def test_a_file_holds_so_many_logs_and_no_more() -> None:
    last = later(STAMP, MOST_LOGS - 1)
    assert next_stamp(last) is None
    assert counts(records(over(written(last, [1]), written(STAMP, [300])), last)) == [1]
    assert next_stamp(bytes([255]) * 16) is None, "a stamp that is not ours"
