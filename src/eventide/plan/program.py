"""A row pattern becomes a program a person can print, and that an automaton for the matchers.

    PATTERN (A (B | C)*)
      0 MATCH A
      1 SPLIT 2 7      greedy: once more before leaving
      2 SPLIT 3 5      B before C
      3 MATCH B
      4 JUMP  6
      5 MATCH C
      6 JUMP  1
      7 DONE

A program forks at every SPLIT. The automaton has done that beforehand: a node is a place between
two rows, its steps are the ways on from there, the preferred one first. What repeats may take no
row, as in `(A?)*`: then TURN and TAKEN stand around it, and a turn that took nothing goes no
further, so that loops end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import assert_never

from eventide.errors import BindError
from eventide.plan.patterns import (
    Absent,
    Alternate,
    Concat,
    Exclude,
    PartitionEnd,
    PartitionStart,
    Pattern,
    Permute,
    Repeat,
    Variable,
    can_be_empty,
    variables_of,
)

MOST_VARIABLES = 63
"""The variables a row may be are the bits of one machine word."""
MOST_INSTRUCTIONS = 10_000
"""A pattern that unfolds into more is refused: its tables would not stay near the processor."""
MOST_STEPS = 50_000
"""So is one whose places have more ways on together: (A?){1000} can go on from each to each."""


@dataclass(frozen=True, slots=True)
class Match:
    """Take one row as a variable."""

    variable: str
    excluded: bool = False


@dataclass(frozen=True, slots=True)
class Split:
    """Go on in two places, the first preferred."""

    preferred: int
    other: int


@dataclass(frozen=True, slots=True)
class Jump:
    """Go on elsewhere."""

    to: int


@dataclass(frozen=True, slots=True)
class Assert:
    """Go on only at the start (`^`) or the end (`$`) of the partition."""

    anchor: str


@dataclass(frozen=True, slots=True)
class Guard:
    """Go on, but no row that is skipped from here to the next one may be a variable."""

    variable: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One more turn of a repeated part begins."""

    number: int


@dataclass(frozen=True, slots=True)
class Taken:
    """Go on only if a row was taken since the turn began."""

    number: int


@dataclass(frozen=True, slots=True)
class Done:
    """The match is complete."""


Instruction = Match | Split | Jump | Assert | Guard | Turn | Taken | Done


@dataclass(frozen=True, slots=True)
class Program:
    """Instructions by number; `str` is the listing."""

    instructions: tuple[Instruction, ...]

    def __str__(self) -> str:
        return "\n".join(f"{number} {_line(each)}" for number, each in enumerate(self.instructions))


def _line(instruction: Instruction) -> str:
    match instruction:
        case Match(variable=variable, excluded=excluded):
            return f"MATCH {variable}{' excluded' if excluded else ''}"
        case Split(preferred=preferred, other=other):
            return f"SPLIT {preferred} {other}"
        case Jump(to=to):
            return f"JUMP  {to}"
        case Assert(anchor=anchor):
            return f"ASSERT {anchor}"
        case Guard(variable=variable):
            return f"GUARD {variable}"
        case Turn(number=number):
            return f"TURN  {number}"
        case Taken(number=number):
            return f"TAKEN {number}"
        case Done():
            return "DONE"
    assert_never(instruction)


def compile_pattern(pattern: Pattern) -> Program:
    """Return the program of a pattern.

    >>> step = Alternate((Variable("B"), Variable("C")))
    >>> print(compile_pattern(Concat((Variable("A"), Repeat(step, 0, None)))))
    0 MATCH A
    1 SPLIT 2 7
    2 SPLIT 3 5
    3 MATCH B
    4 JUMP  6
    5 MATCH C
    6 JUMP  1
    7 DONE
    """
    code: list[Instruction] = []
    _emit(pattern, code, excluded=False)
    code.append(Done())
    return Program(tuple(code))


def _emit(pattern: Pattern, code: list[Instruction], *, excluded: bool) -> None:
    """Append the instructions of a pattern; what follows it goes on right behind them."""
    if len(code) > MOST_INSTRUCTIONS:
        why = f"unfolds into more than {MOST_INSTRUCTIONS:,} steps"
        raise _too_large(why)
    match pattern:
        case Variable(name=name):
            code.append(Match(name, excluded))
        case Absent(name=name):
            code.append(Guard(name))
        case PartitionStart():
            code.append(Assert("^"))
        case PartitionEnd():
            code.append(Assert("$"))
        case Concat(parts=parts):
            for part in parts:
                _emit(part, code, excluded=excluded)
        case Exclude(part=part):
            _emit(part, code, excluded=True)
        case Alternate(options=options):
            _emit_options(options, code, excluded=excluded)
        case Repeat():
            _emit_repeat(pattern, code, excluded=excluded)
        case Permute(parts=parts) if all(isinstance(part, Variable) for part in parts):
            names = [part.name for part in parts if isinstance(part, Variable)]
            _emit_orders(names, code, excluded=excluded)
        case Permute(parts=parts):
            orders = tuple(Concat(order) for order in _orders(parts))
            _emit_options(orders, code, excluded=excluded)
        case _:
            assert_never(pattern)


def _too_large(why: str) -> BindError:
    hint = "repeat less often, or permute fewer parts; a condition can count instead"
    return BindError(f"the pattern {why}", hint=hint)


def _orders(parts: Sequence[Pattern]) -> Iterator[tuple[Pattern, ...]]:
    """Yield the orders of parts, as many as could ever be unfolded."""
    for count, order in enumerate(permutations(parts)):
        if count > MOST_INSTRUCTIONS:
            return
        yield order


def _emit_options(options: Sequence[Pattern], code: list[Instruction], *, excluded: bool) -> None:
    jumps = []
    for option in options[:-1]:
        split = len(code)
        code.append(Done())
        _emit(option, code, excluded=excluded)
        jumps.append(len(code))
        code.append(Done())
        code[split] = Split(split + 1, len(code))
    _emit(options[-1], code, excluded=excluded)
    for jump in jumps:
        code[jump] = Jump(len(code))


def _emit_repeat(repeat: Repeat, code: list[Instruction], *, excluded: bool) -> None:
    def fork(inside: int, outside: int) -> Split:
        return Split(inside, outside) if repeat.greedy else Split(outside, inside)

    def emit_turn() -> None:
        """Append a turn beyond the minimum, which has to take a row."""
        turn = len(code)
        empty = can_be_empty(repeat.part)
        if empty:
            code.append(Turn(turn))
        _emit(repeat.part, code, excluded=excluded)
        if empty:
            code.append(Taken(turn))

    for _ in range(repeat.at_least):
        before = len(code)
        _emit(repeat.part, code, excluded=excluded)
        if len(code) == before:
            # Nothing, however often, is nothing.
            return
    if repeat.at_most is None:
        loop = len(code)
        code.append(Done())
        emit_turn()
        code.append(Jump(loop))
        code[loop] = fork(loop + 1, len(code))
        return
    splits = []
    for _ in range(repeat.at_most - repeat.at_least):
        splits.append(len(code))
        code.append(Done())
        emit_turn()
    for split in splits:
        code[split] = fork(split + 1, len(code))


def _emit_orders(names: Sequence[str], code: list[Instruction], *, excluded: bool) -> None:
    """Append PERMUTE of variables: one block for each set of those still to come.

    What may follow depends on the set alone, so that n variables need n·2^(n-1) steps, not n!.
    """
    everyone = (1 << len(names)) - 1
    blocks: dict[int, int] = {}
    jumps: list[tuple[int, int]] = []
    # A set comes before all sets that it leads to.
    for used in sorted(range(everyone), key=lambda each: (each.bit_count(), each)):
        if len(code) > MOST_INSTRUCTIONS:
            break
        blocks[used] = len(code)
        left = [place for place in range(len(names)) if not used >> place & 1]
        for place in left:
            if place != left[-1]:
                code.append(Split(len(code) + 1, len(code) + 3))
            code.append(Match(names[place], excluded))
            jumps.append((len(code), used | 1 << place))
            code.append(Done())
    blocks[everyone] = len(code)
    for jump, used in jumps:
        code[jump] = Jump(blocks.get(used, len(code)))
    if len(code) > MOST_INSTRUCTIONS:
        _emit(Concat(()), code, excluded=excluded)


DONE = -1


@dataclass(frozen=True, slots=True)
class Step:
    """A way on from a node: take a row as `variable` and stand at `target`, or be DONE.

    `at_start` and `at_end` ask for the place to be the partition's start or end. `absent` are
    variables that no row skipped before this step may be.
    """

    variable: int
    target: int
    at_start: bool = False
    at_end: bool = False
    absent: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Node:
    """A place in the pattern right behind a row of `variable`; the first node is the start."""

    variable: int
    excluded: bool
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Automaton:
    """The nodes of a pattern; variables are numbered in order of first sight."""

    variables: tuple[str, ...]
    nodes: tuple[Node, ...]

    def __str__(self) -> str:
        lines = []
        for number, node in enumerate(self.nodes):
            steps = " | ".join(self._step(step) for step in node.steps)
            lines.append(f"{number} {steps or 'nothing'}")
        return "\n".join(lines)

    def _step(self, step: Step) -> str:
        anchors = ("^ " if step.at_start else "") + ("$ " if step.at_end else "")
        absent = "".join(f"not {self.variables[each]} " for each in sorted(step.absent))
        if step.variable == DONE:
            return f"{anchors}{absent}done"
        return f"{anchors}{absent}{self.variables[step.variable]} -> {step.target}"


def automaton_of(pattern: Pattern, *, all_matches: bool = False) -> Automaton:
    """Return the automaton of a pattern, for the preferred match of a row or for all matches.

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
        (place, each) for place, each in enumerate(program.instructions) if isinstance(each, Match)
    ]
    for number, (place, _) in enumerate(matches):
        node_of[place] = number + 1

    count = 0

    def steps_from(place: int) -> tuple[Step, ...]:
        nonlocal count
        steps = _steps(program, place, node_of, numbers)
        count += len(steps)
        if count > MOST_STEPS:
            why = f"has more than {MOST_STEPS:,} ways from one row to the next"
            raise _too_large(why)
        # What comes after a way to be done that always stands open is never preferred.
        free = [number for number, step in enumerate(steps) if step == Step(DONE, DONE)]
        return steps[: free[0] + 1] if free and not all_matches else steps

    nodes = [Node(DONE, False, steps_from(0))]
    for place, instruction in matches:
        steps = steps_from(place + 1)
        nodes.append(Node(numbers[instruction.variable], instruction.excluded, steps))
    return Automaton(variables, _merged(nodes))


def _merged(nodes: list[Node]) -> tuple[Node, ...]:
    """Make nodes one that lie behind the same variable and have the same ways on.

    The copies that quantifiers unfold into differ in where they stand alone: B+ is B B*.
    """
    while True:
        numbers: dict[Node, int] = {}
        # The start stays apart: no row leads to it.
        place = [0] + [numbers.setdefault(node, len(numbers) + 1) for node in nodes[1:]]
        if len(numbers) + 1 == len(nodes):
            return tuple(nodes)
        kept = [nodes[0], *numbers]
        nodes = [replace(node, steps=_unrepeated(node.steps, place)) for node in kept]


def _unrepeated(steps: tuple[Step, ...], place: list[int]) -> tuple[Step, ...]:
    """Return steps to where their targets are now; the same step again is never preferred."""
    moved = (
        replace(step, target=place[step.target]) if step.target != DONE else step for step in steps
    )
    return tuple(dict.fromkeys(moved))


@dataclass(frozen=True, slots=True)
class _Path:
    """Where a program stands between two rows, and what it has met since the last one.

    `turns` are the turns that began and have taken no row yet.
    """

    place: int
    at_start: bool = False
    at_end: bool = False
    absent: frozenset[int] = frozenset()
    turns: frozenset[int] = frozenset()


def _steps(
    program: Program, start: int, node_of: dict[int, int], numbers: dict[str, int]
) -> tuple[Step, ...]:
    """Return the ways on from an instruction, the preferred one first."""
    steps: dict[Step, None] = {}
    # What has been met before leads where it led before, and that was preferred.
    seen: set[_Path] = set()
    waiting = [_Path(start)]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        here = path.place
        asked = (path.at_start, path.at_end, path.absent)
        match program.instructions[here]:
            case Match(variable=variable):
                # No row follows the end of a partition.
                if not path.at_end:
                    steps.setdefault(Step(numbers[variable], node_of[here], *asked))
            case Done():
                steps.setdefault(Step(DONE, DONE, *asked))
            case Split(preferred=preferred, other=other):
                waiting += [replace(path, place=other), replace(path, place=preferred)]
            case Jump(to=to):
                waiting.append(replace(path, place=to))
            case Assert(anchor="^"):
                waiting.append(replace(path, place=here + 1, at_start=True))
            case Assert():
                waiting.append(replace(path, place=here + 1, at_end=True))
            case Guard(variable=variable):
                absent = path.absent | {numbers[variable]}
                waiting.append(replace(path, place=here + 1, absent=absent))
            case Turn(number=number):
                waiting.append(replace(path, place=here + 1, turns=path.turns | {number}))
            case Taken(number=number):
                if number not in path.turns:
                    waiting.append(replace(path, place=here + 1))
    return tuple(steps)
