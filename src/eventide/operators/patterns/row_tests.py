"""Conditions that are nothing but comparisons of plain numbers, for one kernel to compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide.kernels.compiled import frozen
from eventide.kernels.patterns.marks import (
    EQUAL,
    FACTS,
    GREATER,
    LEFT_SHIFT,
    LESS,
    RIGHT_SHIFT,
    Comparisons,
    mark_rows,
)
from eventide.operators.patterns.masks import LocalCondition, Masks, Operand, RowsByKey

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


@dataclass(frozen=True)
class RowTests:
    """The conditions of all variables, if every one is made of comparisons of plain numbers."""

    float_names: tuple[str, ...]
    int_names: tuple[str, ...]
    of_floats: Comparisons
    of_ints: Comparisons
    all_bits: np.uint64

    @classmethod
    def of(cls, conditions: Sequence[LocalCondition | None], schema: pa.Schema) -> RowTests | None:
        """Collect the comparisons of conditions; None if there is anything else, or nothing."""
        floats, ints = Gathered(), Gathered()
        for number, condition in enumerate(conditions):
            if condition is None:
                continue
            if not condition.comparisons:
                return None
            for each in condition.comparisons:
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
        if not (floats.facts or ints.facts):
            return None
        return cls(
            tuple(floats.names),
            tuple(ints.names),
            floats.comparisons(np.float64),
            ints.comparisons(np.int64),
            np.uint64((1 << len(conditions)) - 1),
        )

    def masks_of(self, by_key: RowsByKey) -> Masks | None:
        """Return, for each row in key order, which hold; None if numbers are null or NaN."""
        floats = stacked(by_key.rows, self.float_names, np.float64)
        ints = stacked(by_key.rows, self.int_names, np.int64)
        if floats is None or ints is None:
            return None
        lying, masks = np.empty(by_key.rows.num_rows, np.uint64), np.empty(by_key.count, np.uint64)
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
