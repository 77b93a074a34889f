"""Aggregates of numbers over one period: the bits of the accumulators, reading only what is cut."""

from __future__ import annotations

import math
import random
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import EvaluationError, StoreError
from eventide.schema import Schema
from eventide.store import Snapshot, StoredStream
from eventide.store.files.mapped import MAPPED
from eventide.store.options import StreamOptions
from eventide.store.reading import aggregate as aggregate_module
from eventide.store.reading.aggregate import AggregateCall, aggregate
from eventide.store.reading.descent.results import direct_answers, direct_partials
from eventide.store.reading.question import question_of
from tests.naive.store import Row
from tests.store.events import new_stream, reopened, table, tiny_files
from tests.store.history import FIRST_TS, LAST_TS, History, options, pools, seeds

ORDERED = ("count", "min", "max")
SUMMED = (*ORDERED, "sum", "avg", "stddev", "var_samp", "var_pop")
CALLS = [
    AggregateCall("count"),
    *(AggregateCall(name, "speed") for name in SUMMED),
    *(AggregateCall(name, "lane") for name in SUMMED if name != "sum"),
    *(AggregateCall(name, "seen") for name in ORDERED),
]
SPEEDS = st.sampled_from([0.0, -0.0, 1.5, -2.25, 0.1, 1e200, -1e200, 5e-324, *map(float, range(9))])
ENDLESS = st.sampled_from([math.nan, math.inf, -math.inf])
periods = st.tuples(st.integers(FIRST_TS - 5, LAST_TS + 5), st.integers(FIRST_TS - 5, LAST_TS + 5))
everything = st.just((-(2**63), 2**63 - 1))


@contextmanager
def by_accumulators() -> Iterator[None]:
    """Answer in the other way: partials are Arrow columns that accumulators merge and finish."""
    with (
        patch.object(aggregate_module, "direct_answers", return_value=None),
        patch.object(aggregate_module, "direct_partials", return_value=None),
    ):
        yield


def bits(found: pa.RecordBatch) -> list[str]:
    """Return what tells values apart, but for the signs of zeros."""
    values = (value for row in found.to_pylist() for value in row.values())
    return [repr(0.0 if isinstance(value, float) and value == 0 else value) for value in values]


@settings(deadline=None, max_examples=40)
@given(options, pools, st.lists(SPEEDS | ENDLESS, min_size=1), seeds, st.lists(periods, min_size=3))
def test_a_period_has_the_bits_that_accumulators_give(
    chosen: StreamOptions,
    found: dict[str, list[object]],
    speeds: list[object],
    seed: int,
    asked: list[tuple[int, int]],
) -> None:
    with tempfile.TemporaryDirectory() as folder, tiny_files():
        history = History.new(Path(folder), chosen, {**found, "speed": speeds}, seed, steps=9)
        for _ in range(2):
            snapshot = history.stream.snapshot()
            for cuts in [*asked, (-(2**63), 2**63 - 1)]:
                answers = aggregate(snapshot, CALLS, cuts)
                answers.validate(full=True)
                with by_accumulators():
                    expected = aggregate(snapshot, CALLS, cuts)
                assert answers.schema == expected.schema
                assert bits(answers) == bits(expected)
            history.step()


@settings(deadline=None, max_examples=40)
@given(options, pools, st.lists(SPEEDS | ENDLESS, min_size=1), seeds, periods | everything)
def test_a_period_adds_up_like_its_rows(
    chosen: StreamOptions,
    found: dict[str, list[object]],
    speeds: list[object],
    seed: int,
    cuts: tuple[int, int],
) -> None:
    """Sums of floats are those of all rows, rounded once, however they are grouped."""
    with tempfile.TemporaryDirectory() as folder, tiny_files():
        history = History.new(Path(folder), chosen, {**found, "speed": speeds}, seed, steps=9)
        (row,) = aggregate(history.stream.snapshot(), CALLS, cuts).to_pylist()
        rows = [each for each in history.naive.rows if cuts[0] <= int(str(each["ts"])) < cuts[1]]
        assert row["count(*)"] == len(rows)
        for name in ("speed", "lane", "seen"):
            values: list[float] = [each[name] for each in rows if each[name] is not None]  # type: ignore[misc]
            assert row[f"count({name})"] == len(values)
            if any(isinstance(value, float) and not math.isfinite(value) for value in values):
                continue
            assert row[f"min({name})"] == min(values, default=None)
            assert row[f"max({name})"] == max(values, default=None)
        speeds_inside = [each["speed"] for each in rows if each["speed"] is not None]
        if all(math.isfinite(value) for value in speeds_inside):  # type: ignore[arg-type]
            total = math.fsum(speeds_inside) if speeds_inside else None  # type: ignore[arg-type]
            assert row["sum(speed)"] == total


def numbers_stream(folder: Path, rows: int, chosen: StreamOptions | None = None) -> StoredStream:
    """Return a stream with two segments of many leaves, and events in none."""
    chance = random.Random(rows)
    events: list[Row] = [
        {"ts": 2 * at, "speed": chance.uniform(1, 9), "lane": at} for at in range(rows)
    ]
    stream = new_stream(folder, options=chosen)
    with patch("eventide.store.segments.segment_writer.SEGMENT_ROWS", 10 * rows):
        stream.append(table(events[: rows // 3]))
        stream.flush(seal=True)
        stream.append(table(events[rows // 3 : rows - 2]))
        stream.flush()
        stream.append(table(events[rows - 2 :]))
    return stream


@contextmanager
def columns_decoded() -> Iterator[list[tuple[int, str]]]:
    """Collect the address and the name of columns that are asked for."""
    asked: list[tuple[int, str]] = []
    original = type(MAPPED).column

    def noted(self: object, path: Path, address: int, name: str, decode: object) -> object:
        asked.append((address, name))
        return original(self, path, address, name, decode)  # type: ignore[arg-type]

    with patch.object(type(MAPPED), "column", noted):
        yield asked


@pytest.mark.parametrize(
    ("cuts", "leaves"),
    [((-5, 10**6), 0), ((0, 400), 0), ((300, 301), 1), ((301, 302), 1), ((313, 911), 2)],
)
def test_only_the_columns_of_leaves_that_are_cut_are_decoded(
    tmp_path: Path, cuts: tuple[int, int], leaves: int
) -> None:
    with tiny_files():
        snapshot = numbers_stream(tmp_path, 600).snapshot()
        question = question_of((AggregateCall("sum", "speed"),), snapshot.schema)
        with columns_decoded() as asked:
            direct = direct_answers(snapshot, question, cuts)
        assert direct is not None
        assert len({address for address, _ in asked}) <= leaves
        assert {name for _, name in asked} <= {"ts", "speed"}
        with by_accumulators():
            assert direct == aggregate(snapshot, question.calls, cuts)


def direct_of(snapshot: Snapshot, calls: Sequence[AggregateCall], cuts: tuple[int, int]) -> object:
    return direct_answers(snapshot, question_of(tuple(calls), snapshot.schema), cuts)


def test_what_does_not_fit_words_is_answered_in_the_other_way(tmp_path: Path) -> None:
    chosen = StreamOptions(summaries=("speed",))
    with tiny_files():
        snapshot = numbers_stream(tmp_path, 300, chosen).snapshot()
        speed, lane = AggregateCall("sum", "speed"), AggregateCall("sum", "lane")
        assert direct_of(snapshot, [speed], (7, 403)) is not None
        # Texts; functions of users; attributes that the index lacks.
        for other in (AggregateCall("max", "car"), AggregateCall("max2", "speed"), lane):
            assert direct_of(snapshot, [speed, other], (7, 403)) is None
        average = question_of((AggregateCall("average", "speed"),), snapshot.schema)
        assert direct_answers(snapshot, average, (7, 403)) is None
        assert direct_partials(snapshot, average, (7, 403)) is not None
        inside = range(4, 202)
        found = aggregate(snapshot, [speed, lane], (7, 403)).to_pylist()
        assert found[0]["sum(lane)"] == sum(inside)


def test_leaves_in_order_of_arrival_are_answered_in_the_other_way(tmp_path: Path) -> None:
    with tiny_files():
        stream = numbers_stream(tmp_path, 300, StreamOptions(order="arrival"))
        snapshot, call = stream.snapshot(), AggregateCall("count")
        assert direct_of(snapshot, [call], (7, 403)) is None
        assert aggregate(snapshot, [call], (7, 403)).to_pylist() == [{"count(*)": 198}]
        assert direct_of(snapshot, [call], (-1, 600)) is not None


def test_a_period_that_cuts_thinned_events_is_refused(tmp_path: Path) -> None:
    with tiny_files():
        stream = numbers_stream(tmp_path, 300)
        stream.thin(200)
        snapshot, call = stream.snapshot(), AggregateCall("sum", "lane")
        assert aggregate(snapshot, [call], (-1, 200)).to_pylist() == [
            {"sum(lane)": sum(range(100))}
        ]
        with pytest.raises(StoreError, match="thinned to aggregates"):
            aggregate(snapshot, [call], (7, 200))


def test_a_sum_that_does_not_fit_is_an_error(tmp_path: Path) -> None:
    stream = new_stream(tmp_path)
    stream.append(table([{"ts": ts, "lane": 2**62} for ts in range(4)]))
    stream.flush()
    with pytest.raises(EvaluationError, match="does not fit int64"):
        aggregate(stream.snapshot(), [AggregateCall("sum", "lane")], (0, 4))


def test_answers_follow_the_segments_as_they_come_and_go(tmp_path: Path) -> None:
    call = AggregateCall("sum", "lane")
    with tiny_files():
        stream, expected = new_stream(tmp_path), 0
        for turn in range(12):
            events: list[Row] = [{"ts": 5 * turn + at, "lane": at} for at in range(5)]
            stream.append(table(events))
            expected += 10
            if turn % 2:
                stream.flush(seal=turn % 3 == 0)
            if turn == 9:
                stream.compact()
            if turn == 10:
                stream = reopened(stream)
            for cuts, wanted in (((-1, 100), expected), ((1, 100), expected)):
                assert aggregate(stream.snapshot(), [call], cuts).to_pylist() == [
                    {"sum(lane)": wanted}
                ]
        stream.drop_before(30)
        kept = aggregate(stream.snapshot(), [call], (-1, 100)).to_pylist()[0]["sum(lane)"]
        assert kept == sum(row["lane"] for row in lanes(stream))


def lanes(stream: StoredStream) -> list[dict[str, int]]:
    return [row for batch in stream.snapshot().scan(["lane"]) for row in batch.to_pylist()]


@pytest.mark.parametrize(("name", "value"), [("lane", 1), ("car", "a")])
def test_a_column_that_comes_back_is_another_one(tmp_path: Path, name: str, value: object) -> None:
    call = AggregateCall("max", name)
    stream = new_stream(tmp_path)
    stream.append(table([{"ts": ts, name: value} for ts in range(9)]))
    stream.flush(seal=True)
    assert aggregate(stream.snapshot(), [call], (0, 9)).to_pylist() == [{str(call): value}]
    kind = stream.schema.type_of(name)
    stream.drop_column(name)
    stream.add_column(name, kind)
    assert aggregate(stream.snapshot(), [call], (0, 9)).to_pylist() == [{str(call): None}]


def test_many_threads_may_go_down_one_index(tmp_path: Path) -> None:
    with tiny_files(), patch("eventide.store.reading.descent.tree.ROOM", 2):
        stream = new_stream(tmp_path, schema=Schema.of({"x": "float64"}))
        ts = np.arange(2000)
        for turn in range(4):
            part = ts[turn * 500 : (turn + 1) * 500]
            columns = {"ts": pa.array(part).cast(pa.timestamp("us")), "x": part.astype(float)}
            stream.append(pa.table(columns))
        stream.flush()
        snapshot, call = stream.snapshot(), AggregateCall("sum", "x")
        wrong: list[tuple[int, int]] = []

        def ask(seed: int) -> None:
            chance = random.Random(seed)
            for _ in range(60):
                start, end = sorted(chance.sample(range(2001), 2))
                (row,) = aggregate(snapshot, [call], (start, end)).to_pylist()
                if row["sum(x)"] != float(sum(range(start, end))):
                    wrong.append((start, end))

        threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(6)]
        usual = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)  # threads change at every few lines
        try:
            for each in threads:
                each.start()
            for each in threads:
                each.join()
        finally:
            sys.setswitchinterval(usual)
        assert not wrong
