from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.operators.sharing.conditions.apart import with_constants
from eventide.operators.sharing.predicate_index import PredicateIndex
from eventide.plan.expressions import Call, Column, Expression, Literal, rebuild
from eventide.schema import BOOL, INT64
from tests.naive.sharing import predicate_index as naive
from tests.operators.sharing.conditions import ROW, VALUES, conditions, events, nullable

KINDS = tuple(VALUES)


def check(index: PredicateIndex, held: dict[int, Expression], rows: pa.RecordBatch) -> None:
    """The index finds what each condition finds alone, and they fail where they fail alone."""
    found_events, found_numbers = index.matches(rows)
    pairs, failed = naive.matches(held, rows)
    assert list(zip(found_events.tolist(), found_numbers.tolist(), strict=True)) == pairs
    assert set(index.failed) == failed
    assert len(index) == len(held)


@settings(deadline=None)
@given(st.lists(conditions(), min_size=1, max_size=20), st.lists(events(), max_size=3))
def test_it_finds_what_each_condition_finds_alone(
    several: list[Expression], batches: list[pa.RecordBatch]
) -> None:
    index = PredicateIndex(ROW)
    index.add(np.arange(len(several)), several)
    for rows in batches:
        check(index, dict(enumerate(several)), rows)


@settings(deadline=None)
@given(st.data())
def test_conditions_come_and_go_between_batches(data: st.DataObject) -> None:
    index = PredicateIndex(ROW)
    held: dict[int, Expression] = {}
    following = 0
    for _ in range(data.draw(st.integers(1, 5))):
        gone = data.draw(st.sets(st.sampled_from(sorted(held)))) if held else set()
        index.drop(np.array(sorted(gone), np.int64))
        held = {number: each for number, each in held.items() if number not in gone}
        new = data.draw(st.lists(conditions(), max_size=8))
        numbers = range(following, following + len(new))
        index.add(np.array(numbers, np.int64), new)
        held.update(zip(numbers, new, strict=True))
        following += len(new)
        if data.draw(st.booleans()):
            check(index, held, data.draw(events()))
    check(index, held, data.draw(events()))


@settings(deadline=None)
@given(
    conditions(),
    st.lists(st.tuples(*map(nullable, map(VALUES.__getitem__, KINDS))), min_size=1, max_size=20),
    events(),
)
def test_a_template_is_a_condition_for_each_row(
    shape: Expression, rows: list[tuple[Any, ...]], batch: pa.RecordBatch
) -> None:
    constants, template = as_template(shape, rows)
    index = PredicateIndex(ROW)
    index.add_template(np.arange(len(rows)), template, constants)
    held = {row: with_constants(template, constants, row) for row in range(len(rows))}
    check(index, held, batch)


OPTIONAL = (
    *(("=", "i"), ("=", "j"), ("=", "s"), ("=", "t"), ("=", "i"), ("<>", "j"), (">", "f")),
    *(("<=", "f"), ("=", "at"), (">=", "at"), ("=", "b")),
)


@settings(deadline=None)
@given(st.data(), st.integers(1, 40), st.sampled_from(("is null", "never")), events())
def test_constants_may_be_left_out(
    data: st.DataObject, count: int, null: str, batch: pa.RecordBatch
) -> None:
    parts, columns = [], {}
    for place, (name, column) in enumerate(OPTIONAL):
        kind = ROW[column]
        values = st.lists(nullable(VALUES[kind]), min_size=count, max_size=count)
        columns[f"${place}"] = pa.array(data.draw(values), kind.arrow)
        constant = Column(f"${place}", kind)
        test = Call(name, (Column(column, kind), constant), BOOL)
        left_out = Call("is null", (constant,), BOOL)
        optional = null == "is null" or place > 1
        parts.append(Call("or", (left_out, test), BOOL) if optional else test)
    constants = pa.RecordBatch.from_pydict(columns)
    template = reduce(lambda left, right: Call("and", (left, right), BOOL), parts)
    held = {row: with_constants(template, constants, row) for row in range(count)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eventide.operators.sharing.conditions.optional._MOST_PATTERNS", 2)
        index = PredicateIndex(ROW)
        index.add_template(np.arange(count), template, constants)
        check(index, held, batch)
        gone = data.draw(st.sets(st.integers(0, count - 1)))
        index.drop(np.array(sorted(gone), np.int64))
        check(index, {row: each for row, each in held.items() if row not in gone}, batch)


def as_template(
    shape: Expression, rows: list[tuple[Any, ...]]
) -> tuple[pa.RecordBatch, Expression]:
    """Return constants, and the shape with a place wherever a constant has the type of a column."""
    columns = {f"${place}": [row[place] for row in rows] for place in range(len(KINDS))}
    constants = pa.RecordBatch.from_arrays(
        [pa.array(each, kind.arrow) for each, kind in zip(columns.values(), KINDS, strict=True)],
        names=list(columns),
    )

    def change(part: Expression) -> Expression:
        if isinstance(part, Literal) and part.type in KINDS:
            return Column(f"${KINDS.index(part.type)}", part.type)
        return rebuild(part, change)

    return constants, change(shape)


def test_many_that_came_one_by_one_go_one_by_one() -> None:
    index = PredicateIndex({"x": INT64})
    column = Column("x", INT64)
    held: dict[int, Expression] = {}
    for number in range(300):
        held[number] = Call("=", (column, Literal(number % 7, INT64)), BOOL)
        index.add(np.array([number]), [held[number]])
    for number in range(0, 300, 2):
        del held[number]
        index.drop(np.array([number]))
    check(index, held, pa.RecordBatch.from_pydict({"x": pa.array([3, None, 5], pa.int64())}))
