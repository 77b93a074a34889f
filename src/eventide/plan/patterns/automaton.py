"""The automaton of a row pattern: its program with every SPLIT resolved in advance.

A node is a place between two rows. Its steps are the ways to go on, the preferred one first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from eventide.plan.patterns.program import (
    Assert,
    Done,
    Guard,
    Jump,
    MatchRow,
    Program,
    RowTaken,
    Split,
    Turn,
    compile_pattern,
    too_large,
)
from eventide.plan.patterns.tree import Pattern, variables_of
from eventide.visible import visible

MOST_VARIABLES = 63
"""The variables that a row may be are the bits of one machine word."""
MOST_STEPS = 50_000
"""A pattern with more steps is refused: (A?){1000} can go on from each place to each other."""

DONE = -1


@dataclass(frozen=True, slots=True)
class Transition:
    """A way on from a node: take a row as `variable` and go to `target`, or be DONE.

    `at_start` and `at_end` require the place to be the partition's start or end. `absent` are
    variables that no row skipped before this step may be. Those in `later` are checked when the
    match is complete, and see all rows of the variables in `late`.
    """

    variable: int
    target: int
    at_start: bool = False
    at_end: bool = False
    absent: frozenset[int] = frozenset()
    later: frozenset[int] = frozenset()
    late: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Node:
    """A place in the pattern right behind a row of `variable`; the first node is the start."""

    variable: int
    excluded: bool
    steps: tuple[Transition, ...]


@dataclass(frozen=True, slots=True)
class PatternAutomaton:
    """The nodes of a pattern; variables are numbered in the order in which they first occur."""

    variables: tuple[str, ...]
    nodes: tuple[Node, ...]

    @property
    def shortest(self) -> int:
        """The number of rows of the shortest match."""
        rows, reached, seen = 0, {0}, {0}
        while not any(step.target == DONE for each in reached for step in self.nodes[each].steps):
            steps = [step for each in reached for step in self.nodes[each].steps]
            reached = {step.target for step in steps} - seen
            if not reached:
                break  # nothing matches
            seen |= reached
            rows += 1
        return rows

    def __str__(self) -> str:
        lines = []
        for number, node in enumerate(self.nodes):
            steps = " | ".join(self._step(step) for step in node.steps)
            lines.append(f"{number} {steps or 'nothing'}")
        return "\n".join(map(visible, lines))

    def _step(self, step: Transition) -> str:
        anchors = ("^ " if step.at_start else "") + ("$ " if step.at_end else "")
        absent = "".join(f"not {self.variables[each]} " for each in sorted(step.absent))
        absent += "".join(f"later not {self.variables[each]} " for each in sorted(step.later))
        if step.variable == DONE:
            return f"{anchors}{absent}done"
        return f"{anchors}{absent}{self.variables[step.variable]} -> {step.target}"


def automaton_of(pattern: Pattern, *, all_matches: bool = False) -> PatternAutomaton:
    """Return the automaton of a pattern, for the preferred match of a row or for all matches.

    >>> from eventide.plan.patterns.tree import Concat, Repeat, Variable
    >>> print(automaton_of(Concat((Variable("A"), Repeat(Variable("B"), 1, None)))))
    0 A -> 1
    1 B -> 2
    2 B -> 2 | done
    """
    program = compile_pattern(pattern)
    variables = variables_of(pattern)
    numbers = {name: number for number, name in enumerate(variables)}
    node_of: dict[int, int] = {}
    matches = [
        (place, each)
        for place, each in enumerate(program.instructions)
        if isinstance(each, MatchRow)
    ]
    for number, (place, _) in enumerate(matches):
        node_of[place] = number + 1

    count = 0
    # Where a NOT waits for later variables, a complete match may still be refused.
    waits = any(isinstance(each, Guard) and each.late for each in program.instructions)

    def steps_from(place: int) -> tuple[Transition, ...]:
        nonlocal count
        steps = _steps(program, place, node_of, numbers)
        count += len(steps)
        if count > MOST_STEPS:
            why = f"has more than {MOST_STEPS:,} ways from one row to the next"
            raise too_large(why)
        # Steps behind a DONE without conditions are never preferred.
        free = [number for number, step in enumerate(steps) if step == Transition(DONE, DONE)]
        return steps[: free[0] + 1] if free and not (all_matches or waits) else steps

    nodes = [Node(DONE, False, steps_from(0))]
    for place, instruction in matches:
        steps = steps_from(place + 1)
        nodes.append(Node(numbers[instruction.variable], instruction.excluded, steps))
    return PatternAutomaton(variables, _merged(nodes))


def _merged(nodes: list[Node]) -> tuple[Node, ...]:
    """Merge nodes that lie behind the same variable and have the same steps.

    Unfolding quantifiers makes copies that differ only in their place: B+ is B B*.
    """
    while True:
        numbers: dict[Node, int] = {}
        # The start stays separate: no row leads to it.
        place = [0] + [numbers.setdefault(node, len(numbers) + 1) for node in nodes[1:]]
        if len(numbers) + 1 == len(nodes):
            return tuple(nodes)
        kept = [nodes[0], *numbers]
        nodes = [replace(node, steps=_unrepeated(node.steps, place)) for node in kept]


def _unrepeated(steps: tuple[Transition, ...], place: list[int]) -> tuple[Transition, ...]:
    """Return steps with their new targets; drop repeated steps, which are never preferred."""
    moved = (
        replace(step, target=place[step.target]) if step.target != DONE else step for step in steps
    )
    return tuple(dict.fromkeys(moved))


@dataclass(frozen=True, slots=True)
class _Path:
    """The place of a program between two rows, and what it has passed since the last row.

    `turns` are the turns that began and have taken no row yet.
    """

    place: int
    at_start: bool = False
    at_end: bool = False
    absent: frozenset[int] = frozenset()
    later: frozenset[int] = frozenset()
    late: frozenset[int] = frozenset()
    turns: frozenset[int] = frozenset()


def _guarded(path: _Path, variable: int, late: frozenset[int]) -> _Path:
    """Return the path behind a NOT."""
    path = replace(path, place=path.place + 1)
    if late:
        return replace(path, later=path.later | {variable}, late=path.late | late)
    return replace(path, absent=path.absent | {variable})


def _steps(
    program: Program, start: int, node_of: dict[int, int], numbers: dict[str, int]
) -> tuple[Transition, ...]:
    """Return the ways on from an instruction, the preferred one first."""
    steps: dict[Transition, None] = {}
    # An instruction passed before leads to the same steps, and those were preferred.
    seen: set[_Path] = set()
    waiting = [_Path(start)]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        here = path.place
        asked = (path.at_start, path.at_end, path.absent, path.later, path.late)
        match program.instructions[here]:
            case MatchRow(variable=variable):
                # No row follows the end of a partition.
                if not path.at_end:
                    steps.setdefault(Transition(numbers[variable], node_of[here], *asked))
            case Done():
                steps.setdefault(Transition(DONE, DONE, *asked))
            case Split(preferred=preferred, other=other):
                waiting += [replace(path, place=other), replace(path, place=preferred)]
            case Jump(to=to):
                waiting.append(replace(path, place=to))
            case Assert(anchor="^"):
                waiting.append(replace(path, place=here + 1, at_start=True))
            case Assert():
                waiting.append(replace(path, place=here + 1, at_end=True))
            case Guard(variable=variable, late=late):
                names = frozenset(numbers[each] for each in late)
                waiting.append(_guarded(path, numbers[variable], names))
            case Turn(number=number):
                waiting.append(replace(path, place=here + 1, turns=path.turns | {number}))
            case RowTaken(number=number):
                if number not in path.turns:
                    waiting.append(replace(path, place=here + 1))
    return tuple(steps)
