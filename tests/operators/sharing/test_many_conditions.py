"""Hundreds of conditions over few values, so that all ways to find them come up."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pyarrow as pa
import pytest

from eventide.operators.sharing.conditions import segments
from eventide.operators.sharing.predicate_index import PredicateIndex
from eventide.plan.expressions import Call, Column, Expression, Literal
from eventide.schema import BOOL, FLOAT64, INT64, STRING, DataType
from tests.exploring import EXPLORING
from tests.operators.sharing.test_predicate_index import check

ROW: dict[str, DataType] = {
    **dict.fromkeys(("a", "b", "c"), INT64),
    **dict.fromkeys(("x", "y"), FLOAT64),
    **dict.fromkeys(("s", "t"), STRING),
    "on": BOOL,
}
NUMBERS = ("=", "=", "=", "<>", "<", "<=", ">", ">=")
TEXTS = ("=", "=", "<>", "contains", "starts_with", "ends_with", "like")
WORDS = ("a", "ab", "ba", "aba", "bb%", "%b_", "a%b")


def random_condition(rng: np.random.Generator, depth: int) -> Expression:
    """Return a condition of some depth."""
    if depth == 0:
        return random_test(rng)
    parts = [random_condition(rng, depth - 1) for _ in range(rng.integers(1, 5))]
    name = str(rng.choice(["and", "and", "or"]))
    joined = reduce(lambda left, right: Call(name, (left, right), BOOL), parts)
    return Call("not", (joined,), BOOL) if rng.random() < 0.15 else joined


def random_test(rng: np.random.Generator) -> Expression:
    """Return a comparison of a column with constants."""
    name = str(rng.choice(list(ROW)))
    kind = ROW[name]
    column = Column(name, kind)
    if rng.random() < 0.05:
        return Call("is null", (column,), BOOL)
    if kind == STRING:
        constant = Literal(str(rng.choice(WORDS)), STRING)
        return Call(str(rng.choice(TEXTS)), (column, constant), BOOL)
    if kind == BOOL:
        return column
    several = [Literal(kind.arrow.to_pandas_dtype()(each).item(), kind) for each in draw(rng, 3)]
    if rng.random() < 0.15:
        return Call("in", (column, *several), BOOL)
    return Call(str(rng.choice(NUMBERS)), (column, several[0]), BOOL)


def draw(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.integers(0, 4, count)


def batch(rng: np.random.Generator, count: int) -> pa.RecordBatch:
    """Return events."""

    def column(kind: DataType) -> pa.Array:
        null = rng.random(count) < 0.1
        if kind == STRING:
            values = ["".join(rng.choice(["a", "b"], rng.integers(0, 4))) for _ in range(count)]
        else:
            values = draw(rng, count).astype(kind.arrow.to_pandas_dtype()).tolist()
        return pa.array(values, kind.arrow, mask=null)

    return pa.RecordBatch.from_pydict({name: column(kind) for name, kind in ROW.items()})


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("seed", range(100 if EXPLORING else 4))
def test_all_ways_to_find_conditions_agree_with_each_condition(
    seed: int, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:
        monkeypatch.setattr(segments, "_LARGE_TABLE", 16)
    rng = np.random.default_rng(seed)
    held: dict[int, Expression] = {}
    index = PredicateIndex(ROW)
    for start in (0, 200, 400):
        new = {start + place: random_condition(rng, depth) for place in range(150)}
        index.add(np.array(list(new)), list(new.values()))
        held |= new
        check(index, held, batch(rng, 50))
        gone = rng.choice(list(held), 80, replace=False)
        index.drop(gone)
        held = {number: each for number, each in held.items() if number not in set(gone.tolist())}
        check(index, held, batch(rng, 50))


def varied(rng: np.random.Generator, condition: Expression) -> Expression:
    """Return a condition with other numbers in it."""
    if isinstance(condition, Literal) and condition.type in (INT64, FLOAT64):
        value = condition.type.arrow.to_pandas_dtype()(draw(rng, 1)[0]).item()
        return Literal(value, condition.type)
    if not isinstance(condition, Call):
        return condition
    arguments = tuple(varied(rng, each) for each in condition.arguments)
    return Call(condition.function, arguments, condition.type)


@pytest.mark.parametrize("seed", range(100 if EXPLORING else 6))
def test_conditions_that_differ_in_numbers_are_tested_together(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shapes = [random_condition(rng, depth) for depth in (0, 1, 1, 2)]
    # An event meets more of them than are put in order one by one.
    new = [varied(rng, shapes[place % len(shapes)]) for place in range(400)]
    numbers = rng.permutation(len(new))
    index = PredicateIndex(ROW)
    index.add(numbers, new)
    check(index, dict(zip(numbers.tolist(), new, strict=True)), batch(rng, 40))
