"""The evaluator against DuckDB, against a row-at-a-time twin, and at its edges."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import EvaluationError
from eventide.lang.sql import plan_sql
from eventide.operators.expressions.evaluate import IMPLEMENTATIONS, evaluate, evaluate_predicate
from eventide.plan.expressions import Call, Column, Expression, Literal, walk
from eventide.plan.failing import can_fail
from eventide.plan.functions import FUNCTIONS
from eventide.plan.nodes import Project
from eventide.schema import BOOL, FLOAT64, INT64, DataType, Schema
from tests.naive.expressions import value_of

SCHEMA = Schema.of(
    {
        "a": "int64",
        "b": "int64",
        "x": "float64",
        "y": "float64",
        "s": "string",
        "t": "string",
        "d": "decimal(10,2)",
        "e": "decimal(5,1)",
        "p": "bool",
        "q": "bool",
        "z": "binary",
    }
)
COLUMNS = ("ts", "_seq", "a", "b", "x", "y", "s", "t", "d", "e", "p", "q", "z")
NAN, INF = math.nan, math.inf


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


ROWS: list[tuple[Any, ...]] = [
    (
        at("2026-01-04 01:02:03.5"),
        0,
        7,
        -3,
        2.5,
        NAN,
        "Hello",
        "l",
        "12.25",
        "0.5",
        True,
        None,
        b"a",
    ),
    (
        at("1969-05-31 23:59:59.999999"),
        1,
        None,
        0,
        NAN,
        NAN,
        " 1.5 ",
        None,
        None,
        "0.0",
        None,
        True,
        b"",
    ),
    (
        at("2000-02-29 00:00:00"),
        2,
        -5,
        2,
        -0.5,
        0.0,
        "a_b%c",
        "_",
        "-99.95",
        "3.3",
        False,
        False,
        None,
    ),
    (
        at("2026-12-31 23:59:59.000001"),
        3,
        0,
        None,
        INF,
        -1.0,
        "né\n日本",
        "é",
        "0.00",
        None,
        True,
        True,
        b"\xff\\",
    ),
    (
        at("1970-01-01 00:00:00"),
        4,
        3,
        3,
        None,
        3.5,
        "",
        "",
        "99999999.99",
        "-9999.9",
        None,
        None,
        b"b",
    ),
    (
        at("2024-07-15 12:30:00.25"),
        5,
        2,
        7,
        1e16,
        -INF,
        "12",
        "2",
        "2.50",
        "2.5",
        False,
        True,
        b"a",
    ),
]


def batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    records = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    for record in records:
        for name in ("d", "e"):
            record[name] = None if record[name] is None else Decimal(record[name])
    return pa.RecordBatch.from_pylist(records, schema=SCHEMA.arrow)


def bound(text: str) -> Expression:
    plan = plan_sql(f"SELECT {text} AS v FROM r", {"r": SCHEMA})
    assert isinstance(plan, Project), f"{text} is not row-local"
    return plan.items[0].expression


CONNECTION = duckdb.connect()


def by_duckdb(text: str, rows: pa.RecordBatch) -> list[Any]:
    CONNECTION.register("r", pa.Table.from_batches([rows]))
    found = CONNECTION.sql(f"SELECT {text} AS v FROM r").to_arrow_table()
    return [_plain(value) for value in found["v"].to_pylist()]


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Make equal values compare equal: floats by repr up to 12 digits, NaN to itself."""
    match value:
        case float():
            return "0.0" if value == 0 else f"{value:.12g}"
        case datetime():
            return value.replace(tzinfo=UTC)
        case pa.MonthDayNano():
            return timedelta(days=value.days, microseconds=value.nanoseconds // 1000)
    return value


def by_us(expression: Expression, rows: pa.RecordBatch) -> list[Any]:
    found = evaluate(expression, rows)
    assert len(found) == rows.num_rows
    assert found.type == expression.type.arrow
    return [_plain(value) for value in found.to_pylist()]


LIKE_DUCKDB = (Path(__file__).parents[2] / "golden" / "functions.txt").read_text()


@pytest.mark.parametrize("line", LIKE_DUCKDB.strip().split("\n"))
def test_functions_are_those_of_duckdb(line: str) -> None:
    rows = batch(ROWS)
    for text in filter(None, map(str.strip, line.split(";"))):
        assert by_us(bound(text), rows) == by_duckdb(text, rows), text
        assert by_us(bound(text), rows.slice(0, 0)) == [], text


def test_every_function_is_implemented_and_tried() -> None:
    assert set(IMPLEMENTATIONS) == set(FUNCTIONS)
    texts = filter(None, map(str.strip, LIKE_DUCKDB.replace("\n", ";").split(";")))
    tried = {
        part.function for text in texts for part in walk(bound(text)) if isinstance(part, Call)
    }
    assert set(FUNCTIONS) - tried == set()


def test_division_by_zero_is_null() -> None:
    rows = batch(ROWS)
    for text in ("a / 0", "x / 0.0", "a % 0", "x % 0.0", "d / 0", "d % 0", "1 / 0"):
        assert by_us(bound(text), rows) == [None] * len(ROWS)


def test_and_stops_at_false_and_or_at_true() -> None:
    rows = batch(ROWS)
    lazy = {
        "s = '12' AND CAST(s AS BIGINT) = 12": [False] * 5 + [True],
        "s <> '12' OR CAST(s AS BIGINT) > 99": [True] * 5 + [False],
        "COALESCE(s, CAST(s AS BIGINT)::VARCHAR) = s": [True] * 6,
    }
    for text, answers in lazy.items():
        assert by_us(bound(text), rows) == answers


def test_text_becomes_bytes_as_utf8() -> None:
    assert by_us(bound("CAST('é' AS BLOB)"), batch(ROWS[:1])) == ["é".encode()]


def test_nan_is_the_greatest_and_equals_itself() -> None:
    rows = pa.RecordBatch.from_pydict({"x": [NAN, NAN, 1.0, None], "y": [NAN, INF, NAN, NAN]})

    def ask(name: str) -> list[bool | None]:
        call = Call(name, (Column("x", FLOAT64), Column("y", FLOAT64)), BOOL)
        answers: list[bool | None] = evaluate(call, rows).to_pylist()
        return answers

    assert ask("=") == [True, False, False, None]
    assert ask(">") == [False, True, False, None]
    assert ask("<=") == [True, False, True, None]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a * 9223372036854775807", "a * 9223372036854775807 overflows int64"),
        ("-(b - 9223372036854775807 - 2)", "b - 9223372036854775807 overflows int64"),
        ("CAST(s AS BIGINT)", "cannot cast 'Hello' to int64"),
        ("CAST(x AS BIGINT)", "cannot cast nan to int64"),
        ("CAST(d AS DECIMAL(2,1))", "cannot cast 12.25 to decimal(2,1)"),
        ("REGEXP_MATCHES(s, '(')", "'(' is not a regular expression: "),
    ],
)
def test_values_without_an_answer_are_errors(text: str, message: str) -> None:
    query = f"SELECT {text} AS v FROM r"
    expression = bound(text)
    assert can_fail(expression)
    with pytest.raises(EvaluationError) as caught:
        evaluate(expression, batch(ROWS))
    assert caught.value.message.startswith(message)
    assert caught.value.span is not None
    assert caught.value.span.of(query)


def test_a_predicate_counts_null_as_false() -> None:
    rows = batch(ROWS)
    assert evaluate_predicate(bound("p"), rows).to_pylist() == [
        True,
        False,
        False,
        True,
        False,
        False,
    ]


# Random expressions: text that DuckDB understands too, by type.

INTEGERS = st.integers(-9, 9).map(str) | st.sampled_from(["a", "b", "NULL::BIGINT"])
FLOATS = st.sampled_from(["x", "y", "0.5::DOUBLE", "'nan'::DOUBLE", "NULL::DOUBLE"])
TEXTS = st.sampled_from(["s", "t", "'l'", "''", "NULL::VARCHAR"])
DECIMALS = st.sampled_from(["d", "e", "1.5", "NULL::DECIMAL(4,1)"])
TIMES = st.sampled_from(["ts", "TIMESTAMP '2026-01-04 01:02:03.5'", "ts + INTERVAL '1' HOUR"])
CONDITIONS = st.sampled_from(["p", "q", "TRUE", "FALSE", "NULL::BOOLEAN"])
KINDS = st.sampled_from(["int", "float", "text", "decimal", "time", "condition"])
COMPARISONS = st.sampled_from(
    ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
)


@st.composite
def typed(draw: st.DrawFn, kind: str, depth: int = 3) -> str:
    leaves = {
        "int": INTEGERS,
        "float": FLOATS,
        "text": TEXTS,
        "decimal": DECIMALS,
        "time": TIMES,
        "condition": CONDITIONS,
    }
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(leaves[kind])

    def part(kind: str) -> str:
        return f"({draw(typed(kind, depth - 1))})"

    shape = draw(st.integers(0, 5))
    if shape == 0:
        return f"CASE WHEN {part('condition')} THEN {part(kind)} ELSE {part(kind)} END"
    if shape == 1:
        return f"COALESCE({part(kind)}, {part(kind)})"
    if shape == 2:
        return (
            f"{draw(st.sampled_from(['GREATEST', 'LEAST', 'NULLIF']))}({part(kind)}, {part(kind)})"
        )
    return _own(draw, kind, part)


def _own(draw: st.DrawFn, kind: str, part: Any) -> str:  # noqa: ANN401
    match kind:
        case "int" | "decimal":
            return f"{part(kind)} {draw(st.sampled_from('+-*'))} {part(kind)}"
        case "float":
            other = draw(st.sampled_from(["int", "float"]))
            return f"{part('float')} {draw(st.sampled_from('+-*'))} {part(other)}"
        case "text":
            return f"{part('text')} || {part('text')}"
        case "time":
            return f"{part('time')} - INTERVAL '90' MINUTE"
    match draw(st.integers(0, 4)):
        case 0:
            return f"{part('condition')} {draw(st.sampled_from(['AND', 'OR']))} {part('condition')}"
        case 1:
            return f"NOT {part('condition')}"
        case 2:
            inner = draw(KINDS)
            return f"{part(inner)} {draw(COMPARISONS)} {part(inner)}"
        case 3:
            inner = draw(KINDS)
            return f"{part(inner)} IN ({part(inner)}, {part(inner)})"
    return f"{part(draw(KINDS))} IS NULL"


@settings(deadline=None, max_examples=250)
@given(KINDS.flatmap(typed))
def test_random_expressions_agree_with_duckdb(text: str) -> None:
    rows = batch(ROWS)
    try:
        wanted = by_duckdb(text, rows)
    except duckdb.Error:
        return  # An overflow; DuckDB also finds those that no row meets.
    assert by_us(bound(text), rows) == wanted


# Random trees over booleans, integers and floats, against the twin.


@st.composite
def trees(draw: st.DrawFn, data_type: DataType = BOOL, depth: int = 3) -> Expression:
    names = {"bool": ("p", "q"), "int64": ("a", "b"), "float64": ("x", "y")}[data_type.kind]
    if depth == 0 or (data_type != BOOL and draw(st.booleans())):
        if draw(st.integers(0, 4)):
            return Column(draw(st.sampled_from(names)), data_type)
        values = {
            "bool": st.booleans(),
            "int64": st.integers(-2, 2),
            "float64": st.floats(width=16),
        }
        return Literal(draw(st.none() | values[data_type.kind]), data_type)

    def part(data_type: DataType) -> Expression:
        return draw(trees(data_type, depth - 1))

    if data_type != BOOL or draw(st.integers(0, 3)) == 0:
        name = draw(st.sampled_from(["case", "coalesce", "nullif"]))
        first = [part(BOOL)] if name == "case" else []
        return Call(name, (*first, part(data_type), part(data_type)), data_type)
    name = draw(
        st.sampled_from(["and", "or", "not", "is null", "in", "=", "<>", "<", "<=", ">", ">="])
    )
    inner = BOOL if name in ("and", "or", "not") else draw(st.sampled_from([BOOL, INT64, FLOAT64]))
    count = {"not": 1, "is null": 1, "in": 3}.get(name, 2)
    return Call(name, tuple(part(inner) for _ in range(count)), BOOL)


RECORDS = st.fixed_dictionaries(
    {name: st.none() | st.booleans() for name in ("p", "q")}
    | {name: st.none() | st.integers(-2, 2) for name in ("a", "b")}
    | {name: st.none() | st.sampled_from([0.0, -0.0, 1.0, NAN, INF]) for name in ("x", "y")}
)
RECORD_SCHEMA = pa.schema(
    {
        "p": pa.bool_(),
        "q": pa.bool_(),
        "a": pa.int64(),
        "b": pa.int64(),
        "x": pa.float64(),
        "y": pa.float64(),
    }
)


@settings(deadline=None, max_examples=200)
@given(trees(), st.lists(RECORDS, max_size=6))
def test_logic_agrees_with_the_truth_tables(
    tree: Expression, records: list[dict[str, Any]]
) -> None:
    rows = pa.RecordBatch.from_pylist(records, schema=RECORD_SCHEMA)
    assert evaluate(tree, rows).to_pylist() == [value_of(tree, record) for record in records]
