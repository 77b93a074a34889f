"""Cases that were wrong once, or that random queries do not reach."""

from __future__ import annotations

import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import eventide as ev
from eventide.engines.build import build_live_tree, build_tree
from eventide.engines.history import replay as history
from eventide.errors import EvaluationError, UnsupportedError
from eventide.instants import END_OF_TIME_US
from eventide.kernels.patterns import search as match_search
from eventide.lang.sql import plan_sql
from eventide.operators import key_parts
from eventide.operators.patterns.match import MatchRows
from eventide.schema import Schema

SECOND = 1_000_000
ONE = Schema.of({"k": "string", "x": "int64"})


def match(clauses: str, source: str = "s") -> str:
    return f"SELECT * FROM {source} MATCH_RECOGNIZE ({clauses})"


def rows(xs: list[int], keys: str = "", step: int = SECOND) -> pa.Table:
    return pa.table({"ts": np.arange(len(xs)) * step, "k": list(keys) or ["p"] * len(xs), "x": xs})


def matcher(text: str, schema: Schema = ONE) -> MatchRows:
    tree = build_tree(plan_sql(text, {"s": schema}))
    return next(each for each in tree.operators if isinstance(each, MatchRows))


SHIFTED = "(SELECT ts - INTERVAL '60' SECOND AS ts, x FROM s)"
PAIRS = "MEASURES FIRST(x) AS f, LAST(x) AS l PATTERN (A B) WITHIN INTERVAL '2' SECOND"


def test_a_computed_ts_is_not_taken_for_that_of_the_events(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = rows(list(range(400)))
    whole = ev.sql(match(PAIRS, SHIFTED), s=table).rows()
    assert len(whole) == 200
    monkeypatch.setattr(history, "SLICE_ROWS", 20)
    assert ev.sql(match(PAIRS, SHIFTED), s=table).rows() == whole
    with pytest.raises(UnsupportedError, match="order of the events' ts"):
        build_live_tree(plan_sql(match(PAIRS, SHIFTED), {"s": ONE}))


def test_a_computed_ts_orders_rows() -> None:
    back = "(SELECT MAKE_TIMESTAMP(x) AS ts, x FROM s)"
    text = match("MEASURES FIRST(x) AS f, LAST(x) AS l PATTERN (A+)", back)
    assert ev.sql(text, s=rows([3, 1, 2])).rows() == [{"f": 1, "l": 3}]


def test_windows_are_events_at_their_end() -> None:
    windows = (
        "(SELECT window_end AS ts, COUNT(*) AS n FROM s GROUP BY TUMBLE(ts, INTERVAL '2' SECOND))"
    )
    text = match("MEASURES FIRST(n) AS f, LAST(n) AS l PATTERN (A B) DEFINE B AS n < A.n", windows)
    table = rows([1] * 7)
    expected = [{"f": 2, "l": 1}]
    assert ev.sql(text, s=table).rows() == expected
    tree = build_live_tree(plan_sql(text, {"s": ONE}))
    states, found = tree.initial_state(), []
    for place in range(7):
        part = table.select(tree.input_schema.names).slice(place, 1).combine_chunks()
        batch = part.cast(tree.input_schema).to_batches()[0]
        states, results = tree.step(states, (batch,), place * SECOND)
        found += results.to_pylist()
    nothing = pa.RecordBatch.from_pylist([], schema=tree.input_schema)
    _, results = tree.step(states, (nothing,), END_OF_TIME_US)
    assert found + results.to_pylist() == expected


def test_keys_without_rows_in_a_batch_are_remembered_by_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(key_parts, "SMALLEST_PART", 2)
    plan = plan_sql(match("PARTITION BY k MEASURES MATCH_NUMBER() AS n PATTERN (A)"), {"s": ONE})

    def numbers(threads: int) -> list[dict[str, Any]]:
        tree = build_tree(plan, threads=threads)
        states, found = tree.initial_state(), []
        for keys in ("abcdefgh", "abcdefga", "abcdefgh"):
            table = rows(list(range(8)), keys).select(tree.input_schema.names)
            batch = table.cast(tree.input_schema).combine_chunks().to_batches()[0]
            states, results = tree.step(states, (batch,), 0)
            found += results.to_pylist()
        return sorted(found, key=str)

    assert numbers(4) == numbers(1)


def test_the_end_of_the_partition_is_not_awaited_beyond_within() -> None:
    text = match("MEASURES COUNT(*) AS n PATTERN (A B* $) WITHIN INTERVAL '2' SECOND")
    operator = matcher(text)
    state = operator.initial_state()
    for place in range(50):
        batch = rows([place]).set_column(0, "ts", pa.array([place * SECOND]))
        named = batch.select(operator.source_schema.names).cast(operator.source_schema)
        rows_now = named.combine_chunks().to_batches()[0]
        state, results = operator.step(state, (rows_now,), place * SECOND)
        assert results.num_rows == 0
        assert state.whole.rows.num_rows <= 4
    nothing = pa.RecordBatch.from_pylist([], schema=operator.source_schema)
    _, results = operator.step(state, (nothing,), END_OF_TIME_US)
    assert results.to_pylist() == [{"n": 3}]


def test_columns_may_be_called_anything() -> None:
    names = ["leaf 0", "leaf ·0", "classifier()", "row of a match", "rows", "key 0"]
    table = pa.table({"ts": [0, 1, 2], **{name: [1, 2, 1] for name in names}})
    for name in names:
        define = f'DEFINE B AS "{name}" > PREV("{name}")'
        measures = f'MEASURES LAST("{name}") AS l, CLASSIFIER() AS c, COUNT("{name}") AS n'
        text = match(f"{measures} ALL ROWS PER MATCH PATTERN (A B) {define}")
        found = ev.sql(text, s=table).rows()
        assert [(row["l"], row["c"], row["n"]) for row in found] == [(1, "A", 1), (2, "B", 2)]
        schema = Schema.of(dict.fromkeys(names, "int64"))
        operator = matcher(text, schema)
        batch = table.select(operator.source_schema.names).slice(0, 1)
        step = batch.cast(operator.source_schema).to_batches()[0]
        state, _ = operator.step(operator.initial_state(), (step,), 0)
        assert operator.load(operator.dump(state)).whole.rows.equals(state.whole.rows)


def test_an_operator_travels_without_what_it_computed() -> None:
    operator = matcher(match("MEASURES COUNT(*) AS n PATTERN (A B) DEFINE B AS x > A.x"))
    used = operator.steps.first
    again = pickle.loads(pickle.dumps(operator))
    assert again == operator
    assert "conditions" not in vars(again)
    assert again.steps.first.flags.writeable == used.flags.writeable == False  # noqa: E712


def test_rows_before_a_slice_are_enough_for_prev(monkeypatch: pytest.MonkeyPatch) -> None:
    define = "DEFINE B AS x = PREV(x, 30) + 30 AND x > A.x"
    text = match(f"MEASURES FIRST(x) AS f PATTERN (A B) WITHIN INTERVAL '2' SECOND {define}")
    table = rows(list(range(500)))
    whole = ev.sql(text, s=table).rows()
    monkeypatch.setattr(history, "SLICE_ROWS", 50)
    assert sorted(map(str, ev.sql(text, s=table).rows())) == sorted(map(str, whole))
    assert len(whole) > 200


def test_a_match_that_is_complete_twice_is_reported_once() -> None:
    clauses = "PATTERN ((A+ A NOT A) A*) WITHIN INTERVAL '2' SECOND"
    text = match(f"MEASURES FIRST(x) AS f, COUNT(*) AS n STRATEGY skip_till_any {clauses}")
    operator = matcher(text)
    table = rows([1, 2, 3, 4]).select(operator.source_schema.names).cast(operator.source_schema)
    at_once, pieces = [], []
    state = operator.initial_state()
    for place in range(4):
        batch = table.slice(place, 1).combine_chunks().to_batches()[0]
        state, results = operator.step(state, (batch,), place * SECOND)
        pieces += results.to_pylist()
    nothing = pa.RecordBatch.from_pylist([], schema=operator.source_schema)
    _, results = operator.step(state, (nothing,), END_OF_TIME_US)
    pieces += results.to_pylist()
    at_once = ev.sql(text, s=rows([1, 2, 3, 4])).rows()
    assert sorted(map(str, pieces)) == sorted(map(str, at_once))


def test_too_many_matches_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match_search, "MOST_TAKEN", 1_000)
    text = match("MEASURES COUNT(*) AS n STRATEGY skip_till_any PATTERN (A B* C)")
    with pytest.raises(EvaluationError, match="rows") as caught:
        ev.sql(text, s=rows([1] * 24))
    assert "add WITHIN" in str(caught.value)


def test_long_results_of_a_search_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    text = match(
        "MEASURES FIRST(x) AS f, COUNT(*) AS n AFTER MATCH SKIP TO NEXT ROW "
        "PATTERN (A B+) DEFINE B AS x > A.x"
    )
    table = rows(list(range(300)))
    whole = ev.sql(text, s=table).rows()
    monkeypatch.setattr(match_search, "MOST_TAKEN", 2_000)
    assert ev.sql(text, s=table).rows() == whole
    assert len(whole) == 299


LONG = pa.table(
    {
        "ts": [0, 1, 2, 3, 4],
        "n": [1, 2, 3, 4, 5],
        "x": pa.array(
            [
                Decimal("1.12345678901234567890"),
                Decimal("1.12345678901234567891"),
                Decimal("-9999999999.5"),
                Decimal("9999999999.00000000000000000001"),
                None,
            ],
            pa.decimal128(30, 20),
        ),
    }
)


@pytest.mark.parametrize(
    ("condition", "pairs"),
    [
        ("x > A.x", [(1, 2), (3, 4)]),
        ("x < PREV(A.x) OR x < A.x", [(2, 3)]),
        ("x = GREATEST(MAX(A.x), x) AND x <> A.x", [(1, 2), (3, 4)]),
        ("COALESCE(A.x, x) > A.x * 0.5 AND x IS NULL", [(4, 5)]),
        ("GREATEST(MAX(A.x), x) > A.x * 1.5", [(3, 4)]),
        ("CASE WHEN A.n = 1 THEN A.x ELSE x END IN (A.x, 2.5)", [(1, 2)]),
        ("CAST(x AS double) - CAST(A.x AS double) > 1", [(3, 4)]),
    ],
)
def test_long_decimals_compare_across_rows(condition: str, pairs: list[tuple[int, int]]) -> None:
    text = f"MEASURES A.n AS a, B.n AS b PATTERN (A B) DEFINE B AS {condition}"
    found = ev.sql(f"SELECT * FROM s MATCH_RECOGNIZE ({text})", s=LONG).rows()
    assert [(row["a"], row["b"]) for row in found] == pairs


def test_long_decimals_are_not_calculated_with_across_rows() -> None:
    text = "MEASURES A.n AS a PATTERN (A B) DEFINE B AS x - A.x > 1"
    with pytest.raises(EvaluationError, match=r"x - A.x takes values with more digits") as caught:
        ev.sql(f"SELECT * FROM s MATCH_RECOGNIZE ({text})", s=LONG)
    assert caught.value.span is not None


@pytest.mark.parametrize("rows", ["ONE ROW PER MATCH", "ALL ROWS PER MATCH"])
def test_the_number_of_a_match_is_a_part_of_aggregates(rows: str) -> None:
    text = f"""MEASURES FINAL SUM(n + MATCH_NUMBER()) AS total, MATCH_NUMBER() AS match,
        FINAL COUNT(*) FILTER (WHERE n > 2 * MATCH_NUMBER()) AS more
        {rows} AFTER MATCH SKIP TO NEXT ROW PATTERN (A+)"""
    query = f"SELECT DISTINCT total, match, more FROM s MATCH_RECOGNIZE ({text}) ORDER BY match"
    found = [tuple(row.values()) for row in ev.sql(query, s=LONG).rows()]
    assert found == [(20, 1, 3), (22, 2, 1), (21, 3, 0), (17, 4, 0), (10, 5, 0)]


def test_rows_far_beyond_a_match_are_not_looked_for_one_by_one() -> None:
    text = f"MEASURES FIRST(n, {2**31}) AS far AFTER MATCH SKIP TO NEXT ROW PATTERN (A+)"
    found = ev.sql(f"SELECT * FROM s MATCH_RECOGNIZE ({text})", s=LONG).rows()
    assert found == [{"far": None}] * 5
