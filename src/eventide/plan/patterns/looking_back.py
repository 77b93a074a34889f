"""How many rows before a match its conditions and measures read.

`PREV(v)` in the condition of the second variable reads a row of the match itself: the row before
the match is not needed, and a live query may forget it.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from eventide.plan.expressions import At, Expression, MatchAggregate, walk
from eventide.plan.patterns.automaton import DONE, PatternAutomaton
from eventide.plan.patterns.nodes import MatchRecognize


def looks_back(node: MatchRecognize, automaton: PatternAutomaton) -> int:
    """Return how many rows before its first row a match may read.

    >>> from eventide.plan.patterns.automaton import automaton_of
    >>> from eventide.plan.expressions import Call, Column, Named
    >>> from eventide.plan.nodes import Scan
    >>> from eventide.plan.patterns.tree import Concat, Variable
    >>> from eventide.schema import BOOL, INT64
    >>> pattern, v = Concat((Variable("A"), Variable("B"))), Column("v", INT64)
    >>> rises = Call(">", (At(v), At(v, shift=-1)), BOOL)
    >>> for name in "AB":
    ...     defines = tuple(Named(each, rises if each == name else At(v)) for each in "AB")
    ...     node = MatchRecognize(Scan("s"), (), (), pattern, defines, ())
    ...     print(name, looks_back(node, automaton_of(pattern)))
    A 1
    B 0
    """
    first = first_places(automaton)
    places: dict[str | None, float] = {None: 0}
    places |= dict(zip(automaton.variables, first, strict=True))
    places |= {name: min(places[each] for each in members) for name, members in node.subsets}
    items = [(item.expression, places[item.name]) for item in node.defines]
    items += [(item.expression, 0) for item in node.measures]
    furthest = 0.0
    for expression, tested in items:
        for part, inside in _looks(expression):
            plain = part.variable is None and part.edge == "last" and not part.offset
            place = tested if plain and not inside else places[part.variable]
            furthest = max(furthest, -part.shift - place)
    return int(furthest)


def first_places(automaton: PatternAutomaton) -> list[float]:
    """Return, for each variable, how many rows of a match come at least before its first row.

    For a variable of a NOT, count up to the place where a skipped row may stand.
    """
    depth: list[float] = [inf] * len(automaton.nodes)
    depth[0] = 0
    waiting = [0]
    for number in waiting:
        for step in automaton.nodes[number].steps:
            if step.target != DONE and depth[step.target] == inf:
                depth[step.target] = depth[number] + 1
                waiting.append(step.target)
    first: list[float] = [inf] * len(automaton.variables)
    for node, before in zip(automaton.nodes, depth, strict=True):
        for step in node.steps:
            taken = {step.variable} - {DONE}
            for variable in taken | step.absent | step.later:
                first[variable] = min(first[variable], before)
    return first


def _looks(expression: Expression) -> Iterator[tuple[At, bool]]:
    """Yield the expressions that look back, and whether they look from rows of an aggregate."""
    aggregates = [part for part in walk(expression) if isinstance(part, MatchAggregate)]
    inside = {id(part) for each in aggregates for part in walk(each)}
    for part in walk(expression):
        if isinstance(part, At) and part.shift < 0:
            yield part, id(part) in inside
