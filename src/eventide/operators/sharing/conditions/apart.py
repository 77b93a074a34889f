"""Conditions that are evaluated alone: those that fail for some events, and only where they do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eventide.arrays import to_numpy
from eventide.kernels.compiled import Int64s
from eventide.operators.expressions.evaluate import evaluate_predicate
from eventide.operators.sharing.conditions.formulas import literal
from eventide.plan.expressions import Column, Expression, substituted, walk


class ConditionOrigin(NamedTuple):
    """Where a condition comes from: a row of constants for the places of a template."""

    shape: Expression
    constants: pa.RecordBatch | None = None
    row: int = 0

    @property
    def condition(self) -> Expression:
        """The condition with its constants."""
        if self.constants is None:
            return self.shape
        return with_constants(self.shape, self.constants, self.row)


def with_constants(shape: Expression, constants: pa.RecordBatch, row: int) -> Expression:
    """Return a template with the constants of a row at their places."""
    names = set(constants.schema.names)
    places = {
        part.name: part for part in walk(shape) if isinstance(part, Column) and part.name in names
    }
    meaning = {name: literal(constants.column(name), place, row) for name, place in places.items()}
    return substituted(shape, meaning)


@dataclass
class ApartConditions:
    """Conditions by number: those that are never in the index, and those that columns may fail."""

    always: dict[int, ConditionOrigin] = field(default_factory=dict)
    fragile: dict[int, tuple[frozenset[int], ConditionOrigin]] = field(default_factory=dict)

    def drop(self, numbers: Iterable[int]) -> Iterator[frozenset[int]]:
        """Forget conditions; yield the columns that may fail of each."""
        for number in numbers:
            self.always.pop(number, None)
            columns, _ = self.fragile.pop(number, (frozenset(), None))
            yield columns

    def hit_by(self, failed: Mapping[int, Exception]) -> dict[int, ConditionOrigin]:
        """Return the conditions that use a column that failed."""
        if not failed:
            return {}
        return {
            number: origin
            for number, (columns, origin) in self.fragile.items()
            if not columns.isdisjoint(failed)
        }


def evaluated(
    origins: Mapping[int, ConditionOrigin], rows: pa.RecordBatch, failed: dict[int, Exception]
) -> tuple[Int64s, Int64s]:
    """Return events and numbers of conditions that are evaluated alone; note those that fail."""
    events, numbers = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for number, origin in origins.items():
        try:
            passes = to_numpy(evaluate_predicate(origin.condition, rows))
        except Exception as error:  # functions of users raise anything
            failed[number] = error
            continue
        events.append(np.flatnonzero(passes))
        numbers.append(np.full(len(events[-1]), number))
    return np.concatenate(events), np.concatenate(numbers)
