"""Conditions that read one row and rows at fixed distances from it: a bit of every row for each.

They are computed for whole batches, before any matching. Rows come in their own order; masks are
in key order, where PREV and NEXT are neighbours. Conditions without PREV and NEXT are computed in
the rows' own order, so that only their bits have to be put in key order.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventide.accumulators.columns import int64s
from eventide.arrays import FLOAT64, buffer_of, to_arrow, to_numpy
from eventide.kernels.compiled import Bools, Int64s, Numbers, frozen
from eventide.kernels.ordering import gather, ranges
from eventide.operators.columns import short_texts
from eventide.operators.expressions.evaluate import evaluate, evaluate_predicate
from eventide.plan.expressions import (
    At,
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjuncts,
    rebuild,
)
from eventide.plan.render import render
from eventide.schema import TS

Masks = npt.NDArray[np.unsignedinteger]


@dataclass(frozen=True)
class RowsByKey:
    """Rows, and the order that puts those of one key together: key k is [offsets[k], …).

    `in_key_order` says that the rows already lie in that order.
    """

    rows: pa.RecordBatch
    order: Int64s
    offsets: Int64s
    in_key_order: bool
    marks: Masks | None = None
    """Of each row, in the rows' own order, which conditions on nothing but the row hold."""
    taken: dict[str, pa.Array] = field(default_factory=dict, compare=False)
    viewed: dict[tuple[str, int], Numbers | None] = field(default_factory=dict, compare=False)
    lying: dict[str, Numbers | None] = field(default_factory=dict, compare=False)
    borders: dict[int, Int64s] = field(default_factory=dict, compare=False)

    def part(self, first: int, last: int) -> RowsByKey:
        """Return the rows of keys [first, last)."""
        low, high = int(self.offsets[first]), int(self.offsets[last])
        offsets = self.offsets[first : last + 1] - low
        if self.in_key_order:
            rows = self.rows.slice(low, high - low)
            return RowsByKey(rows, self.order[: high - low], offsets, in_key_order=True)
        return RowsByKey(
            self.rows, self.order[low:high], offsets, in_key_order=False, marks=self.marks
        )

    @property
    def count(self) -> int:
        """The number of rows; `rows` may have more."""
        return len(self.order)

    def column(self, name: str) -> pa.Array:
        """Return a column in key order."""
        if self.in_key_order:
            return self.rows.column(name)
        if name not in self.taken:
            self.taken[name] = self.rows.column(name).take(to_arrow(self.order))
        return self.taken[name]

    def select(self, names: Sequence[str]) -> pa.RecordBatch:
        """Return some columns in key order."""
        if not names:
            # A batch without columns would not know its number of rows.
            return pa.RecordBatch.from_arrays([self.column("ts")], ["ts"])
        return pa.RecordBatch.from_arrays([self.column(name) for name in names], list(names))

    def at(self, places: Int64s, names: Sequence[str]) -> pa.RecordBatch:
        """Return some columns of the rows at places in key order, null where a place is -1."""
        where = places if self.in_key_order else self.order[places]
        there = places >= 0 if len(places) and places.min() < 0 else None
        wanted = self.rows.select(list(names) or ["ts"])
        return wanted.take(to_arrow(where, there))

    def numbers(self, name: str, shift: int = 0) -> Numbers | None:
        """Return a column of numbers or times in key order, or None if it is not plain.

        With `shift`, from that many rows on; if there is no such row, the number is arbitrary.
        """
        if (name, shift) not in self.viewed:
            plain = self.numbers(name) if shift else self.plain(name)
            if plain is not None and shift:
                plain = moved_by(plain, shift)
            elif plain is not None and not self.in_key_order:
                plain = plain[self.order]
            self.viewed[name, shift] = plain
        return self.viewed[name, shift]

    def plain(self, name: str) -> Numbers | None:
        """Return a column's memory, if it is plain numbers or times."""
        if name not in self.lying:
            self.lying[name] = plain_numbers(self.rows.column(name))
        return self.lying[name]

    @property
    def times(self) -> Int64s:
        """The times of rows in key order, in microseconds."""
        times = self.numbers(TS)
        # Events have a time, but a column `ts` of a subquery may be null.
        return int64s(self.column(TS)) if times is None else np.asarray(times, np.int64)

    def value_at(self, places: Int64s, name: str) -> pa.Array:
        """Return a column at places in key order, null where a place is -1."""
        column = self.rows.column(name)
        if column.type.id in PLAIN_IDS and not column.null_count and len(column):
            found = np.empty(len(places), np.int64)
            if gather(_words(column), frozen(self.order), frozen(places), found):
                return pa.Array.from_buffers(column.type, len(found), [None, buffer_of(found)])
        return self.at(places, [name]).column(0)

    def beyond(self, shift: int) -> Int64s:
        """Return the rows with no row of their key that far ahead (or back, if negative)."""
        if shift not in self.borders:
            sizes = np.minimum(self.offsets[1:] - self.offsets[:-1], abs(shift))
            starts = self.offsets[:-1] if shift < 0 else self.offsets[1:] - sizes
            self.borders[shift] = ranges(starts, sizes)
        return self.borders[shift]

    def shifted(self, values: pa.Array, shift: int) -> pa.Array:
        """Return for each row the value `shift` rows on within its key, null beyond its ends.

        Values and results are in key order.
        """
        count = len(values)
        far = min(abs(shift), count)
        nulls = pa.nulls(far, values.type)
        if shift < 0:
            moved = pa.concat_arrays([nulls, values.slice(0, count - far)])
        else:
            moved = pa.concat_arrays([values.slice(far), nulls])
        if len(self.offsets) <= 2:
            return moved
        beyond = np.zeros(self.count, np.bool_)
        beyond[self.beyond(shift)] = True
        return pc.if_else(to_arrow(beyond), pa.scalar(None, values.type), moved)


def moved_by(numbers: Numbers, shift: int) -> Numbers:
    """Return for each place the number `shift` places on; any number if there is none."""
    moved = numbers.copy()
    if shift < 0:
        moved[-shift:] = numbers[:shift]
    else:
        moved[:-shift] = numbers[shift:]
    return moved


def plain_numbers(column: pa.Array) -> Numbers | None:
    """Return a column's memory, if that compares as its values do.

    It does not with nulls, nor with NaN, which is greater than all numbers here but not in NumPy.
    """
    kind = column.type.id
    if kind not in PLAIN_IDS or column.null_count:
        return None
    if kind != FLOAT64:
        return _words(column)
    found = to_numpy(column)
    return None if len(found) and np.isnan(found.min()) else found


def times_lying(rows: pa.RecordBatch) -> Int64s | None:
    """Return the times of rows as they lie, in microseconds; None if one is null."""
    column = rows.column(TS)
    return None if column.null_count else _words(column)


def _words(column: pa.Array) -> Int64s:
    """Return the memory of a column of one of the types below, as whole numbers."""
    if not len(column):
        return frozen(np.empty(0, np.int64))
    words = np.frombuffer(column.buffers()[1], np.int64, len(column), 8 * column.offset)
    return frozen(words)


PLAIN_TYPES = (pa.float64(), pa.int64(), pa.timestamp("us"), pa.duration("us"))
# By number: types of Arrow are slow to compare. Times of events are always microseconds.
PLAIN_IDS = frozenset(kind.id for kind in PLAIN_TYPES)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value at a fixed distance from the tested row, and the name of the column it becomes."""

    argument: Expression
    shift: int
    name: str
    reads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Operand:
    """A column with a shift in rows, or a constant."""

    name: str = ""
    shift: int = 0
    constant: float | None = None

    def numbers(self, by_key: RowsByKey) -> Numbers | float | None:
        """Return its values in key order; None if they are not plain numbers."""
        return by_key.numbers(self.name, self.shift) if self.name else self.constant


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison such as `a < PREV(b)`, for which NumPy is enough if the numbers are plain."""

    symbol: str
    left: Operand
    right: Operand

    def holding(self, by_key: RowsByKey) -> Bools | None:
        """Return whether it holds, for each row in key order; None if numbers are not plain."""
        left, right = self.left.numbers(by_key), self.right.numbers(by_key)
        if left is None or right is None:
            return None
        found = np.asarray(COMPARE[self.symbol](left, right))
        for operand in (self.left, self.right):
            if operand.shift:
                found[by_key.beyond(operand.shift)] = False
        return found


COMPARE: Mapping[str, Callable[[Numbers | float, Numbers | float], Bools]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "<>": operator.ne,
}


def comparison_of(condition: Expression) -> Comparison | None:
    """Return a condition as a comparison of two plain operands, at least one a column."""
    match condition:
        case Call(function=name, arguments=(left, right)) if name in COMPARE:
            one, other = operand_of(left), operand_of(right)
            if one is not None and other is not None and (one.name or other.name):
                return Comparison(name, one, other)
    return None


def operand_of(expression: Expression) -> Operand | None:
    """Return the operand that a side of a comparison is, if it is plain."""
    match expression:
        case At(argument=Column(name=name, type=kind), shift=shift) if kind.arrow in PLAIN_TYPES:
            return Operand(name, shift)
        case Literal(value=int() | float() as value, type=kind):
            plain = kind.arrow in PLAIN_TYPES and not math.isnan(value)
            return Operand(constant=value) if plain else None
    return None


@dataclass(frozen=True, slots=True)
class LocalCondition:
    """A condition on one row: `plain` over the columns it `reads` and those of its leaves.

    All of its `parts` have to hold. If these are nothing but comparisons, they are `comparisons`.
    """

    plain: Expression
    reads: tuple[str, ...]
    leaves: tuple[Leaf, ...]
    parts: tuple[Expression, ...] = ()
    comparisons: tuple[Comparison, ...] = ()

    @classmethod
    def of(cls, condition: Expression) -> LocalCondition:
        """Split a condition."""
        found: dict[At, str] = {}
        plain = unwrapped(condition, found, columns_of(condition))
        reads = columns_of(plain) - set(found.values())
        leaves = (
            Leaf(at.argument, at.shift, name, tuple(sorted(columns_of(at.argument))))
            for at, name in found.items()
        )
        parts = tuple(conjuncts(condition))
        compared = [comparison_of(part) for part in parts]
        comparisons = tuple(each for each in compared if each is not None)
        if len(comparisons) < len(compared):
            comparisons = ()
        return cls(plain, tuple(sorted(reads)), tuple(leaves), parts, comparisons)

    def holding(self, by_key: RowsByKey) -> Bools:
        """Return whether the condition holds, for each row in key order."""
        compared = [each.holding(by_key) for each in self.comparisons]
        known = [each for each in compared if each is not None]
        if known and len(known) == len(compared):
            return reduce(np.logical_and, known)
        names = [*self.reads, *(leaf.name for leaf in self.leaves)]
        arrays = [by_key.column(name) for name in self.reads]
        for leaf in self.leaves:
            values = evaluate(leaf.argument, by_key.select(leaf.reads))
            arrays.append(by_key.shifted(values, leaf.shift))
        rows = pa.RecordBatch.from_arrays(arrays, names) if names else by_key.select(())
        return np.asarray(evaluate_predicate(self.plain, rows).to_numpy(zero_copy_only=False))


def masks_of(conditions: Sequence[LocalCondition | None], by_key: RowsByKey) -> Masks:
    """Return, for each row in key order, which conditions hold; no condition always holds."""
    if by_key.in_key_order:
        marks = marks_of(conditions, by_key.rows)
    else:
        marks = marks_of(conditions, by_key.rows) if by_key.marks is None else by_key.marks
        marks = marks[by_key.order]
    always = sum(1 << number for number, each in enumerate(conditions) if each is None)
    masks: Masks = marks | np.uint64(always)
    for number, condition in enumerate(conditions):
        if condition is not None and condition.leaves:
            masks |= condition.holding(by_key) * np.uint64(1 << number)
    return masks


def marks_of(conditions: Sequence[LocalCondition | None], rows: pa.RecordBatch) -> Masks:
    """Return, for each row as it lies, which of the conditions on nothing but the row hold.

    A condition on one column of text is computed once for each text, if there are few.
    """
    own = {number: each for number, each in enumerate(conditions) if each and not each.leaves}
    marks: Masks = np.zeros(rows.num_rows, np.min_scalar_type((1 << len(conditions)) - 1))
    by_text: dict[str, dict[int, LocalCondition]] = {}
    for number, condition in own.items():
        if len(condition.reads) == 1:
            by_text.setdefault(condition.reads[0], {})[number] = condition
    for name, asked in by_text.items():
        texts = short_texts(rows.column(name))
        if texts is not None:
            codes, first = texts
            values = rows.select([name]).take(to_arrow(first))
            marks |= _marked(asked, values, marks.dtype)[codes]
            own = {number: each for number, each in own.items() if number not in asked}
    return marks | _marked(own, rows, marks.dtype) if own else marks


def _marked(
    conditions: Mapping[int, LocalCondition],
    rows: pa.RecordBatch,
    kind: np.dtype[np.unsignedinteger],
) -> Masks:
    """Return which conditions hold, by their numbers, for each row as it lies."""
    count = rows.num_rows
    lying = RowsByKey(rows, np.empty(0, np.int64), np.array([0, count]), in_key_order=True)
    marks: Masks = np.zeros(count, kind)
    for number, condition in conditions.items():
        marks |= condition.holding(lying) * kind.type(1 << number)
    return marks


def unwrapped(expression: Expression, leaves: dict[At, str], taken: frozenset[str]) -> Expression:
    """Return the expression over the tested row's columns, with values at other rows as columns.

    PREV(COALESCE(x, 0)) is null if there is no row before: so the argument is computed first, and
    then moved.
    """
    if isinstance(expression, At):
        if not expression.shift:
            return expression.argument
        leaf = replace(expression, variable=None)
        name = leaves.setdefault(leaf, unused(render(expression), taken))
        return Column(name, expression.type)
    return rebuild(expression, lambda part: unwrapped(part, leaves, taken))


def unused(name: str, taken: Collection[str]) -> str:
    """Return the name, or one that looks the same in an error, that no column has.

    >>> unused("PREV(x)", ["x", "PREV(x)"])
    'PREV(x) '
    """
    while name in taken:
        name += " "
    return name
