"""Cutting a temporal pattern in time changes nothing: each match is found by one slice."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st

import eventide as ev
from eventide.engines.build import build_tree
from eventide.engines.history import replay as history
from eventide.engines.history.slices import Halo, Slice, halo_of, slices_of, widened
from eventide.instants import ALL_TIME, END_OF_TIME_US, START_OF_TIME_US, TimeRange
from eventide.lang.sql import plan_sql
from eventide.plan.bind import bind
from eventide.plan.explain import explain
from eventide.plan.expressions import Call, Column, Named
from eventide.plan.nodes import Filter, Project, Scan
from eventide.plan.passes import optimise
from eventide.plan.situations.nodes import TemporalPattern
from eventide.plan.tree import Plan
from eventide.store import EventSource, Store, TableSource
from eventide.store.source import Where
from tests.naive.situations.matches import by_closed_form
from tests.naive.situations.nodes import (
    CATALOG,
    FLAGS,
    SCHEMA,
    SECOND,
    Case,
    Kinds,
    Row,
    cases,
    constant,
)
from tests.operators.situations.drive import bag, plain
from tests.store.events import tiny_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SLOWLY = settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
SMALL = Kinds(3, most_rows=24, windows=(8, 4, 2, 1), limits=False)
CUTS = st.tuples(st.integers(1, 6), st.integers(0, 5), st.sampled_from([0, 0, 1, -1]))
"""At every how manieth row, from which on, and how many microseconds behind it."""
WANTED = Call("<=", (Column("n"), constant(1)))


class Told(TableSource):
    """A table that remembers what was read of it."""

    __slots__ = ("read",)

    def __init__(self, rows: Sequence[Row]) -> None:
        super().__init__("s", SCHEMA, pa.Table.from_pylist(list(rows), schema=SCHEMA.arrow))
        self.read: list[TimeRange] = []

    def scan(
        self, columns: Sequence[str], time_range: TimeRange = ALL_TIME, where: Where | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Scan, and remember."""
        self.read.append(time_range)
        return super().scan(columns, time_range, where)


def rows_of(batches: Sequence[pa.RecordBatch]) -> Counter[str]:
    return bag(row for batch in batches for row in plain(batch))


def whole_of(plan: Plan, source: EventSource) -> Counter[str]:
    """The answer of a run that is not cut."""
    whole = Slice(TimeRange(), build_tree(plan).scan.time_range, source.row_count)
    return rows_of(history.run_slice(plan, source, whole))


def parts_of(plan: Plan, source: EventSource, slices: Sequence[Slice]) -> Counter[str]:
    return rows_of([row for part in slices for row in history.run_slice(plan, source, part)])


def cut_at(plan: Plan, cuts: Sequence[int]) -> list[Slice]:
    """Slices at any instants, as `slices_of` makes them where cuts are worth it."""
    halo = halo_of(plan)
    assert halo is not None
    scanned = build_tree(plan).scan.time_range
    owned = [TimeRange(*ends) for ends in pairwise([START_OF_TIME_US, *cuts, END_OF_TIME_US])]
    return [Slice(each, widened(each, halo, scanned), 1) for each in owned]


def uncut(case: Case) -> tuple[TemporalPattern, list[Row]]:
    """Return a node that can be cut in time, and its rows as those of one key."""
    node, events = case
    return replace(node, keys=(), confirm=False), events


def above(node: TemporalPattern, scan: Scan, filtered: bool) -> Plan:
    """Return the pattern over a scan, or over what a filter leaves of it."""
    if not filtered:
        return optimise(bind(replace(node, source=scan), CATALOG))
    names = ("ts", *FLAGS, "v", "n", "w")
    below = Project(Filter(scan, WANTED), tuple(Named(each, Column(each)) for each in names))
    return optimise(bind(replace(node, source=below), CATALOG))


@settings(SLOWLY, max_examples=100)
@given(
    cases(SMALL),
    CUTS,
    st.sampled_from([False, False, False, True]),
    st.sampled_from([ALL_TIME, ALL_TIME, ALL_TIME, TimeRange(5, 30)]),
)
def test_any_cuts(
    case: Case, chosen: tuple[int, int, int], filtered: bool, seconds: TimeRange
) -> None:
    node, events = uncut(case)
    base = events[0]["ts"] if events else 0
    times = seconds
    if seconds != ALL_TIME:
        times = TimeRange(base + seconds.start_us * SECOND, base + seconds.end_us * SECOND)
    every, first, behind = chosen
    inside = [row for row in events if times.start_us <= row["ts"] < times.end_us]
    cuts = sorted({row["ts"] + behind for row in inside[first::every]})
    if node.gap_us is not None and inside:
        # Also where a silence is over, and in the silence behind the last row.
        silent = inside[-1]["ts"] + min(node.gap_us, 100 * SECOND)
        cuts = sorted({*cuts, inside[-1]["ts"] + 1, silent, silent + 1})
    plan = above(node, Scan("s", time_range=times), filtered)
    note(explain(plan))
    note(f"cut at {cuts}")
    source = Told(events)
    expected = whole_of(plan, source)
    event("matches" if expected else "no match")
    kept = [row for row in inside if not filtered or (row["n"] is not None and row["n"] <= 1)]
    assert expected == bag(by_closed_form(node, kept))
    assert parts_of(plan, source, cut_at(plan, cuts)) == expected


@SLOWLY
@given(cases(SMALL))
def test_a_row_a_slice(case: Case) -> None:
    node, events = uncut(case)
    plan, source = above(node, Scan("s"), filtered=False), Told(events)
    expected = whole_of(plan, source)
    with patch.object(history, "SLICE_ROWS", 1):
        assert rows_of(history.replay(plan, source)) == expected


# Slices as they are made, over enough rows that there are many

BODY = "FROM s DEFINE A AS a, B AS b AT LEAST 1 SECOND, C AS NOT c"
SLICED = {
    "early": f"{BODY} PATTERN A overlaps B; A during B; A contains B AND B before C; B meets C"
    " WITHIN 20 SECONDS RETURN START(A) AS began, COUNT(A.*) AS n, MAX(B.n) AS top, END(C) AS e",
    "final": f"{BODY} PATTERN A before B AND A before C WITHIN 12 SECONDS DETECT FINAL"
    " RETURN START(A) AS began, END(B) AS e, SUM(C.v) AS total",
    "silence": "FROM s DEFINE A AS a, B AS b GAP 3 SECONDS PATTERN A finishes B; A finished by B"
    " WITHIN 20 SECONDS RETURN START(A) AS began, DURATION(B) AS lasted",
    "summary": f"{BODY} PATTERN A before B AND B before C WITHIN 15 SECONDS RETURN COUNT(*) AS n",
    "filtered": "SELECT * FROM (SELECT * FROM s WHERE n IS NOT NULL) TPSTREAM (DEFINE A AS a,"
    " B AS b PATTERN A before B; A overlaps B WITHIN 15 SECONDS RETURN START(A) AS began)"
    " WHERE began IS NOT NULL",
}


def many_rows(count: int = 500) -> list[Row]:
    choose = random.Random(11)
    ts, flags, found = 0, dict.fromkeys(FLAGS, False), []
    for seq in range(count):
        ts += choose.choice([1, 1, 0, 1, 2, 1, 5]) * SECOND
        flags = {name: value ^ (choose.random() < 0.3) for name, value in flags.items()}
        number = choose.choice([None, 1, 2, 3])
        values = {"v": choose.choice([0.1, 0.7, 1e9]), "n": number, "w": "x"}
        found.append({"ts": ts, "_seq": seq, "k": "p", **flags, **values})
    return found


@pytest.mark.parametrize("query", SLICED)
def test_slices_together_are_the_whole(query: str) -> None:
    source, plan = Told(many_rows()), plan_sql(SLICED[query], CATALOG)
    slices = slices_of(plan, build_tree(plan).scan, source, 25)
    assert len(slices) > 10
    expected = whole_of(plan, source)
    assert len(expected) > 10
    source.read.clear()
    assert parts_of(plan, source, slices) == expected
    # What is before a slice is looked at once, and not from the start.
    assert len(source.read) < 2 * len(slices)
    first_us = source.time_range.start_us
    assert sum(read.start_us <= first_us for read in source.read) < 5
    assert max(read.end_us for read in source.read) == source.time_range.end_us


@pytest.mark.parametrize("query", SLICED)
def test_slices_of_a_store(query: str, tmp_path: Path) -> None:
    rows, plan = many_rows(300), plan_sql(SLICED[query], CATALOG)
    with tiny_files():
        stream = Store.open(tmp_path).create_stream("s", SCHEMA)
        table = pa.Table.from_pylist(rows, schema=SCHEMA.arrow).drop_columns(["_seq"])
        for start in range(0, len(rows), 7):
            stream.append(table.slice(start, 7))
        source = stream.snapshot()
        slices = slices_of(plan, build_tree(plan).scan, source, 25)
        assert len(slices) > 5
        assert parts_of(plan, source, slices) == whole_of(plan, Told(rows))


def test_a_slice_looks_as_far_back_as_it_has_to() -> None:
    """A holds on the first row; then nothing passes the filter until long after."""
    flags = dict.fromkeys(FLAGS, False)
    rows = [
        {"ts": i * SECOND, "_seq": i, "k": "p", **flags, "a": True, "v": 0.0, "n": None, "w": "x"}
        for i in range(1000)
    ]
    rows[0]["n"] = rows[990]["n"] = rows[995]["n"] = 1
    rows[995] |= {"a": False, "b": True}
    for first in (1, None):
        rows[0]["n"] = first
        source, plan = (
            Told(rows),
            plan_sql(
                "SELECT * FROM (SELECT * FROM s WHERE n IS NOT NULL) TPSTREAM (DEFINE A AS a,"
                " B AS b PATTERN A meets B WITHIN 9 SECONDS RETURN START(A) AS began)",
                CATALOG,
            ),
        )
        found = parts_of(plan, source, cut_at(plan, [992 * SECOND]))
        # With a row before it, A began with that: too long ago.
        assert sum(found.values()) == (0 if first else 1)
        assert found == whole_of(plan, source)
        assert source.read[2].end_us == 983 * SECOND
        assert 3 < len(source.read) < 9


def test_a_slice_without_rows_asks_for_nothing_before_it() -> None:
    rows = many_rows(100)
    source, plan = Told(rows), plan_sql(SLICED["early"], CATALOG)
    last = rows[-1]["ts"]
    behind = TimeRange(last + 30 * SECOND, END_OF_TIME_US)
    assert not history.run_slice(plan, source, Slice(behind, behind, 0))
    assert not source.read


def test_what_can_be_cut() -> None:
    def halo(text: str) -> Halo | None:
        return halo_of(plan_sql(text, CATALOG))

    held = "DEFINE A AS a, B AS b"
    pattern = "PATTERN A before B WITHIN 2 SECONDS"
    returned = "RETURN START(A) AS s"
    assert halo(f"FROM s {held} {pattern} {returned}") == Halo(2 * SECOND)
    assert halo(f"FROM s {held} GAP 1 SECOND {pattern} RETURN COUNT(*) AS n") == Halo(2 * SECOND)
    assert halo(f"FROM s PARTITION BY k {held} {pattern} {returned}") is None
    assert halo(f"FROM s {held} {pattern} CONFIRM {returned}") is None
    assert halo(f"SELECT * FROM s SITUATIONS ({held})") is None
    frames = "SELECT *, SUM(n) OVER (ORDER BY ts RANGE INTERVAL '1' SECOND PRECEDING) AS t FROM s"
    over_frames = f"SELECT * FROM ({frames}) TPSTREAM ({held} {pattern} {returned})"
    assert halo(over_frames) is None


@pytest.mark.spark
def test_slices_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    from eventide.engines.spark import history as spark_history

    rows = many_rows()
    db = ev.open(tmp_path)
    events = pa.Table.from_pylist(rows, schema=SCHEMA.arrow).drop_columns(["_seq"])
    db.create_stream("s", SCHEMA.to_json()).append(events)
    plan = plan_sql(SLICED["silence"], CATALOG)
    source = db.stream("s").snapshot()
    assert len(slices_of(plan, build_tree(plan).scan, source, 40)) > 8
    with (
        patch.object(spark_history, "SMALLEST_SLICE_ROWS", 1),
        patch.object(spark_history, "TASKS_PER_CORE", 6),
    ):
        found = ev.spark(spark, db.path).sql(SLICED["silence"]).toArrow()
    whole = db.sql(SLICED["silence"]).to_arrow()
    assert found.num_rows == whole.num_rows > 10
    began, expected = (table.column("began").cast(pa.int64()) for table in (found, whole))
    assert sorted(began.to_pylist()) == sorted(expected.to_pylist())
