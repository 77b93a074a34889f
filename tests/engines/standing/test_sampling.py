"""Estimates from samples of stored events, against exact counts; and plans chosen by them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import eventide as ev
from eventide.engines.standing.choice import chosen_plan
from eventide.engines.standing.sampling import (
    SAMPLE_ROWS,
    Sample,
    codes_of,
    sample_of,
    values_in,
)
from eventide.errors import StoreError
from eventide.instants import ALL_TIME, TimeRange
from eventide.lang.sql import plan_sql
from eventide.plan.expressions import Call, Column, Literal
from eventide.plan.standing.joins import Existence, WindowJoin
from eventide.plan.standing.nodes import Standing
from eventide.schema import BOOL, INT64, Schema
from eventide.store.memory import TableSource
from eventide.store.source import Where
from eventide.store.writing.findings import Findings

S = 1_000_000
START = 1_760_000_000 * S
LONG = 6 * SAMPLE_ROWS
DRAW = np.random.default_rng(20_260_302)


def zipf(rows: int) -> Any:  # noqa: ANN401
    shares = np.arange(1, 2001) ** -0.8
    return DRAW.choice(2000, rows, p=shares / shares.sum())


def bursts(rows: int) -> Any:  # noqa: ANN401
    """Of 3,000 values 20 are there at a time, for 500 rows."""
    there = DRAW.integers(0, 3000, (rows // 500 + 1, 20))
    return np.concatenate([DRAW.choice(each, 500) for each in there])[:rows]


MADE = {
    "zipf": zipf(LONG),
    "bursts": bursts(LONG),
    "even": DRAW.integers(0, 5000, LONG),
    "all alike": np.zeros(LONG, np.int64),
    "all different": np.arange(LONG),
    "two": DRAW.integers(0, 2, LONG),
}


def stored(columns: Mapping[str, Any], every_us: int = S) -> TableSource:
    rows = len(next(iter(columns.values())))
    times = pa.array(START + every_us * np.arange(rows)).cast(pa.timestamp("us"))
    table = pa.table({"ts": times, **columns})
    return TableSource("stored", Schema.from_arrow(table.schema), table)


def sample(source: TableSource, column: str, window_rows: int) -> Sample:
    found = sample_of(source, ["ts", column], ALL_TIME, window_rows * S)
    assert found is not None
    return found


def exact_distinct(values: Any, window_rows: int) -> float:  # noqa: ANN401
    count = max(3, min(50, len(values) // window_rows))
    starts = np.linspace(0, len(values) - window_rows, count).astype(int).tolist()
    return float(np.mean([len(np.unique(values[at : at + window_rows])) for at in starts]))


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("window_rows", [20, 1_000, 60_000, 4 * SAMPLE_ROWS])
def test_different_values_of_a_window_are_about_as_many_as_counted(
    name: str, window_rows: int
) -> None:
    found = sample(stored({"k": MADE[name]}), "k", window_rows)
    assert found.rate == pytest.approx(1.0, rel=0.01)
    estimate = found.values("k", window_rows).distinct
    assert estimate == pytest.approx(exact_distinct(MADE[name], window_rows), rel=0.12)


@pytest.mark.parametrize("name", ["zipf", "even", "all alike", "two"])
def test_how_often_two_rows_have_the_same_value(name: str) -> None:
    counts = np.array(list(Counter(MADE[name].tolist()).values()))
    alike = float(((counts / LONG) ** 2).sum())
    for window_rows in (1_000, 4 * SAMPLE_ROWS):
        values = sample(stored({"k": MADE[name]}), "k", window_rows).values("k", window_rows)
        assert values.chances == pytest.approx(1.0 / alike, rel=0.1)


def test_where_no_value_comes_again_one_row_is_expected_of_each() -> None:
    values = values_in(np.arange(50_000), [50_000], 1_000)
    assert values.chances == values.distinct == 1_000


def test_a_window_longer_than_the_stream_has_more_than_was_seen() -> None:
    rows = DRAW.integers(0, 5_000, 4_000)
    values = values_in(rows, [4_000], 12_000)
    assert values.distinct == pytest.approx(5_000 * (1 - np.exp(-12_000 / 5_000)), rel=0.1)
    assert values_in(np.arange(4_000), [4_000], 12_000).distinct == pytest.approx(12_000, rel=0.01)
    assert values_in(np.zeros(1, np.int64), [1], 12_000).distinct == 1


def test_nulls_are_no_value_and_like_nothing() -> None:
    half = pa.array([None if number % 2 else number % 8 for number in range(4_000)])
    values = values_in(codes_of(half), [4_000], 1_000)
    assert (values.distinct, values.nulls) == (4, 0.5)
    # Of four values of half the rows, one in four by four pairs is there, and alike in one of four.
    assert values.chances == pytest.approx(16, rel=0.05)
    nothing = values_in(codes_of(pa.array([None] * 50, pa.string())), [50], 1_000)
    assert (nothing.distinct, nothing.nulls) == (1, 1.0)


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", "b", "a", None]),
        pa.array([True, False, True, None]),
        pa.array([1.5, float("nan"), 1.5, None]),
        pa.array([b"a", b"b", b"a", None]),
        pa.array([1, 2, 1, None], pa.decimal128(9, 2)),
        pa.array([1, 2, 1, None], pa.timestamp("us")),
        pa.array([1, 2, 1, None], pa.duration("us")),
    ],
    ids=lambda column: str(column.type),
)
def test_values_of_all_types_are_told_apart(column: pa.Array) -> None:
    assert codes_of(column).tolist() == [0, 1, 0, -1]


def test_shares_of_conditions_are_those_of_the_newest_events() -> None:
    early, late = np.zeros(LONG // 2, np.int64), (DRAW.random(LONG // 2) < 0.05).astype(np.int64)
    source = stored({"k": np.concatenate([early, late])})
    condition = Call("=", (Column("a.k", INT64), Literal(1, INT64)), BOOL)
    never = Call("=", (Column("a.k", INT64), Literal(7, INT64)), BOOL)
    short, long = (sample(source, "k", rows).named("a") for rows in (1_000, LONG))
    assert short.share(condition) == pytest.approx(0.05, rel=0.1)
    assert long.share(condition) == pytest.approx(0.025, rel=0.15)
    assert 0 < short.share(never) < 1e-5


def test_rates_are_those_of_the_newest_events() -> None:
    times = np.concatenate([np.arange(1_000) * 86_400 * S, 86_400_000 * S + np.arange(200_000)])
    table = pa.table({"ts": pa.array(START + times).cast(pa.timestamp("us"))})
    source = TableSource("stored", Schema.from_arrow(table.schema), table)
    found = sample_of(source, ["ts"], ALL_TIME, 1_000)
    assert found is not None
    assert found.rate > 1_000
    assert sample_of(source, ["ts"], TimeRange(0, S), 1_000) is None


QUERY = (
    "SELECT a.k, c.n FROM s [RANGE 5 MINUTES] a JOIN t [RANGE 5 MINUTES] c ON a.k = c.k "
    "WHERE c.kind = 'x' AND NOT EXISTS (SELECT 1 FROM u [RANGE 5 MINUTES] b WHERE b.k = a.k)"
)
ROWS = 3_000


def tables(share: float, keys: int) -> dict[str, pa.Table]:
    draw = np.random.default_rng(1)
    found = {}
    for name in "stu":
        times = START + S // 10 * np.arange(ROWS)
        kinds = np.where(draw.random(ROWS) < share, "x", "y")
        columns = {"k": draw.integers(0, keys, ROWS), "n": np.arange(ROWS), "kind": kinds}
        found[name] = pa.table({"ts": pa.array(times).cast(pa.timestamp("us")), **columns})
    return found


def sources_of(events: Mapping[str, pa.Table]) -> dict[str, TableSource]:
    return {
        name: TableSource(name, Schema.from_arrow(table.schema), table)
        for name, table in events.items()
    }


def planned(text: str, events: Mapping[str, pa.Table]) -> Standing:
    catalog = {name: Schema.from_arrow(table.schema) for name, table in events.items()}
    plan = plan_sql(text, catalog)
    assert isinstance(plan, Standing)
    return plan


def test_the_plan_changes_with_the_share_in_the_data() -> None:
    rare, common = tables(0.002, 200), tables(0.9, 200)
    plan = planned(QUERY, rare)
    above = chosen_plan(plan, sources_of(rare)).cheapest.plan.source
    below = chosen_plan(plan, sources_of(common)).cheapest.plan.source
    kinds = [type(each.source).__name__ for each in (above, below)]  # type: ignore[attr-defined]
    assert kinds == [Existence.__name__, WindowJoin.__name__]


class Unreadable(TableSource):
    """Its events cannot be read, only counted."""

    def scan(
        self,
        columns: Sequence[str],
        time_range: TimeRange = ALL_TIME,
        where: Where | None = None,
    ) -> Iterator[pa.RecordBatch]:
        message = f"{columns} of {time_range} where {where}"
        raise StoreError(message)


def test_what_cannot_be_read_is_not_known_and_no_error() -> None:
    events = tables(0.5, 200)
    sources = {
        name: Unreadable(name, source.schema, source.table)
        for name, source in sources_of(events).items()
    }
    known = chosen_plan(planned(QUERY, events), sources).statistics["a"]
    assert known.rate == pytest.approx(10, rel=0.01)
    assert not known.values


def test_two_windows_of_one_name_may_have_other_types() -> None:
    events = tables(0.5, 200)
    text = f"{QUERY} UNION ALL SELECT c.k, c.n FROM u [RANGE 1 MINUTE] c WHERE c.kind > 1"
    numbers = pa.array(range(len(events["u"])))
    events["u"] = events["u"].set_column(3, "kind", numbers)
    chosen = chosen_plan(planned(text, events), sources_of(events))
    assert len(chosen.alternatives) > 1


def test_where_there_is_nothing_to_choose_events_are_not_read() -> None:
    events = tables(0.5, 200)
    plan = planned("SELECT DISTINCT k FROM s [RANGE 5 MINUTES]", events)
    chosen = chosen_plan(plan, sources_of(events))
    assert len(chosen.alternatives) == 1
    assert not chosen.statistics["s"].values


def test_explain_says_what_was_assumed_and_what_is_a_guess(tmp_path: Path) -> None:
    db = ev.open(tmp_path)
    made = tables(0.9, 200)
    for name, events in made.items():
        stream = db.create_stream(name, {"k": "int64", "n": "int64", "kind": "string"})
        if name != "u":
            stream.append(events)
    text = str(db.explain(QUERY))
    assert "assumed of s (a): 10 a second, about 200 different k in the window" in text
    share = made["t"]["kind"].to_pylist().count("x") / ROWS
    assert f"c.kind = 'x' on {100 * share:.0f} %" in text
    assert (
        "assumed of u (b): a guess, for nothing is stored: 100 a second, "
        "1,000 different values, = true on 10 %" in text
    )


def test_what_was_found_holds_until_the_stream_has_grown() -> None:
    findings, asked = Findings(), []

    def find() -> int:
        asked.append(True)
        return len(asked)

    assert [findings.get("k", rows, find) for rows in (100, 124, 100, 126, 120, 90)] == [
        1, 1, 1, 2, 2, 3,
    ]  # fmt: skip
    for other in range(300):
        findings.get(other, 1, find)
    assert len(findings.known) == 256


def test_of_long_texts_a_part_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db = ev.open(tmp_path)
    stream = db.create_stream("s", {"text": "string"})
    times = pa.array(START + S * np.arange(60_000)).cast(pa.timestamp("us"))
    stream.append(pa.table({"ts": times, "text": ["x" * 100] * 60_000}))
    monkeypatch.setattr("eventide.engines.standing.sampling.MOST_BYTES", 1_000_000)
    found = sample_of(db.store.stream("s").snapshot(), ["ts", "text"], ALL_TIME, 60_000 * S)
    assert found is not None
    assert 0 < len(found) < 60_000
    assert found.rate == pytest.approx(1.0, rel=0.01)
