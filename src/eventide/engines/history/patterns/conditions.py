"""Conditions on each row of a pattern's skeleton: clauses over single attributes.

Only comparisons of an attribute with a constant count, under AND and OR; the matcher checks the
rest of a variable's condition. A clause is an OR of such atoms; all clauses of a symbol have to
hold. A match has a row for each symbol on which its clauses hold; they are necessary, not
sufficient.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce

from eventide.engines.history.pruning import bound_of
from eventide.plan.expressions import (
    At,
    Call,
    Column,
    Expression,
    Literal,
    Named,
    conjuncts,
    substituted,
)
from eventide.plan.nodes import Filter, Project
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.patterns.skeleton import Skeleton, skeleton_of
from eventide.plan.tree import Plan
from eventide.schema import BOOL
from eventide.store.index.ranges import ValueRange
from eventide.store.reading.hits import Atom

Clause = tuple[Atom, ...]
"""One of these holds."""
Clauses = tuple[Clause, ...]
"""All of these hold."""

MOST_ATOMS = 64
"""Longer lists of values are left to the matcher."""
MOST_CLAUSES = 16
COMPARISONS = ("=", "<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class Condition:
    """A clause that a symbol has to meet, which can be looked up in an index."""

    symbol: int
    clause: Clause
    text: str

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes it asks about."""
        return tuple(dict.fromkeys(attribute for attribute, _ in self.clause))


@dataclass(frozen=True, slots=True)
class Shape:
    """The part of a pattern that indexes can check: its skeleton, and conditions on the symbols."""

    skeleton: Skeleton
    conditions: tuple[Condition, ...]
    filtered: bool
    """Whether a condition below the pattern leaves out rows of the stream."""

    def of_symbol(self, symbol: int) -> tuple[Condition, ...]:
        """Return the conditions on one symbol."""
        return tuple(each for each in self.conditions if each.symbol == symbol)


def shape_of(node: MatchRecognize) -> Shape:
    """Return what can be looked up in indexes for a pattern over plain rows of a scan."""
    skeleton = skeleton_of(node)
    columns = scan_columns(node.source)
    constants = constants_of(node)
    clauses = {item.name: clauses_of(item, constants, columns) for item in node.defines}
    filters = filter_clauses(node.source)
    conditions = []
    for number, symbol in enumerate(skeleton.symbols):
        options = [clauses.get(name, ()) for name in sorted(symbol.variables)]
        found = narrowed(tuple(dict.fromkeys((*reduce(either, options), *filters))))
        conditions += [Condition(number, each, text_of(each)) for each in found[:MOST_CLAUSES]]
    return Shape(skeleton, tuple(conditions), has_filter(node.source))


def scan_columns(plan: Plan) -> Mapping[str, Expression]:
    """Return the expression of each column of a plan over the scan's columns."""
    match plan:
        case Project(source=source, items=items):
            below = scan_columns(source)
            return {item.name: substituted(item.expression, below) for item in items}
        case Filter(source=source):
            return scan_columns(source)
    return {name: Column(name, kind) for name, kind in plan.row.items()}


def has_filter(plan: Plan) -> bool:
    """Whether a filter stands below a pattern."""
    match plan:
        case Filter():
            return True
        case Project(source=source):
            return has_filter(source)
    return False


def filter_clauses(plan: Plan) -> Clauses:
    """Return the clauses that every row of a plan over a scan meets."""
    match plan:
        case Filter(source=source, condition=condition):
            own = normal(substituted(condition, scan_columns(source)))
            return (*own, *filter_clauses(source))
        case Project(source=source):
            return filter_clauses(source)
    return ()


def constants_of(node: MatchRecognize) -> Mapping[tuple[str, str], Literal]:
    """Return the columns of variables that have a single value: `A.beat` if `A AS beat = 2232`."""
    found: dict[tuple[str, str], Literal] = {}
    for item in node.defines:
        for part in conjuncts(item.expression):
            match part:
                case (
                    Call(function="=", arguments=(At() as at, Literal() as value))
                    | Call(function="=", arguments=(Literal() as value, At() as at))
                ):
                    column = own_column(at, item.name)
                    if column is not None and value.type == column.type:
                        found[item.name, column.name] = value
    return found


def own_column(at: At, variable: str) -> Column | None:
    """Return the column of the tested row that an expression is, if it is one."""
    tested = at.variable in (None, variable) and at.edge == "last" and not at.offset
    if tested and not at.shift and isinstance(at.argument, Column):
        return at.argument
    return None


def clauses_of(
    item: Named, constants: Mapping[tuple[str, str], Literal], columns: Mapping[str, Expression]
) -> Clauses:
    """Return the clauses on single attributes that the condition of a variable implies."""
    plain = (with_constants(part, item.name, constants) for part in conjuncts(item.expression))
    return normal(reduce(both, (tested_row(part, item.name, columns) for part in plain)))


def with_constants(
    expression: Expression, variable: str, constants: Mapping[tuple[str, str], Literal]
) -> Expression:
    """Replace columns of other variables that have one value by constants, in comparisons.

    If there is no such row yet the comparison is null, and the row fails anyway.
    """
    match expression:
        case Call(function="and" | "or", arguments=arguments):
            changed = tuple(with_constants(each, variable, constants) for each in arguments)
            return replace(expression, arguments=changed)
        case Call(function=name, arguments=(left, right)) if name in COMPARISONS:
            sides = tuple(constant(side, variable, constants) for side in (left, right))
            return replace(expression, arguments=sides)
    return expression


def constant(
    side: Expression, variable: str, constants: Mapping[tuple[str, str], Literal]
) -> Expression:
    """Return a side of a comparison, or the constant that it is."""
    match side:
        case At(argument=Column(name=name), variable=str(other), shift=0) if other != variable:
            return constants.get((other, name), side)
    return side


def tested_row(
    expression: Expression, variable: str, columns: Mapping[str, Expression]
) -> Expression:
    """Return a condition in which columns of the tested row are columns of the scan."""
    match expression:
        case At():
            column = own_column(expression, variable)
            return expression if column is None else columns[column.name]
        case Call(arguments=arguments):
            changed = tuple(tested_row(each, variable, columns) for each in arguments)
            return replace(expression, arguments=changed)
    return expression


def normal(condition: Expression) -> Clauses:
    """Return a condition as clauses; anything but a comparison with a constant always holds."""
    match condition:
        case Call(function="and", arguments=(left, right)):
            return (*normal(left), *normal(right))
        case Call(function="or", arguments=(left, right)):
            return either(normal(left), normal(right))
        case Call(function="in", arguments=(value, *options)):
            equal = [bound_of(Call("=", (value, option), BOOL)) for option in options]
            found = tuple(each for each in equal if each is not None)
            return (merged(found),) if len(found) == len(equal) <= MOST_ATOMS else ()
    bound = bound_of(condition)
    return () if bound is None else ((bound,),)


def narrowed(clauses: Clauses) -> Clauses:
    """Return clauses with both ends of a range merged: `x > 1` and `x < 2`."""
    single: dict[str, ValueRange] = {}
    for clause in clauses:
        if len(clause) == 1:
            ((attribute, wanted),) = clause
            held = single.get(attribute)
            single[attribute] = wanted if held is None else held.intersect(wanted)
    several = tuple(clause for clause in clauses if len(clause) > 1)
    return (*(((attribute, wanted),) for attribute, wanted in single.items()), *several)


def either(one: Clauses, other: Clauses) -> Clauses:
    """Return clauses that hold where all of one or all of the other hold."""
    joined = (merged((*left, *right)) for left in one for right in other)
    return tuple(each for each in joined if len(each) <= MOST_ATOMS)[:MOST_CLAUSES]


def merged(atoms: Clause) -> Clause:
    """Return atoms without duplicates."""
    return tuple(dict.fromkeys(atoms))


def both(left: Expression, right: Expression) -> Expression:
    """Return the conjunction of two conditions."""
    return Call("and", (left, right), left.type)


def text_of(clause: Clause) -> str:
    """Return a clause as a person would write it.

    >>> text_of((("speed", ValueRange(5, None, includes_low=False)), ("lane", ValueRange(2, 2))))
    'speed > 5 or lane = 2'
    """
    return " or ".join(atom_text(attribute, wanted) for attribute, wanted in clause)


def atom_text(attribute: str, wanted: ValueRange) -> str:
    """Return one comparison as a person would write it."""
    if wanted.is_equality:
        return f"{attribute} = {wanted.low}"
    sides = []
    if wanted.low is not None:
        sides.append(f"{attribute} {'>=' if wanted.includes_low else '>'} {wanted.low}")
    if wanted.high is not None:
        sides.append(f"{attribute} {'<=' if wanted.includes_high else '<'} {wanted.high}")
    return " and ".join(sides)
