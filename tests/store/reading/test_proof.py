"""Sums of floats from the index are correctly rounded, whatever values cancel out."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eventide as ev
from eventide.engines.history.weights import DEFAULTS
from eventide.engines.history.windows.index import window_access
from eventide.lang.sql import plan_sql
from eventide.store.reading.aggregate import period_partials
from eventide.store.reading.proof import doubtful
from eventide.store.reading.question import AggregateCall, question_of
from tests.naive import aggregates as naive

WILD = (1e200, 1e100, 1.0, -1e200, -1e100, 2.0, 0.1, -0.1, 1.7e308, -1.7e308, 5e-324, 0.0, 1e-30)
ENDLESS = (float("inf"), float("-inf"), float("nan"))
SECOND = 1_000_000


def stream_of(db: ev.Database, parts: list[list[float | None]]) -> ev.Stream:
    stream, first = db.create_stream("s", {"x": "float64"}), 0
    for part in parts:
        times = np.arange(first, first + len(part)) * SECOND
        if part:
            x = pa.array(part, pa.float64())
            stream.append(pa.table({"ts": pa.array(times, pa.timestamp("us")), "x": x}))
            stream.split()
        first += len(part)
    return stream


def same(found: float | None, values: list[float | None]) -> bool:
    present = [value for value in values if value is not None]
    if not present:
        return found is None
    expected = naive.total(present)
    return found == expected or (found != found and expected != expected)  # noqa: PLR0124


VALUES = st.sampled_from(WILD) | st.floats(allow_nan=False, allow_infinity=False) | st.none()
PARTS = st.lists(st.lists(VALUES, max_size=8), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(parts=PARTS, endless=st.sampled_from(ENDLESS) | st.none())
def test_sums_from_the_index_are_rounded_once(
    parts: list[list[float | None]], endless: float | None
) -> None:
    parts = parts if endless is None else [*parts, [endless]]
    every = [value for part in parts for value in part]
    if not every:
        return
    with TemporaryDirectory() as folder:
        db = ev.open(Path(folder))
        stream = stream_of(db, parts)
        assert same(stream.aggregate("sum(x)").rows()[0]["sum(x)"], every)
        assert same(db.sql("SELECT SUM(x) AS t FROM s").rows()[0]["t"], every)
        thirds = [row["sum(x)"] for row in stream.aggregate("sum(x)", every="3 s").rows()]
        assert all(map(same, thirds, (every[at : at + 3] for at in range(0, len(every), 3))))
        for windows, step, size in (
            ("TUMBLE(ts, INTERVAL '3' SECOND)", 3, 3),
            ("HOP(ts, INTERVAL '2' SECOND, INTERVAL '4' SECOND)", 2, 4),
            ("TUMBLE(ROWS, 3)", 3, 3),
            ("HOP(ROWS, 2, 4)", 2, 4),
        ):
            plan = plan_sql(f"SELECT SUM(x) AS t FROM s GROUP BY {windows}", db.catalog())
            way = window_access(plan, stream.snapshot(), DEFAULTS)
            assert not isinstance(way, str)
            found = [row["t"] for part in way.run()[0] for row in part.to_pylist()]
            ends = range(step if "ROWS" not in windows else size, len(every) + size, step)
            wanted = [every[max(0, end - size) : end] for end in ends]
            if "ROWS" in windows:
                wanted = [each for end, each in zip(ends, wanted, strict=True) if end <= len(every)]
            else:
                wanted = [each for each in wanted if each]
            assert len(found) == len(wanted)
            assert all(map(same, found, wanted))


def test_sums_of_usual_values_are_proven(tmp_path: Path) -> None:
    values = np.random.default_rng(1).normal(20.0, 100.0, 50_000).round(2)
    stream = stream_of(ev.open(tmp_path), [values.tolist()])
    question = question_of((AggregateCall("sum", "x"),), stream.schema)
    snapshot = stream.snapshot()
    cuts = [*range(0, 50_000 * SECOND, 1000 * SECOND), 50_000 * SECOND]
    partials = period_partials(snapshot, question, cuts)
    assert partials.num_rows == 50
    assert not len(doubtful(snapshot, "x", partials))


def test_groups_of_periods_are_rounded_once(tmp_path: Path) -> None:
    hour = 3600
    stream = ev.open(tmp_path).create_stream("s", {"x": "float64"})
    values = [1e200, 1.0, -1e200, 2.0]
    times = [0, hour, 24 * hour, 25 * hour]
    ts = pa.array(np.array(times) * SECOND, pa.timestamp("us"))
    stream.append(pa.table({"ts": ts, "x": values}))
    stream.split()
    found = {row["hour"]: row["sum(x)"] for row in stream.aggregate("sum(x)", by="hour").rows()}
    assert found == {0: 0.0, 1: 3.0}
    assert stream.aggregate("avg(x)", "average(x)").rows() == [{"avg(x)": 0.75, "average(x)": 0.75}]


def test_a_median_of_a_stream_is_exact(tmp_path: Path) -> None:
    stream = stream_of(ev.open(tmp_path), [[1.0, 2.0, 3.0], [10.0, 11.0, 12.0, 13.0]])
    assert stream.aggregate("median(x)").rows() == [{"median(x)": 10.0}]
    rough = stream.aggregate("approx_median(x)").rows()
    assert rough == [{"approx_median(x)": pytest.approx(11.5)}]
