"""Aggregates over periods: as folding rows gives, reading only the borders of the periods."""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import EvaluationError, SchemaError, StoreError
from eventide.instants import TimeRange
from eventide.schema import Schema
from eventide.store import Snapshot
from eventide.store.files.mapped import MAPPED
from eventide.store.index.aggregates import UserAggregate, register_aggregate
from eventide.store.options import StreamOptions
from eventide.store.reading import aggregate as aggregate_module
from eventide.store.reading.aggregate import AggregateCall, aggregate
from eventide.store.reading.cuts import ListedCuts
from eventide.store.reading.periods import dense, period_partials_of
from tests.naive.store import NaiveStream, Row
from tests.naive.summaries import answer
from tests.store.events import at, new_stream, table, tiny_files
from tests.store.history import FIRST_TS, LAST_TS, TYPES, History, as_table, options, pools, seeds
from tests.store.reading.test_ranges_scan import leaves_read

LONGEST = register_aggregate(
    UserAggregate.from_functions(
        "longest",
        lambda value: (len(value),),
        lambda one, other: (max(one[0], other[0]),),
        lambda state: state[0],
        {"length": pa.int64()},
        pa.int64(),
    )
)
NUMBERS = ("lane", "speed", "price")
EXACT = [AggregateCall("count")]
EXACT += [
    AggregateCall(each, name) for name in TYPES for each in ("count", "min", "max", "min2", "max2")
]
EXACT += [AggregateCall("sum", "price"), AggregateCall("longest", "car")]
SUMS = [
    AggregateCall("sum", "speed"),
    AggregateCall("avg", "speed"),
    AggregateCall("avg", "price"),
    AggregateCall("avg", "lane"),
]
SUMS += [AggregateCall("average", name) for name in ("speed", "price")]
DEVIATIONS = [
    AggregateCall(each, name)
    for name in NUMBERS
    for each in ("stddev", "var_samp", "var_pop", "stddev_pop")
]
AGGREGATES = (("max2", "lane"), ("longest", "car"), ("min2", "car"), ("median", "speed"))
# Of one magnitude, so that sums of doubles are exact to the last bit, whatever their order.
SPEEDS = st.sampled_from([0.0, -0.0, 1.5, -2.25, 40.75, math.nan, math.inf, -math.inf])
LANES = st.integers(-3, 3) | st.sampled_from([2**63 - 1, -(2**63), 2**62])
periods = st.lists(st.integers(FIRST_TS - 5, LAST_TS + 5), min_size=2, max_size=6)


def with_aggregates(chosen: StreamOptions) -> StreamOptions:
    """Return options that keep further aggregates of what they summarise."""
    kept = TYPES if chosen.summaries is None else chosen.summaries
    pairs = tuple(pair for pair in AGGREGATES if pair[1] in kept)
    return StreamOptions(**{**chosen.to_json(), "aggregates": pairs})


def folded(naive: NaiveStream, call: AggregateCall, start: int, end: int) -> Any:  # noqa: ANN401
    """Return an aggregate by its definition."""
    if call.function == "longest":
        texts = [row[0] for row in naive.scan(["car"], TimeRange(start, end))]
        return max((len(str(text)) for text in texts if text is not None), default=None)
    return naive.aggregate(call.function, call.attribute, TimeRange(start, end))


def column(found: pa.RecordBatch, call: AggregateCall) -> list[Any]:
    values: list[Any] = found.column(str(call)).to_pylist()
    return values


def spelled(values: Sequence[Any]) -> list[str]:
    """Return what tells values apart, but for the two zeros, of which engines keep one."""
    return [repr(0.0 if isinstance(value, float) and value == 0 else value) for value in values]


@settings(deadline=None, max_examples=40)
@given(options, pools, st.lists(SPEEDS, min_size=1), st.lists(LANES, min_size=1), seeds, st.data())
def test_any_history_adds_up_like_its_rows(
    chosen: StreamOptions,
    found: dict[str, list[object]],
    speeds: list[object],
    lanes: list[object],
    seed: int,
    data: st.DataObject,
) -> None:
    found = {**found, "speed": speeds, "lane": lanes}
    if data.draw(st.booleans()):
        chosen = with_aggregates(chosen)
    with tempfile.TemporaryDirectory() as folder, tiny_files():
        history = History.new(Path(folder), chosen, found, seed, steps=10)
        snapshot, naive = history.stream.snapshot(), history.naive
        check(snapshot, naive, sorted(data.draw(periods)))
        check(snapshot, naive, list(range(FIRST_TS - 1, LAST_TS + 1)))  # a period for each instant
        whole = [-(2**63), 2**63 - 1]
        check(snapshot, naive, whole)


def check(snapshot: Snapshot, naive: NaiveStream, cuts: list[int]) -> None:
    """Compare all aggregates of all periods with folds."""
    answers = aggregate(snapshot, [*EXACT, *SUMS, *DEVIATIONS], cuts)
    assert answers.num_rows == len(cuts) - 1
    answers.validate(full=True)
    for call in EXACT:
        expected = [folded(naive, call, start, end) for start, end in pairwise(cuts)]
        assert spelled(column(answers, call)) == spelled(expected), call
    for call in SUMS:
        expected = [folded(naive, call, start, end) for start, end in pairwise(cuts)]
        assert column(answers, call) == near(expected, 1e-15), call
    for call in DEVIATIONS:
        for value, (start, end) in zip(column(answers, call), pairwise(cuts), strict=True):
            rows = naive.scan([str(call.attribute)], TimeRange(start, end))
            largest = max((abs(float(row[0])) for row in rows if row[0] is not None), default=0.0)  # type: ignore[arg-type]
            room = (1e-7 if call.attribute == "price" else 1e-13) * largest
            power = 1 if "stddev" in call.function else 2
            expected = [folded(naive, call, start, end)]
            assert [value] == near(expected, 1e-13, room**power), call
    check_overflow(snapshot, naive, cuts)


def check_overflow(snapshot: Snapshot, naive: NaiveStream, cuts: list[int]) -> None:
    """Sums of integers are exact, or an error that says so."""
    call = AggregateCall("sum", "lane")
    sums = [folded(naive, call, start, end) for start, end in pairwise(cuts)]
    if all(each is None or -(2**63) <= each < 2**63 for each in sums):
        assert column(aggregate(snapshot, [call], cuts), call) == sums
    else:
        with pytest.raises(EvaluationError, match=r"sum\(lane\) does not fit"):
            aggregate(snapshot, [call], cuts)


def near(expected: Sequence[Any], rel: float, room: float = 0.0) -> list[Any]:
    return [
        each if each is None else pytest.approx(each, rel=rel, abs=room, nan_ok=True)
        for each in expected
    ]


@settings(deadline=None, max_examples=25)
@given(options, pools, seeds, periods, st.data())
def test_groups_of_periods_add_up_like_their_rows(
    chosen: StreamOptions,
    found: dict[str, list[object]],
    seed: int,
    cuts: list[int],
    data: st.DataObject,
) -> None:
    cuts = sorted(cuts)
    groups = data.draw(st.lists(st.integers(0, 3), min_size=len(cuts) - 1, max_size=len(cuts) - 1))
    calls = [
        AggregateCall("count"),
        AggregateCall("count", "car"),
        AggregateCall("max", "seen"),
        AggregateCall("sum", "price"),
    ]
    with tempfile.TemporaryDirectory() as folder, tiny_files():
        history = History.new(Path(folder), chosen, found, seed, steps=7)
        answers = aggregate(history.stream.snapshot(), calls, cuts, np.array(groups, np.int64))
        assert answers.num_rows == max(groups) + 1
        for group in range(max(groups) + 1):
            rows = [
                row
                for (start, end), own in zip(pairwise(cuts), groups, strict=True)
                if own == group
                for row in history.naive.inside(TimeRange(start, end))
            ]
            assert column(answers, calls[0])[group] == len(rows)
            for call in calls[1:]:
                values = [row[str(call.attribute)] for row in rows]
                assert column(answers, call)[group] == answer(call.function, values)


@settings(deadline=None, max_examples=25)
@given(options, pools, seeds, periods)
def test_few_periods_and_many_answer_the_same(
    chosen: StreamOptions, pool: dict[str, list[object]], seed: int, cuts: list[int]
) -> None:
    calls = [call for call in (*EXACT, *SUMS[1:]) if call.attribute != "lane"]
    with tempfile.TemporaryDirectory() as folder, tiny_files():
        history = History.new(Path(folder), with_aggregates(chosen), pool, seed, steps=8)
        snapshot = history.stream.snapshot()
        question = aggregate_module.question_of(tuple(calls), snapshot.schema)
        one_by_one = aggregate_module.partials_of_index(snapshot, question, sorted(cuts))
        listed = ListedCuts(np.array(sorted(cuts), np.int64))
        found = period_partials_of(snapshot, question, listed)
        together = question.answers(dense(question, found, len(cuts) - 1))
        for call in calls:
            expected = column(question.answers(one_by_one), call)
            if call in EXACT:
                assert spelled(column(together, call)) == spelled(expected)
            else:
                assert column(together, call) == near(expected, 1e-9, 1e300)


def ten_thousand(folder: Path, chosen: StreamOptions | None = None) -> Snapshot:
    """Return a stream with an open and a sealed segment of many leaves each."""
    chance = random.Random(5)
    rows: list[Row] = [
        {"ts": ts, "car": chance.choice("abc"), "speed": float(ts), "lane": ts}
        for ts in range(0, 4000, 2)
    ]
    stream = new_stream(folder, options=chosen)
    with patch("eventide.store.segments.segment_writer.SEGMENT_ROWS", 10_000):
        stream.append(table(rows[:1000]))
        stream.flush(seal=True)
        stream.append(table(rows[1000:]))
        stream.flush()
    snapshot = stream.snapshot()
    assert len(snapshot.segments) == 2
    assert snapshot.row_count == sum(segment.rows for segment in snapshot.segments) == 2000
    return snapshot


CALLS = [
    AggregateCall("count"),
    AggregateCall("sum", "lane"),
    AggregateCall("max", "car"),
    AggregateCall("stddev", "speed"),
]


@pytest.mark.parametrize(
    ("cuts", "most_leaves"),
    [
        ([-(10**6), 10**6], 0),  # everything: the manifest knows
        ([0, 2000, 4000], 0),  # one segment each
        ([300, 301], 1),
        ([301, 302], 1),
        ([313, 3911], 2),
        ([313, 1500, 2700, 3911], 4),
        ([500, 400], 0),  # an end before its start
    ],
)
def test_only_the_leaves_at_the_borders_are_read(
    tmp_path: Path, cuts: list[int], most_leaves: int
) -> None:
    with tiny_files():
        snapshot = ten_thousand(tmp_path)
        for segment in snapshot.segments:
            assert segment.leaves > 300
            segment.tree(snapshot.path)
        with leaves_read() as read, patch.object(MAPPED, "node", wraps=MAPPED.node) as node:
            answers = aggregate(snapshot, CALLS, cuts)
        assert len(read) <= most_leaves
        most_levels = max(len(s.levels(snapshot.path)) for s in snapshot.segments)
        assert node.call_count <= 2 * most_levels * most_leaves
        for (start, end), row in zip(pairwise(cuts), answers.to_pylist(), strict=True):
            inside = [ts for ts in range(0, 4000, 2) if start <= ts < end]
            assert row["count(*)"] == len(inside)
            assert row["sum(lane)"] == (sum(inside) if inside else None)


def test_late_events_cost_their_own_leaves_only(tmp_path: Path) -> None:
    with tiny_files():
        snapshot = ten_thousand(tmp_path)
        stream = new_stream(tmp_path, "late")
        stream.commit([stream.stage(at(*range(0, 900, 3)).to_batches())])
        stream.commit([stream.stage(at(*range(1, 900, 50)).to_batches())])
        snapshot = stream.snapshot()
        with leaves_read() as read:
            answers = aggregate(
                snapshot, [AggregateCall("count"), AggregateCall("max", "lane")], [100, 800]
            )
        for segment in snapshot.segments:
            assert sum(piece.segment.file == segment.file for piece in read) <= 2
        assert answers.to_pylist()[0]["count(*)"] == len(
            [*range(102, 800, 3), *range(101, 800, 50)]
        )


def test_what_the_index_does_not_know_is_read_from_the_rows(tmp_path: Path) -> None:
    with tiny_files():
        with_index = ten_thousand(tmp_path / "with")
        without = ten_thousand(tmp_path / "without", StreamOptions(summaries=("lane",)))
        cuts = [10, 313, 3911]
        expected = aggregate(with_index, CALLS, cuts)
        with leaves_read() as read:
            assert aggregate(without, CALLS, cuts) == expected
        assert len(read) > 500
        with leaves_read() as read:
            found = aggregate(without, CALLS[:2], cuts)
        assert found == expected.select([0, 1])
        assert len(read) <= 4


def test_a_rough_estimate_is_exact_in_one_leaf_and_of_its_kind_above(tmp_path: Path) -> None:
    call = AggregateCall("median", "speed")
    options_with = StreamOptions(aggregates=(("median", "speed"),))
    with tiny_files():
        snapshot = ten_thousand(tmp_path, options_with)
        for segment in snapshot.segments:
            first = next(segment.tree(snapshot.path).leaves(TimeRange(0, 10**6)))
            start, end = int(first.column("ts_min")[0].as_py()), first.column("ts_max")[0].as_py()
            inside = [float(ts) for ts in range(start, end + 1, 2)]
            found = column(aggregate(snapshot, [call], [start, end + 1]), call)
            assert found == [inside[1]]
        estimate = column(aggregate(snapshot, [call], [0, 4000]), call)[0]
        assert 0 <= estimate <= 3998
        assert column(aggregate(snapshot, [call], [9000, 9001]), call) == [None]


def test_no_period_and_no_events(tmp_path: Path) -> None:
    snapshot = new_stream(tmp_path).snapshot()
    assert aggregate(snapshot, CALLS, [0]).num_rows == 0
    assert aggregate(snapshot, CALLS, [0, 5]).to_pylist() == [
        {"count(*)": 0, "sum(lane)": None, "max(car)": None, "stddev(speed)": None}
    ]
    assert aggregate(snapshot, CALLS, list(range(30))).num_rows == 29
    nothing = aggregate(snapshot, CALLS, [0], np.array([], np.int64))
    assert nothing.num_rows == 0


@pytest.mark.parametrize("cuts", [[10, 20, 5, 10], [*range(30), 5, 10], [*range(40, -5, -1), 9]])
def test_a_period_that_ends_before_it_starts_is_empty(tmp_path: Path, cuts: list[int]) -> None:
    with tiny_files():
        stream = new_stream(tmp_path)
        stream.append(at(*range(30)))
        stream.flush()
        found = column(
            aggregate(stream.snapshot(), [AggregateCall("count")], cuts), AggregateCall("count")
        )
        assert found == [len(range(max(start, 0), min(end, 30))) for start, end in pairwise(cuts)]


def test_a_stream_without_attributes_counts(tmp_path: Path) -> None:
    with tiny_files():
        stream = new_stream(tmp_path, schema=Schema.of({}))
        stream.append(as_table([{"ts": ts} for ts in range(20)], Schema.of({})))
        stream.flush()
        stream.append(as_table([{"ts": ts} for ts in (3, 25)], Schema.of({})))
        snapshot = stream.snapshot()
        found = aggregate(snapshot, [AggregateCall("count")], [-5, 3, 4, 100])
        assert column(found, AggregateCall("count")) == [3, 2, 17]
        many = aggregate(snapshot, [AggregateCall("count")], list(range(31)))
        assert sum(column(many, AggregateCall("count"))) == 22


@pytest.mark.parametrize(
    "call",
    [
        AggregateCall("sum"),
        AggregateCall("sum", "car"),
        AggregateCall("avg", "car"),
        AggregateCall("count", "colour"),
        AggregateCall("first", "lane"),
        AggregateCall("nonsense", "lane"),
    ],
)
def test_what_is_no_aggregate_is_refused(tmp_path: Path, call: AggregateCall) -> None:
    with pytest.raises(SchemaError):
        aggregate(new_stream(tmp_path).snapshot(), [call], [0, 1])


def test_a_sum_that_does_not_fit_is_an_error_however_it_is_found(tmp_path: Path) -> None:
    call = AggregateCall("sum", "lane")
    with tiny_files():
        stream = new_stream(tmp_path)
        stream.append(table([{"ts": ts, "lane": 2**62} for ts in range(4)]))
        for _ in range(2):
            for cuts in ([0, 4], [*range(-20, 0), 4]):
                with pytest.raises(EvaluationError, match="does not fit int64"):
                    aggregate(stream.snapshot(), [call], cuts)
            assert column(aggregate(stream.snapshot(), [call], [0, 1]), call) == [2**62]
            stream.flush()
        # What is in between may be as large as it likes.
        stream.append(table([{"ts": 1, "lane": -(2**63)}, {"ts": 2, "lane": -(2**63) + 5}]))
        assert column(aggregate(stream.snapshot(), [call], [0, 4]), call) == [5]


def test_an_aggregate_without_what_it_needs_is_refused_before_it_does_harm(tmp_path: Path) -> None:
    lacking = StreamOptions(summaries=("car",), aggregates=(("max2", "lane"),))
    with pytest.raises(StoreError, match=r"'max2' needs max\(lane\)"):
        new_stream(tmp_path, options=lacking)
    stream = new_stream(tmp_path, options=StreamOptions(summaries=("car",)))
    with pytest.raises(StoreError, match="needs max"):
        stream.set_options(lacking)
    with pytest.raises(StoreError, match="needs max"):
        stream.add_aggregate("max2", "lane", "backfill")
    stream.append(at(1))
    stream.flush(seal=True)
    assert stream.options.aggregates == ()
