"""Templates whose conditions ask for some of many tests: a null stands for a test left out.

`(a = $1 OR $1 IS NULL) AND (b = $2 OR $2 IS NULL) AND …` has as many shapes as nulls have patterns.
They are made at once, from the tests of each part with its constants null and not null.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from eventide.kernels.compiled import Bools, Int64s
from eventide.kernels.sharing.conditions.programs import EQUAL, REJECT, TRUE
from eventide.operators.sharing.conditions.formulas import NEVER, Branch, Formula, Test, order_of
from eventide.operators.sharing.conditions.needs import width
from eventide.operators.sharing.conditions.shapes import is_selective
from eventide.plan.expressions import Column, Expression, Literal, conjuncts, substituted, walk

_MOST_PATTERNS = 64
"""With fewer patterns of nulls, a formula is made for each."""
_LOOKED_AT = 1000


class Variant(NamedTuple):
    """What a part of a condition asks of the rows where the same constants are null."""

    rows: Int64s
    formula: Formula


class AskedTest(NamedTuple):
    """A test, and the rows of a template that ask for it."""

    test: Test
    rows: Int64s

    @property
    def code(self) -> tuple[int, ...]:
        """Its instruction, without the slot of its constants."""
        test = self.test
        return test.operation, test.mask, test.column, 0, width(test), REJECT


def is_ragged(nulls: Sequence[Bools]) -> bool:
    """Whether nulls have many patterns."""
    if not nulls:
        return False
    seen = np.packbits(np.stack([each[:_LOOKED_AT] for each in nulls], axis=1), axis=1)
    return len(np.unique(seen, axis=0)) > _MOST_PATTERNS


def variants(
    shape: Expression,
    places: dict[str, Column],
    nulls: dict[str, Bools],
    formula: Callable[[Expression], Formula],
) -> list[Variant]:
    """Return what each part of a template asks of which rows."""
    found = []
    for part in conjuncts(shape):
        read = {each.name for each in walk(part) if isinstance(each, Column)}
        names = sorted(read & places.keys())
        for rows, null in _patterns([nulls[name] for name in names], _count(nulls)):
            meaning: dict[str, Expression] = {
                name: Literal(None, places[name].type)
                for name, missing in zip(names, null, strict=True)
                if missing
            }
            found.append(Variant(rows, formula(substituted(part, meaning))))
    return found


def _count(nulls: dict[str, Bools]) -> int:
    return len(next(iter(nulls.values())))


def _patterns(nulls: list[Bools], count: int) -> list[tuple[Int64s, tuple[bool, ...]]]:
    """Return the rows of each pattern of nulls."""
    found: list[tuple[Int64s, tuple[bool, ...]]] = [(np.arange(count), ())]
    for null in nulls:
        found = [
            (rows[null[rows] == value], (*pattern, value))
            for rows, pattern in found
            for value in (False, True)
        ]
    return [(rows, pattern) for rows, pattern in found if len(rows)]


def asked_tests(found: list[Variant]) -> list[AskedTest] | None:
    """Return all tests in the order of a program, None if a part is no conjunction of tests."""
    asked = []
    for rows, formula in found:
        parts = formula.parts if isinstance(formula, Branch) else (formula,)
        if isinstance(formula, Branch) and not formula.every and formula != NEVER:
            return None
        for part in parts:
            if not isinstance(part, Test):
                return None
            asked.append(AskedTest(part, rows))
    return sorted(asked, key=lambda each: order_of(each.test))


def membership(asked: list[AskedTest], count: int) -> npt.NDArray[np.bool_]:
    """Return which rows ask for which tests."""
    found = np.zeros((count, len(asked)), np.bool_)
    for place, each in enumerate(asked):
        found[each.rows, place] = True
    return found


def has_equality(asked: list[AskedTest], count: int) -> Bools:
    """Return which rows ask for an equality that leaves few of them."""
    found = np.zeros(count, np.bool_)
    for test, rows in asked:
        if test.operation == EQUAL and test.mask == TRUE and is_selective(test):
            found[rows] = True
    return found


def distinct_rows(rows: npt.NDArray[np.bool_]) -> tuple[Int64s, Int64s]:
    """Return the first of each set of equal rows, and the number of the set of each row."""
    octets = np.packbits(rows, axis=1)
    spare = -octets.shape[1] % 8
    words = np.pad(octets, ((0, 0), (0, spare))).view(np.uint64)
    order = np.lexsort(words.T)
    fresh = np.ones(len(rows), np.bool_)
    fresh[1:] = (words[order[1:]] != words[order[:-1]]).any(axis=1)
    numbers = np.empty(len(rows), np.int64)
    numbers[order] = np.cumsum(fresh) - 1
    return order[fresh], numbers
