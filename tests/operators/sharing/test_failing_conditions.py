"""Conditions that fail do so alone, and memory stays within bounds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eventide.errors import EvaluationError
from eventide.operators.sharing.predicate_index import PredicateIndex
from eventide.plan.expressions import Call, Cast, Column, Expression, Literal, integer
from eventide.schema import BOOL, FLOAT64, INT64, STRING

KIND, TEXT, X = Column("kind", STRING), Column("text", STRING), Column("x", FLOAT64)
ROW = {"kind": STRING, "text": STRING, "x": FLOAT64}
NUMBER = Call(">", (Cast(TEXT, INT64), integer(5)), BOOL)
ROWS = pa.RecordBatch.from_pydict(
    {"kind": ["a", "b", "a"], "text": ["7", "seven", "3"], "x": [0.5, 1.5, 2.5]}
)


def both(left: Expression, right: Expression) -> Expression:
    return Call("and", (left, right), BOOL)


def is_kind(kind: str) -> Expression:
    return Call("=", (KIND, Literal(kind, STRING)), BOOL)


def test_only_the_condition_at_fault_fails() -> None:
    index = PredicateIndex(ROW)
    index.add(np.arange(4), [NUMBER, both(is_kind("a"), NUMBER), is_kind("b"), is_kind("a")])
    events, numbers = index.matches(ROWS)
    assert list(zip(events.tolist(), numbers.tolist(), strict=True)) == [
        *((0, 1), (0, 3)),
        (1, 2),
        (2, 3),
    ]
    assert list(index.failed) == [0]
    assert isinstance(index.failed[0], EvaluationError)
    index.matches(ROWS.slice(0, 1))
    assert not index.failed


def test_an_expression_that_is_none_fails_wherever_it_is_asked_for() -> None:
    index = PredicateIndex(ROW)
    wrong = Call("regexp_matches", (TEXT, Literal("(", STRING)), BOOL)
    index.add(np.arange(2), [wrong, is_kind("a")])
    assert index.matches(ROWS)[1].tolist() == [1, 1]
    assert list(index.failed) == [0]
    index.drop(np.array([0]))
    index.matches(ROWS)
    assert not index.failed
    assert len(index) == 1


def test_a_row_of_constants_fails_alone() -> None:
    index = PredicateIndex(ROW)
    place = Column("$1", STRING)
    shape = Call("=", (Column("x", FLOAT64), Cast(place, FLOAT64)), BOOL)
    index.add_template(np.arange(3), shape, pa.RecordBatch.from_pydict({"$1": ["0.5", "?", "2.5"]}))
    assert index.matches(ROWS)[1].tolist() == [0, 2]
    assert list(index.failed) == [1]


def test_a_place_inside_of_an_expression_is_computed() -> None:
    index = PredicateIndex(ROW)
    shape = Call(">", (Call("*", (X, Column("$1", FLOAT64)), FLOAT64), X), BOOL)
    constants = pa.RecordBatch.from_pydict({"$1": [0.5, 2.0, None]})
    index.add_template(np.arange(3), shape, constants)
    assert index.matches(ROWS)[1].tolist() == [1, 1, 1]


def test_what_left_takes_no_memory() -> None:
    rng = np.random.default_rng(1)
    index = PredicateIndex(ROW)
    shape = both(
        Call("=", (KIND, Column("$1", STRING)), BOOL),
        both(
            Call("contains", (TEXT, Column("$2", STRING)), BOOL),
            Call(">", (X, Column("$3", FLOAT64)), BOOL),
        ),
    )
    taken = []
    for start in range(0, 20_000, 1_000):
        numbers = np.arange(start, start + 1_000)
        texts = [f"text {each}" for each in numbers]
        constants = {"$1": texts, "$2": texts, "$3": rng.random(1_000)}
        index.add_template(numbers, shape, pa.RecordBatch.from_pydict(constants))
        index.matches(ROWS)
        index.drop(numbers - 1_000)
        taken.append(index.nbytes)
    assert len(index) == 1_000
    assert taken[-1] <= 2 * taken[4]


def test_a_condition_takes_few_octets() -> None:
    rng = np.random.default_rng(1)
    count = 50_000
    index = PredicateIndex({"a": INT64, "b": INT64, "x": FLOAT64, "y": FLOAT64})
    pairs = (("=", "a", INT64), ("=", "b", INT64), (">", "x", FLOAT64), ("<", "y", FLOAT64))
    parts = [
        Call(name, (Column(column, kind), Column(f"${column}", kind)), BOOL)
        for name, column, kind in pairs
    ]
    constants = {
        "$a": rng.integers(0, 100, count),
        "$b": rng.integers(0, 100, count),
        "$x": rng.random(count),
        "$y": rng.random(count),
    }
    shape = both(both(parts[0], parts[1]), both(parts[2], parts[3]))
    index.add_template(np.arange(count), shape, pa.RecordBatch.from_pydict(constants))
    rows = pa.RecordBatch.from_pydict({"a": [1], "b": [2], "x": [0.5], "y": [0.5]})
    index.matches(rows)
    assert index.nbytes / count < 80
