"""Compile a row pattern into a program that can be printed; automaton.py makes the automaton of it.

    PATTERN (A (B | C)*)
      0 MATCH A
      1 SPLIT 2 7      greedy: once more before leaving
      2 SPLIT 3 5      B before C
      3 MATCH B
      4 JUMP  6
      5 MATCH C
      6 JUMP  1
      7 DONE

A program forks at every SPLIT. A repeated part may take no row, as in `(A?)*`: then TURN and TAKEN
stand around it, and a turn that took no row goes no further, so that loops end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import assert_never

from eventide.errors import BindError
from eventide.plan.patterns.tree import (
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
)

MOST_INSTRUCTIONS = 10_000
"""A pattern with more instructions is refused: its tables would not fit into the cache."""


@dataclass(frozen=True, slots=True)
class MatchRow:
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
    """Go on, but no row that is skipped from here to the next row may be one of these variables.

    If that depends on variables that come later, it is checked when the match is complete.
    """

    variable: str
    late: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Turn:
    """One more turn of a repeated part begins."""

    number: int


@dataclass(frozen=True, slots=True)
class RowTaken:
    """Go on only if a row was taken since the turn began."""

    number: int


@dataclass(frozen=True, slots=True)
class Done:
    """The match is complete."""


Instruction = MatchRow | Split | Jump | Assert | Guard | Turn | RowTaken | Done


@dataclass(frozen=True, slots=True)
class Program:
    """Instructions by number; `str` is the listing."""

    instructions: tuple[Instruction, ...]

    def __str__(self) -> str:
        return "\n".join(f"{number} {_line(each)}" for number, each in enumerate(self.instructions))


def _line(instruction: Instruction) -> str:
    match instruction:
        case MatchRow(variable=variable, excluded=excluded):
            return f"MATCH {variable}{' excluded' if excluded else ''}"
        case Split(preferred=preferred, other=other):
            return f"SPLIT {preferred} {other}"
        case Jump(to=to):
            return f"JUMP  {to}"
        case Assert(anchor=anchor):
            return f"ASSERT {anchor}"
        case Guard(variable=variable, late=late):
            return f"GUARD {variable}{' later' if late else ''}"
        case Turn(number=number):
            return f"TURN  {number}"
        case RowTaken(number=number):
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
    """Append the instructions of a pattern; what follows the pattern continues behind them."""
    check_size(code)
    match pattern:
        case Variable(name=name):
            code.append(MatchRow(name, excluded))
        case Absent(name=name, late=late):
            code.append(Guard(name, late))
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


def check_size(code: list[Instruction]) -> None:
    """Refuse a program that has grown too long."""
    if len(code) > MOST_INSTRUCTIONS:
        why = f"unfolds into more than {MOST_INSTRUCTIONS:,} steps"
        raise too_large(why)


def too_large(why: str) -> BindError:
    """Return the error for a pattern that is too large, and what would help."""
    hint = "repeat less often, or permute fewer parts; a condition can count instead"
    return BindError(f"the pattern {why}", hint=hint)


def _orders(parts: Sequence[Pattern]) -> Iterator[tuple[Pattern, ...]]:
    """Yield the orders of parts, at most as many as can be unfolded."""
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
            code.append(RowTaken(turn))

    for _ in range(repeat.at_least):
        before = len(code)
        _emit(repeat.part, code, excluded=excluded)
        if len(code) == before:
            # An empty part, repeated any number of times, is empty.
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
    """Append PERMUTE of variables: one group of instructions for each set of variables left.

    What may follow depends only on the set, so n variables need n·2^(n-1) steps instead of n!.
    """
    everyone = (1 << len(names)) - 1
    blocks: dict[int, int] = {}
    jumps: list[tuple[int, int]] = []
    # A set comes before all sets that it leads to.
    for used in sorted(range(everyone), key=lambda each: (each.bit_count(), each)):
        check_size(code)
        blocks[used] = len(code)
        left = [place for place in range(len(names)) if not used >> place & 1]
        for place in left:
            if place != left[-1]:
                code.append(Split(len(code) + 1, len(code) + 3))
            code.append(MatchRow(names[place], excluded))
            jumps.append((len(code), used | 1 << place))
            code.append(Done())
    blocks[everyone] = len(code)
    for jump, used in jumps:
        code[jump] = Jump(blocks[used])
