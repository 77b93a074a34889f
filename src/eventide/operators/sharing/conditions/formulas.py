"""Conditions as formulas: AND and OR over tests, with NOT pushed into the tests.

A formula is made for the outcomes that are *wanted* of a condition: true; or, below a NOT, false;
or also null. An OR that has to be false is an AND of conditions that have to be false. So two
values are enough above the tests, and in three-valued logic nothing is lost.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import pyarrow as pa

from eventide.kernels.sharing.conditions.programs import (
    AT_LEAST,
    AT_MOST,
    BETWEEN,
    EQUAL,
    FALSE,
    LESS,
    MORE,
    NULL,
    ONE_OF,
    TEXT,
    TRUE,
    VALID,
)
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.sharing.conditions.columns import Columns
from eventide.operators.sharing.conditions.words import has_order
from eventide.plan.expressions import Call, Column, Expression, Literal, children
from eventide.plan.failing import can_fail
from eventide.schema import BOOL, STRING

Names: TypeAlias = frozenset[str]


class Test(NamedTuple):
    """A test of a column; it passes if its outcome is in the mask. TEXT has a function."""

    operation: int
    column: int
    mask: int
    function: str
    constants: tuple[Expression, ...]


class Branch(NamedTuple):
    """All of the parts, or any of them."""

    every: bool
    parts: tuple[Formula, ...]


Formula: TypeAlias = Test | Branch

ALWAYS, NEVER = Branch(True, ()), Branch(False, ())

_COMPARISONS = {"=": EQUAL, "<>": EQUAL, "<": LESS, "<=": AT_MOST, ">": MORE, ">=": AT_LEAST}
_MIRRORED = {EQUAL: EQUAL, LESS: MORE, AT_MOST: AT_LEAST, MORE: LESS, AT_LEAST: AT_MOST}
_OPPOSITE = {LESS: AT_LEAST, AT_MOST: MORE, MORE: AT_MOST, AT_LEAST: LESS}
_TEXT_FUNCTIONS = ("like", "ilike", "starts_with", "ends_with", "contains", "regexp_matches")
_ANY = TRUE | FALSE
_ONE_ROW = pa.RecordBatch.from_arrays([pa.array([0])], ["row"])


class EmbeddedPlaceError(Exception):
    """A place for a constant is inside of an expression that has to be computed for each row."""


class Formulas:
    """Makes formulas of conditions over events.

    `places` are columns that stand for constants.
    """

    def __init__(self, columns: Columns, places: Names = frozenset()) -> None:
        self._columns = columns
        self._places = places

    def formula(self, condition: Expression, wanted: int = TRUE) -> Formula:
        """Return when a condition has a wanted outcome."""
        if isinstance(condition, Call) and condition.user is None:
            match condition.function, condition.arguments:
                case "not", (argument,):
                    return self.formula(argument, _negated(wanted))
                case ("and" | "or") as name, arguments:
                    # It is false that both are true if one is false.
                    every = (name == "and") == bool(wanted & TRUE)
                    return branch(every, [self.formula(each, wanted) for each in arguments])
                case "is null", (argument,):
                    return self._null_test(argument, wanted)
                case "in", (argument, *others):
                    return self._membership(argument, others, wanted)
                case ("is distinct from" | "is not distinct from") as name, (left, right):
                    return self._distinction(condition, left, right, wanted, name)
                case "coalesce", (argument, Literal(value=bool(otherwise))):
                    outcomes = TRUE | (NULL if otherwise else 0)
                    if not wanted & TRUE:
                        outcomes = (TRUE | FALSE | NULL) ^ outcomes
                    return self.formula(argument, outcomes)
                case name, (left, right) if name in _COMPARISONS:
                    return self._comparison(condition, name, left, right, wanted)
                case name, (text, *constants) if name in _TEXT_FUNCTIONS:
                    return self._text_test(condition, text, constants, wanted)
        return self._truth(condition, wanted)

    def _truth(self, condition: Expression, wanted: int) -> Formula:
        """The test of a condition that is computed as a whole."""
        if self._is_constant(condition):
            if not isinstance(condition, Literal):
                if self._has_place(condition):
                    raise EmbeddedPlaceError
                condition = folded(condition)
            return ALWAYS if wanted & _outcome(condition.value) else NEVER
        truth = Literal(bool(wanted & TRUE), BOOL)
        column = self._column(condition)
        return Test(EQUAL, column, TRUE | (wanted & NULL), "", (truth,))

    def _comparison(
        self, condition: Call, name: str, left: Expression, right: Expression, wanted: int
    ) -> Formula:
        operation = _COMPARISONS[name]
        if self._is_constant(left):
            left, right, operation = right, left, _MIRRORED[operation]
        if self._is_constant(left) or not self._is_constant(right):
            return self._truth(condition, wanted)
        if operation != EQUAL and not has_order(left.type):
            if left.type != STRING:
                return self._truth(condition, wanted)
            mirrored = {value: key for key, value in _COMPARISONS.items() if key != "<>"}
            return self._text_test(condition, left, [right], wanted, mirrored[operation])
        if name == "<>":
            wanted = _negated(wanted)
        constant = self._constant(right)
        if _is_null(constant):
            self._mind(left)
            return ALWAYS if wanted & NULL else NEVER
        if operation != EQUAL and not wanted & TRUE:
            operation, wanted = _OPPOSITE[operation], _negated(wanted)
        return Test(operation, self._column(left), wanted, "", (constant,))

    def _distinction(
        self, condition: Call, left: Expression, right: Expression, wanted: int, name: str
    ) -> Formula:
        if self._is_constant(left):
            left, right = right, left
        if self._is_constant(left) or not self._is_constant(right):
            return self._truth(condition, wanted)
        same = bool(wanted & TRUE) == (name == "is not distinct from")
        constant = self._constant(right)
        if _is_null(constant):
            return self._null_test(left, TRUE if same else FALSE)
        mask = TRUE if same else FALSE | NULL
        return Test(EQUAL, self._column(left), mask, "", (constant,))

    def _membership(self, argument: Expression, others: list[Expression], wanted: int) -> Formula:
        """The test of x IN (a, b), which is x = a OR x = b."""
        equals = [Call("=", (argument, each), BOOL) for each in others]
        if self._is_constant(argument):
            return branch(bool(not wanted & TRUE), [self.formula(each, wanted) for each in equals])
        known = [each for each in others if self._is_constant(each)]
        parts = [
            self.formula(each, wanted)
            for each, other in zip(equals, others, strict=True)
            if not self._is_constant(other)
        ]
        constants = [self._constant(each) for each in known]
        valid = tuple(each for each in constants if not _is_null(each))
        if len(valid) < len(constants):
            self._mind(argument)
            parts.append(ALWAYS if wanted & NULL else NEVER)
        if valid:
            operation = EQUAL if len(valid) == 1 else ONE_OF
            parts.append(Test(operation, self._column(argument), wanted, "", valid))
        return branch(bool(wanted & TRUE) is False, parts)

    def _null_test(self, argument: Expression, wanted: int) -> Formula:
        mask = NULL if wanted & TRUE else TRUE
        if self._is_constant(argument):
            constant = self._constant(argument)
            if isinstance(constant, Literal):
                return ALWAYS if bool(wanted & TRUE) == (constant.value is None) else NEVER
            # The constants of a place are not null: those that are have rows of their own.
            if isinstance(constant, Column):
                return NEVER if wanted & TRUE else ALWAYS
            raise EmbeddedPlaceError
        return Test(VALID, self._column(argument), mask, "", ())

    def _text_test(
        self,
        condition: Call,
        text: Expression,
        others: list[Expression],
        wanted: int,
        function: str = "",
    ) -> Formula:
        if self._is_constant(text) or not all(map(self._is_constant, others)):
            return self._truth(condition, wanted)
        constants = tuple(map(self._constant, others))
        if any(map(_is_null, constants)):
            self._mind(text)
            return ALWAYS if wanted & NULL else NEVER
        if self._has_place(text):
            raise EmbeddedPlaceError
        column = self._columns.text_number_of(text)
        return Test(TEXT, column, wanted, function or condition.function, constants)

    def _column(self, expression: Expression) -> int:
        if self._has_place(expression):
            raise EmbeddedPlaceError
        return self._columns.number_of(expression)

    def _mind(self, expression: Expression) -> None:
        """Have an expression computed if it can fail, although its value does not count."""
        if can_fail(expression):
            self._column(expression)

    def _constant(self, expression: Expression) -> Expression:
        """Return a constant: a literal, or an expression over places."""
        if isinstance(expression, Literal):
            return expression
        return expression if self._has_place(expression) else folded(expression)

    def _is_constant(self, expression: Expression) -> bool:
        if isinstance(expression, Column):
            return expression.name in self._places
        if isinstance(expression, Literal):
            return True
        return all(map(self._is_constant, children(expression)))

    def _has_place(self, expression: Expression) -> bool:
        if not self._places:
            return False
        if isinstance(expression, Column):
            return expression.name in self._places
        return any(map(self._has_place, children(expression)))


def folded(expression: Expression) -> Literal:
    """Return the value of an expression without columns."""
    return literal(evaluate(expression, _ONE_ROW), expression)


def literal(column: pa.Array, expression: Expression, row: int = 0) -> Literal:
    """Return a value of a column as a constant of the type of an expression."""
    if pa.types.is_temporal(column.type):
        column = column.view(pa.int64())
    return Literal(column[row].as_py(), expression.type)


def branch(every: bool, parts: list[Formula]) -> Formula:
    """Return all of the parts or any of them, as simple as it is easy."""
    kept: list[Formula] = []
    for part in parts:
        if isinstance(part, Branch) and (part.every == every or not part.parts):
            if part.every != every:
                return part
            kept.extend(part.parts)
        else:
            kept.append(part)
    kept = _joined(every, kept)
    if every:
        kept = _between(kept)
    return kept[0] if len(kept) == 1 else Branch(every, tuple(sorted(kept, key=order_of)))


def _joined(every: bool, parts: list[Formula]) -> list[Formula]:
    """Return `x = 1 OR x = 2` as `x IN (1, 2)`, and what has to be false in the same way."""
    mask = FALSE if every else TRUE
    by_column: dict[int, list[Test]] = {}
    for part in parts:
        if isinstance(part, Test) and part.operation in (EQUAL, ONE_OF) and part.mask == mask:
            by_column.setdefault(part.column, []).append(part)
    if all(len(tests) == 1 for tests in by_column.values()):
        return parts
    joined: list[Formula] = []
    for column, tests in by_column.items():
        constants = tuple(each for test in tests for each in test.constants)
        operation = EQUAL if len(constants) == 1 else ONE_OF
        joined.append(Test(operation, column, mask, "", constants))
    taken = {id(test) for tests in by_column.values() for test in tests}
    return joined + [part for part in parts if id(part) not in taken]


def _between(parts: list[Formula]) -> list[Formula]:
    """Return `x >= 1 AND x <= 2` as one test."""
    ends: dict[tuple[int, int], Test] = {}
    for part in parts:
        if isinstance(part, Test) and part.mask == TRUE and part.operation in (AT_LEAST, AT_MOST):
            ends.setdefault((part.column, part.operation), part)
    joined: list[Formula] = []
    taken = set()
    for (column, operation), low in ends.items():
        high = ends.get((column, AT_MOST))
        if operation == AT_LEAST and high is not None:
            joined.append(Test(BETWEEN, column, TRUE, "", low.constants + high.constants))
            taken |= {id(low), id(high)}
    return joined + [part for part in parts if id(part) not in taken] if joined else parts


def order_of(part: Formula) -> tuple[int, ...]:
    """Tests that few events pass come first, equalities foremost; equal formulas are alike."""
    if isinstance(part, Test):
        rank = _RANKS[part.operation]
        return 0, rank, part.mask != TRUE, part.column, part.mask, len(part.constants)
    return 1, len(part.parts)


_RANKS = {
    operation: rank
    for rank, operation in enumerate(
        (EQUAL, TEXT, ONE_OF, BETWEEN, LESS, AT_MOST, MORE, AT_LEAST, VALID)
    )
}


def _negated(wanted: int) -> int:
    """Return which outcomes of a condition are wanted if these are of its NOT."""
    return (FALSE if wanted & TRUE else 0) | (TRUE if wanted & FALSE else 0) | (wanted & NULL)


def _outcome(value: object) -> int:
    return NULL if value is None else TRUE if value else FALSE


def _is_null(constant: Expression) -> bool:
    return isinstance(constant, Literal) and constant.value is None
