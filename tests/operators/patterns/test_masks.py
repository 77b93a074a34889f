"""Conditions on single rows: bits computed for each text, in threads, or row by row."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.lang.sql import plan_sql
from eventide.operators import columns
from eventide.operators.patterns.conditions import compile_conditions
from eventide.operators.patterns.masks import LocalCondition, marks_of
from eventide.schema import Schema
from tests.naive.patterns.rows import match_node

CATALOG = {"s": Schema.of({"a": "string", "b": "string", "v": "int64"})}
DEFINES = """A AS a = 'x', B AS a LIKE 'x%' AND v > 1, C AS b IN ('x', 'y') OR b IS NULL,
  D AS upper(b) = 'X', E AS v > 2, F AS a = b, G AS v > PREV(v), H AS TRUE"""
TEXT = f"""SELECT * FROM s MATCH_RECOGNIZE (ORDER BY ts MEASURES LAST(v) AS v
  PATTERN (A B C D E F G H) DEFINE {DEFINES})"""
LETTERS = st.sampled_from(["x", "X", "y", "xy", "", "é"])
ROWS = st.lists(st.tuples(LETTERS, st.one_of(LETTERS, st.none()), st.integers(0, 4)), min_size=1)


@settings(deadline=None)
@given(ROWS)
def test_texts_are_tested_once_each_and_give_the_same_bits(
    rows: list[tuple[str, str | None, int]],
) -> None:
    node = match_node(plan_sql(TEXT, CATALOG))
    local = [
        None if each is None else LocalCondition.of(each) for each in compile_conditions(node).local
    ]
    a, b, v = zip(*rows, strict=True)
    times = pa.array(range(len(rows)), pa.timestamp("us"))
    columns_of_rows = [times, pa.array(a), pa.array(b, pa.string()), pa.array(v)]
    batch = pa.RecordBatch.from_arrays(columns_of_rows, ["ts", "a", "b", "v"])
    one_by_one = marks_of(local, batch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "MANY_ROWS", 1)
        assert marks_of(local, batch).tolist() == one_by_one.tolist()
    assert [bool(mark & 1) for mark in one_by_one.tolist()] == [each == "x" for each in a]
