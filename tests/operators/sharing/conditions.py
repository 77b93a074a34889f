"""Random conditions of any shape, and events for them."""

from __future__ import annotations

import math
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from eventide.plan.bind import bind_condition
from eventide.plan.expressions import Call, Cast, Column, Expression, Literal
from eventide.schema import (
    BINARY,
    BOOL,
    FLOAT64,
    INT64,
    STRING,
    TIMESTAMP,
    DataType,
    row_schema,
)

MONEY, WIDE = DataType("decimal", 10, 2), DataType("decimal", 30, 2)
ROW = {
    "i": INT64,
    "j": INT64,
    "f": FLOAT64,
    "s": STRING,
    "t": STRING,
    "b": BOOL,
    "at": TIMESTAMP,
    "m": MONEY,
    "w": WIDE,
    "raw": BINARY,
}
LARGE = 2**63 - 1
TEXTS = (
    *("", "a", "b", "ab", "ba", "A", "Ab", "a%", "aaab", "12", "abab", "bbaabbaab"),
    *("\u017fa", "\u212a", "\u00e9"),
)
VALUES: dict[DataType, tuple[Any, ...]] = {
    INT64: (0, 1, 2, 3, -1, LARGE, -LARGE - 1),
    FLOAT64: (0.0, -0.0, 1.0, 1.5, -2.0, math.nan, math.inf, -math.inf, 3.0),
    STRING: TEXTS,
    BOOL: (True, False),
    TIMESTAMP: (0, 1_000_000, -1, 86_400_000_000),
    MONEY: (Decimal("0.00"), Decimal("1.50"), Decimal("-1.00"), Decimal("3.00")),
    WIDE: (Decimal("0.00"), Decimal("1.50"), Decimal(10**25)),
    BINARY: (b"", b"a", b"\x00"),
}
PATTERNS = (
    *("%", "a%", "%b", "%a%", "a_", "a%b", "_", "", "ab", "%a%b%", "A%", "k", "%sa%", "\u00e9%"),
    *("%bbaabbaa%", "%aab"),
)
EXPRESSIONS = ("a", "^a", "b$", "a.*b", "(", "", "[ab]+$")


def nullable(values: tuple[Any, ...]) -> SearchStrategy[Any]:
    """Draw a value or null."""
    return st.one_of(st.none(), *[st.sampled_from(values)] * 4)


def events(max_size: int = 12) -> SearchStrategy[pa.RecordBatch]:
    """Draw a batch of events."""
    row = st.tuples(*(nullable(VALUES[kind]) for kind in ROW.values()))

    def batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
        schema = row_schema(ROW)
        columns = [
            pa.array([each[place] for each in rows], field.type)
            for place, field in enumerate(schema)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    return st.lists(row, max_size=max_size).map(batch)


def constant(kind: DataType) -> SearchStrategy[Expression]:
    """Draw a constant, rarely null."""
    return st.one_of(*[st.sampled_from(VALUES[kind])] * 9, st.none()).map(
        lambda value: Literal(value, kind)
    )


def columns(kind: DataType) -> list[Expression]:
    """Return the columns of a type."""
    return [Column(name) for name, each in ROW.items() if each == kind]


def value(kind: DataType) -> SearchStrategy[Expression]:
    """Draw an expression of a type over events."""
    plain = st.sampled_from(columns(kind))
    if kind == INT64:
        call = st.tuples(st.sampled_from("+-*%"), plain, st.one_of(plain, constant(INT64)))
        length = st.sampled_from(columns(STRING)).map(lambda each: Call("length", (each,)))
        parsed = st.sampled_from(columns(STRING)).map(lambda each: Cast(each, INT64))
        return st.one_of(plain, plain, call.map(called), length, parsed)
    if kind == FLOAT64:
        call = st.tuples(st.sampled_from("+*/"), plain, st.one_of(plain, constant(FLOAT64)))
        cast = st.sampled_from(columns(INT64)).map(lambda each: Cast(each, FLOAT64))
        return st.one_of(plain, call.map(called), cast)
    if kind == STRING:
        name = st.sampled_from(("lower", "upper", "trim"))
        return st.one_of(plain, plain, st.tuples(name, plain).map(called))
    return plain


def called(parts: tuple[Any, ...]) -> Expression:
    """Return a call from its name and arguments."""
    return Call(parts[0], tuple(parts[1:]))


COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "is distinct from", "is not distinct from")


def comparison(kind: DataType) -> SearchStrategy[Expression]:
    """Draw a comparison of values of a type, on either side."""
    one, other = value(kind), st.one_of(constant(kind), constant(kind), value(kind))
    name = st.sampled_from(COMPARISONS)
    there = st.tuples(name, one, other).map(called)
    back = st.tuples(name, other, one).map(called)
    among = st.tuples(one, st.lists(other, min_size=1, max_size=4)).map(
        lambda parts: Call("in", (parts[0], *parts[1]))
    )
    null = one.map(lambda each: Call("is null", (each,)))
    return st.one_of(there, there, back, among, null)


def text_test() -> SearchStrategy[Expression]:
    """Draw a test of a text."""
    like = st.tuples(
        st.sampled_from(("like", "ilike")),
        value(STRING),
        st.sampled_from(PATTERNS).map(lambda each: Literal(each, STRING)),
    )
    part = st.tuples(
        st.sampled_from(("starts_with", "ends_with", "contains")), value(STRING), constant(STRING)
    )
    regexp = st.tuples(
        st.just("regexp_matches"),
        value(STRING),
        st.sampled_from(EXPRESSIONS).map(lambda each: Literal(each, STRING)),
    )
    return st.one_of(like, part, regexp).map(called)


ATOMS = st.one_of(
    *map(comparison, VALUES),
    comparison(INT64),
    text_test(),
    text_test(),
    st.just(Column("b")),
    constant(BOOL),
)


def combined(parts: SearchStrategy[Expression]) -> SearchStrategy[Expression]:
    """Draw conditions made of others."""
    pair = st.tuples(st.sampled_from(("and", "or")), parts, parts)
    cases = st.tuples(st.just("case"), parts, parts, parts)
    return st.one_of(
        pair.map(called),
        pair.map(called),
        pair.map(called),
        parts.map(lambda each: Call("not", (each,))),
        st.tuples(parts, st.booleans()).map(
            lambda each: Call("coalesce", (each[0], Literal(each[1], BOOL)))
        ),
        parts.map(lambda each: Call("is null", (each,))),
        st.tuples(st.just("is distinct from"), parts, constant(BOOL)).map(called),
        cases.map(called),
    )


def simple() -> SearchStrategy[Expression]:
    """Draw a comparison of a column with a constant."""
    names = st.sampled_from(("=", "=", "=", "<>", "<", "<=", ">", ">="))
    return st.sampled_from((INT64, STRING, BOOL, FLOAT64)).flatmap(
        lambda kind: st.tuples(names, st.sampled_from(columns(kind)), constant(kind)).map(called)
    )


def conjunction() -> SearchStrategy[Expression]:
    """Draw several simple conditions all of which have to be true."""
    return st.lists(simple(), min_size=1, max_size=5).map(
        lambda parts: reduce(lambda left, right: Call("and", (left, right)), parts)
    )


def conditions() -> SearchStrategy[Expression]:
    """Draw a bound condition."""
    any_shape = st.recursive(st.one_of(ATOMS, simple()), combined, max_leaves=8)
    return st.one_of(any_shape, conjunction()).map(lambda each: bind_condition(each, ROW))
