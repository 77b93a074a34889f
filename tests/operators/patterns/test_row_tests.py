"""Comparisons of numbers computed by one kernel give the bits that conditions one by one do."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.kernels.compiled import frozen
from eventide.lang.sql import plan_sql
from eventide.operators.key_parts import KeyOrder
from eventide.operators.patterns.conditions import compile_conditions
from eventide.operators.patterns.masks import LocalCondition, RowsByKey, masks_of
from eventide.operators.patterns.row_tests import RowTests
from eventide.schema import Schema
from tests.naive.patterns.rows import match_node

CATALOG = {"s": Schema.of({"v": "float64", "w": "float64", "n": "int64", "a": "string"})}
DEFINES = """A AS v < 2, B AS 1 <= v AND v <> w, C AS n > 2 AND v >= w, D AS n = PREV(n),
  F AS PREV(v, 2) < NEXT(v), G AS NEXT(n, 3) <> 1 AND v <= 3"""
FIELDS = [("ts", pa.timestamp("us")), ("v", pa.float64()), ("w", pa.float64()), ("n", pa.int64())]
FLOATS = st.sampled_from([0.0, -0.0, 1.0, 2.0, 3.0, float("inf")])
ROWS = st.lists(st.tuples(st.integers(0, 3), FLOATS, FLOATS, st.integers(0, 4)), max_size=30)


def conditions(defines: str) -> list[LocalCondition | None]:
    variables = " ".join(name for name in "ABCDEFG" if f"{name} AS" in defines) + " E"
    text = f"""SELECT * FROM s MATCH_RECOGNIZE (ORDER BY ts MEASURES LAST(E.v) AS v
      PATTERN ({variables}) DEFINE {defines})"""
    local = compile_conditions(match_node(plan_sql(text, CATALOG))).local
    return [None if each is None else LocalCondition.of(each) for each in local]


def by_key_of(rows: list[tuple[int, float, float, int]]) -> RowsByKey:
    codes = np.array([row[0] for row in rows], np.int32)
    ordered = KeyOrder.of(frozen(codes), 4)
    columns = [
        pa.array([row[place] for row in rows], kind) for place, (_, kind) in enumerate(FIELDS)
    ]
    batch = pa.RecordBatch.from_arrays(columns, schema=pa.schema(FIELDS))
    in_order = bool((ordered.order == np.arange(len(rows))).all())
    return RowsByKey(batch, ordered.order, ordered.offsets, in_order)


@settings(deadline=None)
@given(ROWS)
def test_all_comparisons_at_once_give_the_same_bits(
    rows: list[tuple[int, float, float, int]],
) -> None:
    local, by_key = conditions(DEFINES), by_key_of(rows)
    tests = RowTests.of(local, pa.schema(FIELDS))
    assert tests is not None
    found = tests.masks_of(by_key)
    assert found is not None
    assert found.tolist() == masks_of(local, by_key).tolist()


@pytest.mark.parametrize("value", [None, float("nan")])
def test_nulls_and_nan_are_left_to_the_conditions(value: float | None) -> None:
    local = conditions("A AS v < 2")
    tests = RowTests.of(local, pa.schema(FIELDS))
    assert tests is not None
    assert tests.masks_of(by_key_of([(0, 1.0, 1.0, 1)])) is not None
    assert tests.masks_of(by_key_of([(0, value, 1.0, 1)])) is None  # type: ignore[list-item]


@pytest.mark.parametrize("defines", ["A AS a = 'x'", "A AS v < n", "A AS v < 1 OR v > 2"])
def test_other_conditions_are_not_for_the_kernel(defines: str) -> None:
    schema = pa.schema([*FIELDS, ("a", pa.string())])
    assert RowTests.of(conditions(defines), schema) is None
