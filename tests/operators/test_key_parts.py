"""Threads that share the keys of a step give what one gives, in the same order."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.engines.build import build_tree
from eventide.instants import END_OF_TIME_US
from eventide.kernels.compiled import frozen
from eventide.kernels.ordering import merge_order
from eventide.lang.sql import plan_sql
from eventide.operators import key_layers, key_parts
from eventide.operators.columns import encode_keys, encode_more
from eventide.schema import Schema

SCHEMA = Schema.of({"k": "string", "j": "int64", "v": "float64", "w": "int64"})
SECOND = 1_000_000
QUERIES = {
    "pattern": """SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts
      MEASURES FIRST(A.v) AS a, LAST(B.v) AS b, MATCH_NUMBER() AS n
      PATTERN (A B+) WITHIN INTERVAL '9' SECOND
      DEFINE B AS v > PREV(v))""",
    "situations": """SELECT * FROM s SITUATIONS (PARTITION BY k, j DEFINE a AS v > 2, b AS w = 1
      GAP 5 SECONDS RETURN MAX(v) AS top, COUNT(*) AS n, SUM(w + 1) AS total)""",
    "situations, no aggregate": """SELECT * FROM s SITUATIONS
      (PARTITION BY k DEFINE a AS v > 2, b AS w = 1)""",
    "temporal": """SELECT * FROM s TPSTREAM (PARTITION BY k
      DEFINE a AS v > 1, b AS v > 3 OR w = 1 PATTERN a contains b; a overlaps b; a starts b;
        a before b WITHIN 30 SECONDS RETURN MAX(a.v) AS top, START(b) AS began)""",
    "temporal, confirmed": """SELECT * FROM s TPSTREAM (PARTITION BY k
      DEFINE a AS v > 1, b AS w = 1 GAP 8 SECONDS PATTERN a overlaps b; a contains b; a during b
      WITHIN 30 SECONDS CONFIRM LIMIT 3 PER KEY RETURN SUM(a.v) AS total, END(b) AS ended)""",
    "temporal, sums": """SELECT * FROM s TPSTREAM (PARTITION BY k
      DEFINE a AS v > 1, b AS w = 1 PATTERN a before b; a overlaps b WITHIN 30 SECONDS
      RETURN COUNT(*) AS n, MAX(SUM(a.v)) AS top)""",
    "range": """SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY ts
      RANGE BETWEEN INTERVAL '7' SECOND PRECEDING AND CURRENT ROW) AS m,
      COUNT(*) OVER (PARTITION BY k ORDER BY ts
      RANGE BETWEEN INTERVAL '7' SECOND PRECEDING AND CURRENT ROW) AS n FROM s""",
    "rows": """SELECT k, v, MAX(v) OVER (PARTITION BY k, j ORDER BY ts
      ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS m FROM s WHERE w < 3""",
}


@st.composite
def batches(draw: st.DrawFn) -> list[tuple[pa.Table, int]]:
    """Draw events with tied times and null keys, in batches with the watermark behind each."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    count, keys = draw(st.integers(0, 90)), draw(st.sampled_from([1, 2, 7, 40]))
    ts = np.sort(random.integers(0, draw(st.sampled_from([20, 200])), count)) * SECOND
    names = [None, *(f"key {n}" for n in range(keys))]
    values = [None, *map(float, range(5))]
    events = pa.table(
        {
            "ts": pa.array(ts).view(pa.timestamp("us")),
            "_seq": pa.array(np.arange(count)),
            "k": pa.array([names[n] for n in random.integers(0, len(names), count)], pa.string()),
            "j": pa.array(random.integers(0, 2, count)),
            "v": pa.array([values[n] for n in random.integers(0, 6, count)], pa.float64()),
            "w": pa.array(random.integers(0, 4, count)),
        }
    )
    cuts = sorted(draw(st.lists(st.integers(0, count), max_size=3)))
    bounds = [0, *cuts, count]
    found = [
        (events.slice(first, last - first), int(ts[last - 1]) if last else 0)
        for first, last in pairwise(bounds)
    ]
    return [*found, (events.slice(count), END_OF_TIME_US)]


def results(text: str, steps: list[tuple[pa.Table, int]], threads: list[int]) -> list[list[Any]]:
    """Return the results of each step, by as many threads as are said for it."""
    plan = plan_sql(text, {"s": SCHEMA})
    trees = {each: build_tree(plan, threads=each) for each in set(threads)}
    states, found = trees[threads[0]].initial_state(), []
    for (part, until_us), each in zip(steps, threads, strict=True):
        tree = trees[each]
        batch = part.select(tree.input_schema.names).combine_chunks().to_batches()
        rows = batch[0] if batch else pa.RecordBatch.from_pylist([], tree.input_schema)
        states, output = tree.step(states, (rows,), until_us)
        assert output.schema == tree.output_schema
        found.append(output.to_pylist())
        states = tree.load(tree.dump(states))
    return found


@pytest.mark.parametrize("name", QUERIES)
@settings(max_examples=25, deadline=None)
@given(batches(), st.data())
def test_threads_give_what_one_gives(
    name: str, steps: list[tuple[pa.Table, int]], data: st.DataObject
) -> None:
    threads = [data.draw(st.sampled_from([1, 2, 3])) for _ in steps]
    expected = results(QUERIES[name], steps, [1] * len(steps))
    with (
        patch.object(key_parts, "SMALLEST_PART", 3),
        patch.object(key_parts, "MANY_KEYS", 0),
        patch.object(key_layers, "MANY_EVENTS", 1),
    ):
        found = results(QUERIES[name], steps, threads)
    assert [Counter(map(str, each)) for each in found] == [
        Counter(map(str, each)) for each in expected
    ]
    assert str(found) == str(expected)


@given(st.lists(st.sampled_from([None, "a", "b", "c", "d"]), max_size=30), st.integers(1, 4))
def test_keys_have_the_numbers_that_one_thread_gives(texts: list[str | None], threads: int) -> None:
    column, known = pa.array(texts, pa.string()), pa.array(["c", "x"])
    with patch.object(key_parts, "SMALLEST_PART", 2), patch.object(key_parts, "MANY_KEYS", 0):
        codes, keys, count = key_parts.number_in_threads([known], [column], len(column), threads)
    plain, plain_keys, plain_count = encode_more([known], [column], len(column))
    assert codes.tolist() == plain.tolist()
    assert [key.to_pylist() for key in keys] == [key.to_pylist() for key in plain_keys]
    assert count == plain_count


@given(st.lists(st.integers(0, 5), max_size=40), st.integers(1, 4))
def test_rows_are_put_in_order_of_their_keys(codes: list[int], threads: int) -> None:
    with patch.object(key_parts, "SMALLEST_PART", 3):
        found = key_parts.KeyOrder.of(frozen(np.array(codes, np.int32)), 6, threads)
    order = sorted(range(len(codes)), key=lambda row: codes[row])
    assert found.order.tolist() == order
    assert found.offsets.tolist() == [sum(code < key for code in codes) for key in range(7)]
    middle = found.part(2, 4)
    assert middle.order.tolist() == [row for row in order if codes[row] in (2, 3)]
    assert middle.offsets.tolist()[0] == 0


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(2, 6), st.integers(1, 5))
def test_parts_of_keys_have_all_keys_once(sizes: list[int], threads: int, least: int) -> None:
    offsets = np.cumsum([0, *sizes])
    with patch.object(key_parts, "SMALLEST_PART", least):
        parts = key_parts.key_parts(offsets, threads)
    assert [key for first, last in parts for key in range(first, last)] == list(range(len(sizes)))


@given(st.lists(st.lists(st.integers(0, 9), max_size=6).map(sorted), min_size=1, max_size=4))
def test_ascending_parts_are_merged(parts: list[list[int]]) -> None:
    values = np.array([each for part in parts for each in part], np.int64)
    offsets = np.cumsum([0, *map(len, parts)])
    order = np.empty(len(values), np.int64)
    merge_order(frozen(values), offsets, order)
    assert order.tolist() == np.argsort(values, kind="stable").tolist()


def test_many_keys_are_numbered_by_one_thread() -> None:
    """Where every row has a key of its own, threads would number each twice."""
    column = pa.array([f"key {n}" for n in range(200)])
    codes, _, count = key_parts.number_in_threads([column], [column], 200, 4)
    assert codes.tolist() == encode_keys([column], 200)[0].tolist()
    assert count == 200
