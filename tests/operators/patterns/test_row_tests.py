"""Comparisons and tests of texts computed at once give the bits that conditions one by one do."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.kernels.compiled import frozen
from eventide.lang.sql import plan_sql
from eventide.operators import columns
from eventide.operators.key_parts import KeyOrder
from eventide.operators.patterns import row_tests
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


def conditions(
    defines: str, catalog: Mapping[str, Schema] = CATALOG
) -> list[LocalCondition | None]:
    variables = " ".join(name for name in "ABCDEFG" if f"{name} AS" in defines) + " E"
    text = f"""SELECT * FROM s MATCH_RECOGNIZE (ORDER BY ts MEASURES LAST(E.v) AS v
      PATTERN ({variables}) DEFINE {defines})"""
    local = compile_conditions(match_node(plan_sql(text, catalog))).local
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


@pytest.mark.parametrize("defines", ["A AS a = PREV(a)", "A AS v < n", "A AS v < 1 OR v > 2"])
def test_other_conditions_are_not_for_the_kernel(defines: str) -> None:
    schema = pa.schema([*FIELDS, ("a", pa.string())])
    assert RowTests.of(conditions(defines), schema) is None


OF_TEXTS = """A AS a = 'x', B AS a LIKE 'x%' AND v < 2, C AS b IN ('x', 'y') OR b IS NULL,
  D AS upper(b) = 'X' AND a <> 'x' AND v > PREV(v), F AS v >= 1"""
TEXT_FIELDS = [*FIELDS, ("a", pa.string()), ("b", pa.string())]
TEXT_CATALOG = {"s": Schema.of({"v": "float64", "w": "float64", "a": "string", "b": "string"})}
LETTERS = st.sampled_from(["x", "X", "y", "xy", "", "é", "z", "xyz"])
ODD = st.one_of(LETTERS, st.sampled_from([None, "x and sixteen more bytes"]))
TEXT_ROWS = st.lists(st.tuples(st.integers(0, 3), FLOATS, LETTERS, ODD), max_size=12)


def texts_by_key(rows: list[tuple[int, float, str, str | None]]) -> RowsByKey:
    numbers = by_key_of([(key, v, v, 0) for key, v, _, _ in rows])
    texts = [pa.array([row[place] for row in rows], pa.string()) for place in (2, 3)]
    arrays = [*numbers.rows.columns, *texts]
    batch = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(TEXT_FIELDS))
    return RowsByKey(batch, numbers.order, numbers.offsets, numbers.in_key_order)


@settings(deadline=None)
@given(st.lists(TEXT_ROWS, max_size=4), st.sampled_from([2, 4, 4096]))
def test_texts_that_were_seen_before_are_not_tested_again_and_give_the_same_bits(
    batches: list[list[tuple[int, float, str, str | None]]], few: int
) -> None:
    local = conditions(OF_TEXTS, TEXT_CATALOG)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "FEW_TEXTS", few)
        tests = RowTests.of(local, pa.schema(TEXT_FIELDS))
        assert tests is not None
        for rows in batches:
            by_key = texts_by_key(rows)
            found, plain = tests.masks_of(by_key), masks_of(local, by_key).tolist()
            usual = all(b is not None and len(b) < 16 for _, _, _, b in rows)
            few_texts = all(len({row[place] for row in rows}) <= few for place in (2, 3))
            assert (found is not None) == (usual and few_texts)
            assert found is None or found.tolist() == plain


def test_many_texts_are_tested_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    local = conditions(OF_TEXTS, TEXT_CATALOG)
    tests = RowTests.of(local, pa.schema(TEXT_FIELDS))
    assert tests is not None
    by_key = texts_by_key([(0, 1.0, "x", "y"), (1, 2.0, "xy", "X"), (0, 0.0, "é", "x")])
    once = tests.masks_of(by_key)
    assert once is not None
    for module in (columns, row_tests):
        monkeypatch.setattr(module, "MANY_ROWS", 2)
    many = RowTests.of(local, pa.schema(TEXT_FIELDS))
    assert many is not None
    found = many.masks_of(by_key)
    assert found is not None
    assert found.tolist() == once.tolist() == masks_of(local, by_key).tolist()
    assert not any(marks.count for marks in many.texts)


def test_texts_are_forgotten_if_a_condition_was_not_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tests = RowTests.of(conditions("A AS a = 'x'", TEXT_CATALOG), pa.schema(TEXT_FIELDS))
    assert tests is not None
    by_key = texts_by_key([(0, 1.0, "x", ""), (0, 1.0, "y", "")])
    with monkeypatch.context() as patch:
        patch.setattr(row_tests, "evaluate_predicate", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            tests.masks_of(by_key)
    found = tests.masks_of(by_key)
    assert found is not None
    assert [bool(mask & 1) for mask in found.tolist()] == [True, False]


def test_a_condition_is_computed_once_for_each_text() -> None:
    tests = RowTests.of(conditions("A AS a = 'x'", TEXT_CATALOG), pa.schema(TEXT_FIELDS))
    assert tests is not None
    (marks,) = tests.texts
    for letters, count in (("xyx", 2), ("yx", 2), ("xz", 3)):
        rows: list[tuple[int, float, str, str | None]] = [(0, 1.0, each, "") for each in letters]
        found = tests.masks_of(texts_by_key(rows))
        assert found is not None
        assert [bool(mask & 1) for mask in found.tolist()] == [each == "x" for each in letters]
        assert marks.count == count


@pytest.mark.parametrize("define", ["CAST(a AS BIGINT) = 1", "a = b", "a || 'x' = b"])
def test_tests_that_may_fail_or_read_two_columns_are_left_to_the_conditions(define: str) -> None:
    assert RowTests.of(conditions(f"A AS {define}", TEXT_CATALOG), pa.schema(TEXT_FIELDS)) is None
