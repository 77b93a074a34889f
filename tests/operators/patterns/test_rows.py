"""The match operator against its twin: any query, any rows, any batches, dumped and loaded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

from eventide.engines.build import build_tree
from eventide.errors import BindError, EvaluationError
from eventide.instants import END_OF_TIME_US
from eventide.kernels.patterns.tables import Rules
from eventide.lang.sql import plan_sql
from eventide.operators.patterns import match as match_rows
from eventide.operators.patterns import measures as match_measures
from eventide.plan.tree import Plan
from eventide.schema import Schema
from tests.naive.patterns.rows import TooMuch, match_node, naive_match
from tests.naive.patterns.texts import ANYTHING, SCHEMA, Kinds, Row, queries, rows
from tests.operators.patterns.examples import EXAMPLES, Example


def bag(found: Sequence[dict[str, Any]]) -> Counter[str]:
    """Rows as text, so that 1 and 1.0 and True differ, and NaN equals itself."""
    return Counter(str(sorted(row.items())) for row in found)


def to_batch(events: Sequence[Row], schema: Schema, names: list[str]) -> pa.RecordBatch:
    batch = pa.RecordBatch.from_pylist(list(events), schema=schema.arrow)
    return batch.select(names)


def plain(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows with times as microseconds."""
    for place, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type) or pa.types.is_duration(field.type):
            batch = batch.set_column(place, field.name, batch.column(place).view(pa.int64()))
    found: list[dict[str, Any]] = batch.to_pylist()
    return found


def run(
    plan: Plan, events: Sequence[Row], cuts: Sequence[int], schema: Schema = SCHEMA
) -> list[dict[str, Any]]:
    """The results of events cut into batches; the state is dumped and loaded after each."""
    tree = build_tree(plan)
    states = tree.initial_state()
    found: list[dict[str, Any]] = []
    ends = sorted({min(cut, len(events)) for cut in cuts} | {len(events)})
    start = 0
    for end in ends:
        part = events[start:end]
        start = end
        watermark = part[-1]["ts"] if part else (events[0]["ts"] if events else 0)
        batch = to_batch(part, schema, tree.input_schema.names)
        states, results = tree.step(states, (batch,), watermark)
        states = tree.load(tree.dump(states))
        found += plain(results)
    nothing = to_batch([], schema, tree.input_schema.names)
    _, results = tree.step(states, (nothing,), END_OF_TIME_US)
    return found + plain(results)


def check(text: str, events: list[Row], cuts: Sequence[int], schema: Schema = SCHEMA) -> None:
    plan = plan_sql(text, {"s": schema})
    note(text)
    expected: list[dict[str, Any]] | None
    try:
        expected = naive_match(match_node(plan), events)
    except TooMuch:
        assume(False)
    except EvaluationError:
        expected = None
    if expected is None:
        with pytest.raises(EvaluationError):
            run(plan, events, cuts, schema)
        return
    assert bag(run(plan, events, (), schema)) == bag(expected)
    assert bag(run(plan, events, cuts, schema)) == bag(expected)


CUTS = st.lists(st.integers(0, 12), max_size=12)
SLOWLY = settings(
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
LOCAL = Kinds(conditions="row", strategies=("contiguous",), timeouts=False)
SKIP = re.compile(r"AFTER MATCH SKIP (PAST LAST ROW|TO NEXT ROW|TO (FIRST |LAST )?\w+)")
SKIPPING = Kinds(strategies=("skip_till_next", "skip_till_any"))
ORDERED = Kinds(strategies=("contiguous",), other_orders=True)


@SLOWLY
@given(queries(LOCAL), rows(), CUTS)
def test_conditions_on_single_rows(text: str, events: list[Row], cuts: list[int]) -> None:
    check(text, events, cuts)


@SLOWLY
@given(queries(Kinds(conditions="match", strategies=("contiguous",))), rows(), CUTS)
def test_conditions_on_the_match(text: str, events: list[Row], cuts: list[int]) -> None:
    check(text, events, cuts)


@SLOWLY
@given(queries(SKIPPING), rows(9), CUTS)
def test_strategies_that_skip_rows(text: str, events: list[Row], cuts: list[int]) -> None:
    check(text, events, cuts)


@SLOWLY
@given(queries(ANYTHING), rows(), CUTS)
def test_everything(text: str, events: list[Row], cuts: list[int]) -> None:
    check(text, events, cuts)


@settings(SLOWLY, max_examples=40)
@given(queries(ORDERED), rows())
def test_other_orders(text: str, events: list[Row]) -> None:
    check(text, events, ())


def test_paths_that_share_their_tails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Aggregates over shared paths, and matches that run into each other in every way."""
    monkeypatch.setattr(match_measures, "LONG", 0)

    @settings(SLOWLY, max_examples=60)
    @given(queries(LOCAL), rows(), CUTS)
    def shared(text: str, events: list[Row], cuts: list[int]) -> None:
        text = SKIP.sub("", text)
        text = text.replace("PATTERN", "AFTER MATCH SKIP TO NEXT ROW PATTERN", 1)
        check(text, events, cuts)

    shared()


LATE_PATTERNS = (
    "A NOT B C",
    "A NOT B C+",
    "A+ NOT B C",
    "A NOT B (C | D)",
    "A (NOT B C | C D)",
    "A NOT B C? D",
    "A NOT B NOT D C+? A",
    "A NOT B PERMUTE(C, D)",
    "A C NOT B D A?",
)
LATE_CONDITIONS = (
    "x < C.x",
    "x > FIRST(C.x) AND x <= A.x",
    "x < SUM(C.x) - COUNT(*)",
    "COALESCE(C.x, A.x, 2) = x",
    "PREV(CLASSIFIER()) = 'A' OR x < C.x",
    "x > MIN(C.x) AND COUNT(C.*) > 1",
    "NEXT(C.x) > x AND LAST(x, 1) < 3",
    "COUNT(DISTINCT C.x) = 1 AND x = 2",
    "U.x > x AND CLASSIFIER(U) <> 'D'",
)


@settings(SLOWLY, max_examples=150)
@given(
    st.sampled_from(LATE_PATTERNS),
    st.sampled_from(LATE_CONDITIONS),
    st.sampled_from(["skip_till_any", "skip_till_next", "skip_till_next TIMEOUT ROWS"]),
    rows(9),
    CUTS,
)
def test_nots_that_wait_for_what_comes_later(
    pattern: str, condition: str, strategy: str, events: list[Row], cuts: list[int]
) -> None:
    members = "C, D" if " D" in pattern else "C"
    clauses = (
        "PARTITION BY k MEASURES FIRST(x) AS f, LAST(x) AS l, COUNT(*) AS n, SUM(C.x) AS c",
        f"STRATEGY {strategy} PATTERN ({pattern}) WITHIN 9 SECONDS SUBSET U = ({members})",
        f"DEFINE B AS label <> 'a' AND ({condition}), C AS x > 0",
    )
    text = f"SELECT * FROM s MATCH_RECOGNIZE ({' '.join(clauses)})"
    try:
        plan_sql(text, {"s": SCHEMA})
    except BindError:
        # Behind `A C NOT B D`, the subset of C and D is on both sides.
        assume(False)
    check(text, events, cuts)


def test_matchers_that_stop_after_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels return after a while to be called again, which must change nothing."""
    monkeypatch.setattr(match_rows, "Rules", partial(Rules, piece=1))

    @settings(SLOWLY, max_examples=60)
    @given(st.one_of(queries(LOCAL), queries(SKIPPING), queries(ANYTHING)), rows(9), CUTS)
    def stopping(text: str, events: list[Row], cuts: list[int]) -> None:
        check(text, events, cuts)

    stopping()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_worked_examples(example: Example, size: int) -> None:
    plan = plan_sql(example.text, {"s": SCHEMA})
    cuts = range(size, len(example.rows), size)
    if example.error is not None:
        with pytest.raises(example.error):
            run(plan, list(example.rows), cuts)
        return
    assert bag(run(plan, list(example.rows), cuts)) == bag(example.expected)
