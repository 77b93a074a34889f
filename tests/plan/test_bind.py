from __future__ import annotations

from decimal import Decimal

import pytest

from eventide.errors import BindError
from eventide.plan.bind import bind, bind_expression
from eventide.plan.expressions import Aggregate, Call, Cast, Column, Literal, Named, integer
from eventide.plan.functions import FUNCTIONS
from eventide.plan.nodes import Filter, Project, Scan
from eventide.plan.render import render
from eventide.plan.types import common_pair
from eventide.schema import (
    BOOL,
    FLOAT64,
    INT64,
    INTERVAL,
    NULL,
    STRING,
    TIMESTAMP,
    DataType,
    Schema,
)

ROW = {
    "ts": TIMESTAMP,
    "n": INT64,
    "x": FLOAT64,
    "s": STRING,
    "d": DataType("decimal", 10, 2),
    "wide": DataType("decimal", 38, 30),
    "p": BOOL,
}


def decimal(precision: int, scale: int) -> DataType:
    return DataType("decimal", precision, scale)


@pytest.mark.parametrize(
    ("left", "function", "right", "result"),
    [
        ("n", "+", "n", INT64),
        ("n", "+", "x", FLOAT64),
        ("n", "+", "d", decimal(22, 2)),
        ("d", "+", "d", decimal(11, 2)),
        ("d", "*", "d", decimal(20, 4)),
        ("d", "*", "n", decimal(29, 2)),
        ("wide", "+", "wide", decimal(38, 30)),
        ("wide", "*", "wide", FLOAT64),  # 60 digits after the point are more than there can be
        ("d", "*", "x", FLOAT64),
        ("n", "/", "n", FLOAT64),
        ("n", "%", "n", INT64),
        ("ts", "-", "ts", INTERVAL),
        ("n", "=", "d", BOOL),
        ("s", "||", "n", STRING),
    ],
)
def test_operators_have_the_types_of_sql(
    left: str, function: str, right: str, result: DataType
) -> None:
    bound = bind_expression(Call(function, (Column(left), Column(right))), ROW)
    assert bound.type == result


@pytest.mark.parametrize(
    ("function", "argument", "result"),
    [
        ("count", "s", INT64),
        ("sum", "n", INT64),
        ("sum", "x", FLOAT64),
        ("sum", "d", decimal(38, 2)),
        ("avg", "d", FLOAT64),
        ("stddev", "n", FLOAT64),
        ("min", "s", STRING),
        ("max", "ts", TIMESTAMP),
        ("first", "p", BOOL),
        ("last", "d", decimal(10, 2)),
    ],
)
def test_aggregates_have_their_types(function: str, argument: str, result: DataType) -> None:
    assert bind_expression(Aggregate(function, Column(argument)), ROW).type == result


def test_literals_become_the_type_they_meet() -> None:
    met = bind_expression(Call(">", (Column("x"), Literal(Decimal("1.5"), decimal(2, 1)))), ROW)
    assert met == Call(">", (Column("x", FLOAT64), Literal(1.5, FLOAT64)), BOOL)
    time = bind_expression(Call(">", (Column("ts"), Literal("1970-01-02", STRING))), ROW)
    assert time == Call(">", (Column("ts", TIMESTAMP), Literal(86_400_000_000, TIMESTAMP)), BOOL)


def test_columns_are_cast_where_types_mix() -> None:
    mixed = bind_expression(Call("=", (Column("n"), Column("x"))), ROW)
    assert mixed == Call("=", (Cast(Column("n", INT64), FLOAT64), Column("x", FLOAT64)), BOOL)


def test_nulls_take_the_type_beside_them() -> None:
    null = Literal(None, NULL)
    assert bind_expression(Call("coalesce", (null, Column("s"))), ROW).type == STRING
    plan = Project(Scan("r"), (Named("v", null),))
    assert bind(plan, {"r": Schema.of({})}).row == {"v": INT64}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (Call("+", (Column("s"), integer(1))), "+ takes two numbers"),
        (Call("and", (Column("n"), Column("p"))), "AND takes conditions, not int64 and bool"),
        (Call("sqrt", (Column("s"),)), "SQRT takes a number, not string"),
        (Call("sqrt", ()), "SQRT takes 1 argument, got 0"),
        (Call("substring", (Column("s"),)), "SUBSTRING takes 2 to 3 arguments, got 1"),
        (Call("sqr", (Column("x"),)), "no function 'sqr'"),
        (Call("date_trunc", (Literal("eon", STRING), Column("ts"))), "DATE_TRUNC does not know"),
    ],
)
def test_wrong_calls_are_refused(call: Call, message: str) -> None:
    with pytest.raises(BindError) as caught:
        bind_expression(call, ROW)
    assert caught.value.message.startswith(message)


def test_a_filter_needs_a_condition() -> None:
    with pytest.raises(BindError, match="n is int64, not a condition"):
        bind(Filter(Scan("r"), Column("n")), {"r": Schema.of({"n": "int64"})})


def test_binding_twice_changes_nothing() -> None:
    catalog = {"r": Schema.of({"n": "int64", "x": "float64"})}
    plan = Filter(Scan("r"), Call(">", (Column("N"), Column("X"))))
    once = bind(plan, catalog)
    assert bind(once, catalog) == once


def test_types_mix_the_same_way_round() -> None:
    kinds = [*ROW.values(), NULL, INTERVAL]
    for left in kinds:
        for right in kinds:
            assert common_pair(left, right) == common_pair(right, left)


def test_what_is_written_is_what_is_read() -> None:
    total = Call("-", (Column("n"), Call("-", (Column("n"), integer(-1)))))
    assert render(total) == "n - (n - -1)"
    either = Call("or", (Call("and", (Column("p"), Column("p"))), Call("not", (Column("p"),))))
    assert render(Call("and", (either, Column("p")))) == "(p AND p OR NOT p) AND p"
    assert render(Call("not", (Call("in", (Column("n"), integer(1))),))) == "n NOT IN (1)"


def test_every_function_prints() -> None:
    for function in FUNCTIONS.values():
        count = max(function.at_least, 1 if function.form != "case" else 3)
        call = Call(function.name, tuple(Column("x") for _ in range(count)))
        assert "x" in render(call)
