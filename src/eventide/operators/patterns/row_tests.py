"""Conditions made of comparisons of plain numbers, for one kernel, and of tests of single texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide.arrays import TEXT, to_arrow, to_numpy
from eventide.kernels.compiled import Int32s, frozen
from eventide.kernels.patterns.marks import (
    EQUAL,
    FACTS,
    GREATER,
    LEFT_SHIFT,
    LESS,
    RIGHT_SHIFT,
    Comparisons,
    mark_rows,
    mark_texts,
)
from eventide.operators.columns import (
    FEW_TEXTS,
    MANY_ROWS,
    number_more,
    short_texts,
    text_table,
)
from eventide.operators.expressions.evaluate import evaluate_predicate
from eventide.operators.patterns.masks import (
    LocalCondition,
    Masks,
    Operand,
    RowsByKey,
    comparison_of,
    unwrapped,
)
from eventide.plan.expressions import At, Column, Expression, columns_of, walk
from eventide.plan.failing import can_fail
from eventide.schema import STRING

HOW = {
    "<": LESS,
    "<=": LESS | EQUAL,
    ">": GREATER,
    ">=": GREATER | EQUAL,
    "=": EQUAL,
    "<>": LESS | GREATER,
}
NO_FLOATS, NO_INTS = frozen(np.empty((0, 0))), frozen(np.empty((0, 0), np.int64))
INT64_RANGE = range(-(2**63), 2**63)


class Gathered:
    """Comparisons of numbers of one type, while they are collected."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.facts: list[tuple[int, ...]] = []
        self.constants: list[float] = [0]

    def add(self, number: int, compare: int, operands: Sequence[Operand]) -> None:
        """Add a comparison."""
        places = []
        for each in operands:
            if not each.name:
                places += [-1 - len(self.constants), 0]
                assert each.constant is not None
                self.constants.append(each.constant)
                continue
            if each.name not in self.names:
                self.names.append(each.name)
            places += [self.names.index(each.name), each.shift]
        self.facts.append((number, compare, *places))

    def comparisons(self, kind: type[np.generic]) -> Comparisons:
        """Return them as the kernel takes them."""
        in_order = sorted(self.facts, key=is_shifted)
        facts = np.array(in_order, np.int64).reshape(len(in_order), FACTS)
        shifted = len(in_order) - sum(map(is_shifted, in_order))
        return Comparisons(frozen(facts), frozen(np.array(self.constants, kind)), shifted)


def is_shifted(facts: Sequence[int]) -> bool:
    """Whether a comparison reads a row before or behind the tested one."""
    return facts[LEFT_SHIFT] != 0 or facts[RIGHT_SHIFT] != 0


@dataclass(frozen=True, slots=True)
class TextCondition:
    """A condition on nothing but one column of text, that of the tested row."""

    name: str
    plain: Expression


def text_condition_of(condition: Expression) -> TextCondition | None:
    """Return a condition as one on a column of text, if it is such a one and cannot fail."""
    names = columns_of(condition)
    if len(names) != 1 or can_fail(condition):
        return None
    shifted: dict[At, str] = {}
    plain = unwrapped(condition, shifted, names)
    kinds = {part.type for part in walk(plain) if isinstance(part, Column)}
    if kinds != {STRING} or shifted:
        return None
    (name,) = names
    return TextCondition(name, plain)


class TextMarks:
    """The conditions of some variables on one column of text, and the texts that have been seen.

    Bit v of `failing[n]` says that a condition of variable v does not hold for text number n. When
    there are too many texts, all are forgotten. Threads may ask at the same time.
    """

    def __init__(self, name: str, conditions: Sequence[tuple[int, Expression]]) -> None:
        self.name = name
        self.conditions = conditions
        self.asked = Lock()
        self.forget()

    def forget(self) -> None:
        """Forget all texts."""
        self.table = text_table()
        self.count = 0
        self.failing = np.zeros(FEW_TEXTS, np.uint64)

    def mark(self, rows: pa.RecordBatch, lying: Masks) -> bool:
        """Mark the rows where conditions fail; False if there are nulls, or long or many texts."""
        column = rows.column(self.name)
        if column.type.id != TEXT or column.null_count:
            return False
        if not len(column):
            return True
        if len(column) >= MANY_ROWS:
            # Threads do not wait for each other, and to look at a few texts again costs nothing.
            own = short_texts(column)
            if own is not None:
                mark_texts(own[0], self.failing_of(column.take(to_arrow(own[1]))), lying)
            return own is not None
        with self.asked:
            try:
                codes = self.numbered(column)
            except BaseException:
                # Texts may have numbers, and nobody knows which conditions they meet.
                self.forget()
                raise
            if codes is None:
                self.forget()
                return False
            mark_texts(codes, self.failing, lying)
        return True

    def numbered(self, column: pa.Array) -> Int32s | None:
        """Return the number of each text, and see that all are known; None if they are unusual."""
        found = number_more(column, self.table, self.count)
        if found is None and self.count:
            self.forget()
            found = number_more(column, self.table, 0)
        if found is None:
            return None
        codes, first = found
        if len(first):
            fresh = self.failing_of(column.take(to_arrow(first)))
            self.failing[self.count : self.count + len(first)] = fresh
            self.count += len(first)
        return codes

    def failing_of(self, texts: pa.Array) -> Masks:
        """Return which conditions do not hold, for each text."""
        rows = pa.RecordBatch.from_arrays([texts], [self.name])
        failing = np.zeros(len(texts), np.uint64)
        for variable, condition in self.conditions:
            holds = to_numpy(evaluate_predicate(condition, rows))
            failing |= ~holds * np.uint64(1 << variable)
        return failing


@dataclass(frozen=True)
class RowTests:
    """The conditions of all variables, if they compare plain numbers or test single texts."""

    float_names: tuple[str, ...]
    int_names: tuple[str, ...]
    of_floats: Comparisons
    of_ints: Comparisons
    all_bits: np.uint64
    texts: tuple[TextMarks, ...] = ()

    @classmethod
    def of(cls, conditions: Sequence[LocalCondition | None], schema: pa.Schema) -> RowTests | None:
        """Collect the parts of conditions; None if there is anything else, or nothing."""
        floats, ints, texts = Gathered(), Gathered(), dict[str, list[tuple[int, Expression]]]()
        for number, condition in enumerate(conditions):
            if condition is None:
                continue
            for part in condition.parts:
                each = comparison_of(part)
                if each is None:
                    of_text = text_condition_of(part)
                    if of_text is None:
                        return None
                    texts.setdefault(of_text.name, []).append((number, of_text.plain))
                    continue
                operands = (each.left, each.right)
                is_float = {
                    schema.field(operand.name).type == pa.float64()
                    for operand in operands
                    if operand.name
                }
                if len(is_float) > 1:
                    return None
                wanted = floats if True in is_float else ints
                constants = [each.constant for each in operands if not each.name]
                if wanted is ints and any(value not in INT64_RANGE for value in constants):
                    return None
                wanted.add(number, int(HOW[each.symbol]), operands)
        if not (floats.facts or ints.facts or texts):
            return None
        return cls(
            tuple(floats.names),
            tuple(ints.names),
            floats.comparisons(np.float64),
            ints.comparisons(np.int64),
            np.uint64((1 << len(conditions)) - 1),
            tuple(TextMarks(name, asked) for name, asked in texts.items()),
        )

    def masks_of(self, by_key: RowsByKey) -> Masks | None:
        """Return, for each row in key order, which hold; None if values are null or unusual."""
        floats = stacked(by_key.rows, self.float_names, np.float64)
        ints = stacked(by_key.rows, self.int_names, np.int64)
        if floats is None or ints is None:
            return None
        lying, masks = np.zeros(by_key.rows.num_rows, np.uint64), np.empty(by_key.count, np.uint64)
        if not all(each.mark(by_key.rows, lying) for each in self.texts):
            return None
        order, offsets = frozen(by_key.order), frozen(by_key.offsets)
        asked = (self.of_floats, self.of_ints, order, offsets, self.all_bits)
        plain = mark_rows(floats, ints, *asked, lying, masks)
        return masks if plain else None


def stacked(
    rows: pa.RecordBatch, names: Sequence[str], kind: type[np.generic]
) -> npt.NDArray[Any] | None:
    """Return the memory of columns, one a row of the array; None if one has nulls."""
    if not names:
        return NO_FLOATS if kind is np.float64 else NO_INTS
    columns = [rows.column(name) for name in names]
    if any(column.null_count for column in columns):
        return None
    if not rows.num_rows:
        return frozen(np.empty((len(names), rows.num_rows), kind))
    memory = [
        np.frombuffer(column.buffers()[1], kind, len(column), 8 * column.offset)
        for column in columns
    ]
    return frozen(memory[0].reshape(1, -1) if len(memory) == 1 else np.stack(memory))
