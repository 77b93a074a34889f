"""Streams under one clock: steps that lose nothing, repeat nothing and never go back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.ingest.merging import EventCursor, TimeMerge
from eventide.instants import END_OF_TIME_US, START_OF_TIME_US
from tests.naive.merging import Row, due, merged

SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("_seq", pa.int64())])


def cursor(*batches: list[int]) -> EventCursor:
    """A stream whose events are read in batches; they are numbered as they come."""

    def read() -> Iterator[pa.RecordBatch]:
        number = 0
        for times in batches:
            rows = [{"ts": ts, "_seq": number + place} for place, ts in enumerate(times)]
            number += len(times)
            yield pa.RecordBatch.from_pylist(rows, schema=SCHEMA)

    return EventCursor(read(), SCHEMA)


def times(rows: pa.RecordBatch) -> list[int]:
    found: list[int] = rows.column("ts").cast(pa.int64()).to_pylist()
    return found


def test_a_step_goes_as_far_as_all_streams_have_been_read() -> None:
    #  a   1  3 | 5  9          b   2 | 4 | 6 …
    #  a's next batch begins at 5, b's at 4: what lies before 4 is complete
    merge = TimeMerge([cursor([1, 3], [5, 9]), cursor([2], [4], [6])])
    steps = []
    while not merge.ended:
        step = merge.step()
        steps.append((step.border_us, *(times(rows) for rows in step.rows)))
    assert steps == [
        (4, [1, 3], [2]),
        (6, [5], [4]),
        (END_OF_TIME_US, [9], [6]),
    ]


def test_a_step_ends_where_it_is_told_to() -> None:
    merge = TimeMerge([cursor([1, 3, 3, 5])])
    assert [(merge.step(until).border_us, merge.first_us) for until in (0, 3, 4, 9)] == [
        (0, 1),
        (3, 3),
        (4, 5),
        (9, END_OF_TIME_US),
    ]


def test_an_instant_is_never_parted_however_many_batches_it_fills() -> None:
    merge = TimeMerge([cursor([7, 7], [7], [7, 7], [8]), cursor([7])])
    assert [len(rows) for rows in merge.step().rows] == [5, 1]


streams_of_batches = st.lists(
    st.lists(st.integers(0, 12), max_size=14).flatmap(
        lambda times: st.lists(st.integers(0, len(times)), max_size=4).map(
            lambda cuts: cut(sorted(times), sorted(cuts))
        )
    ),
    min_size=1,
    max_size=3,
)


def cut(times: list[int], places: list[int]) -> list[list[int]]:
    return [times[a:b] for a, b in zip([0, *places], [*places, len(times)], strict=True)]


@settings(max_examples=60, deadline=None)
@given(streams_of_batches, st.lists(st.integers(0, 14), max_size=5))
def test_steps_agree_with_the_twin(batches: list[list[list[int]]], stops: list[int]) -> None:
    merge = TimeMerge([cursor(*each) for each in batches])
    streams: dict[str, list[Row]] = {}
    for stream, each in enumerate(batches):
        rows = enumerate(ts for batch in each for ts in batch)
        streams[str(stream)] = [{"ts": ts, "_seq": seq} for seq, ts in rows]
    twin, clock = merged(streams), START_OF_TIME_US
    for until in [*sorted(stops), END_OF_TIME_US]:
        while clock < until:
            step = merge.step(until)
            assert clock < step.border_us <= until
            found: list[tuple[str, dict[str, Any]]] = [
                (str(stream), {"ts": ts, "_seq": seq})
                for stream, rows in enumerate(step.rows)
                for ts, seq in zip(times(rows), rows.column("_seq").to_pylist(), strict=True)
            ]
            assert sorted(found, key=str) == sorted(due(twin, clock, step.border_us), key=str)
            clock = step.border_us
    assert merge.ended
