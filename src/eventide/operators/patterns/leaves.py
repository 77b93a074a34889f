"""The rows of a match that conditions read, and which of them depend on the tested row alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from eventide.plan.expressions import (
    At,
    Classifier,
    Expression,
    Literal,
    MatchAggregate,
    MatchNumber,
    conjuncts,
    rebuild,
    walk,
)
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.schema import STRING

CURRENT = "current"
"""The edge of a target that is the tested row, or at a fixed distance from it."""


@dataclass(frozen=True, slots=True)
class Target:
    """A row of the match and a distance from it in rows; variables are a set of bits."""

    variables: int
    edge: str
    offset: int
    shift: int


@dataclass(frozen=True, slots=True)
class VariableSets:
    """The variables of a pattern by number, and the sets of bits that names stand for."""

    names: tuple[str, ...]
    bits: dict[str | None, int]

    @classmethod
    def of(cls, node: MatchRecognize) -> VariableSets:
        """Return the sets of a node; no name stands for all variables."""
        names = node.variables
        bits: dict[str | None, int] = {None: (1 << len(names)) - 1}
        for number, name in enumerate(names):
            bits[name] = 1 << number
        for name, members in node.subsets:
            bits[name] = sum(1 << names.index(each) for each in members)
        return cls(names, bits)

    def members(self, variables: int) -> list[int]:
        """Return the numbers of the variables in a set."""
        return [number for number in range(len(self.names)) if variables >> number & 1]

    def normalised(self, condition: Expression, variable: int) -> Expression:
        """Return the condition with every form of "the tested row" spelled alike."""
        match condition:
            case At(variable=name, edge="last", offset=0) if self.bits[name] >> variable & 1:
                argument = condition.argument
                if condition.shift == 0:
                    argument = named(argument, self.names[variable])
                return replace(condition, argument=argument, variable=None)
        return rebuild(condition, lambda part: self.normalised(part, variable))

    def target(self, at: At) -> Target:
        """Return the row that a normalised leaf reads."""
        if at.variable is None and at.edge == "last" and at.offset == 0:
            return Target(self.bits[None], CURRENT, 0, at.shift)
        return Target(self.bits[at.variable], at.edge, at.offset, at.shift)

    def targets(self, node: MatchRecognize) -> Iterator[tuple[Target, bool]]:
        """Yield the rows that conditions read, and whether their variables are read too."""
        for variable, define in enumerate(node.defines):
            for part in conjuncts(define.expression):
                condition = self.normalised(part, variable)
                if not needs_match(condition):
                    continue
                for leaf in map(as_leaf, walk(condition)):
                    if leaf is None:
                        continue
                    normal = self.normalised(leaf, variable)
                    assert isinstance(normal, At)
                    target = self.target(normal)
                    if target.edge != CURRENT:
                        yield target, reads_name(normal.argument)


def needs_match(condition: Expression) -> bool:
    """Whether a normalised condition reads more than rows at fixed distances from its row."""
    for part in walk(condition):
        match part:
            case MatchAggregate() | MatchNumber():
                return True
            case At(variable=None, edge="last", offset=0, shift=shift, argument=argument):
                if shift != 0 and reads_name(argument):
                    return True
            case At():
                return True
    return False


def reads_name(expression: Expression) -> bool:
    """Whether an expression reads the variable of its row."""
    return any(isinstance(part, Classifier) for part in walk(expression))


def named(expression: Expression, name: str | None) -> Expression:
    """Return an expression with the variable of its row filled in."""
    if isinstance(expression, Classifier):
        return Literal(name, STRING, expression.span)
    return rebuild(expression, lambda part: named(part, name))


def as_leaf(expression: Expression) -> At | None:
    """Return the leaf computed at one row of a match; the aggregates FIRST and LAST pick one."""
    match expression:
        case At():
            return expression
        case MatchAggregate(function="first" | "last" as edge, argument=argument) if argument:
            return At(
                argument,
                expression.variable,
                "first" if edge == "first" else "last",
                span=expression.span,
            )
    return None
