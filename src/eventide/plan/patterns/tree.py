"""Row patterns: which rows follow one another. A closed union of frozen values.

`PATTERN (A (B | C)+? {- D -} $)` is a tree of these. The order of the parts is the order of
preference: of two matches that start at the same row, the one found first by trying the parts from
left to right wins.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Literal, assert_never

from eventide.errors import PlanError, Span

_WORD = re.compile(r"\w+")
_WORDS_OF_PATTERNS = frozenset(("NOT", "PERMUTE"))


@dataclass(frozen=True, slots=True)
class Variable:
    """One row, on which the variable's condition holds."""

    name: str
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Concat:
    """The parts one after another; no part at all is the empty pattern `()`."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Alternate:
    """One of the options, the first one preferred."""

    options: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part several times: as often as possible if greedy, else as rarely as possible."""

    part: Pattern
    at_least: int
    at_most: int | None
    greedy: bool = True
    span: Span | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.at_least < 0 or (self.at_most is not None and self.at_most < self.at_least):
            message = f"a part cannot repeat {self.at_least} to {self.at_most} times"
            raise PlanError(message, span=self.span)


@dataclass(frozen=True, slots=True)
class Permute:
    """The parts in any order; orders are preferred as a dictionary would list them."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Exclude:
    """`{- … -}`: rows that are matched, but left out of ALL ROWS PER MATCH."""

    part: Pattern
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class PartitionStart:
    """`^`: no row before."""


@dataclass(frozen=True, slots=True)
class PartitionEnd:
    """`$`: no row follows."""


@dataclass(frozen=True, slots=True)
class Absent:
    """`NOT B`: none of the rows skipped here satisfies the variable's condition.

    `late` are variables that the condition reads and that come later: it is checked when the match
    is complete, with all of their rows.
    """

    name: str
    late: frozenset[str] = frozenset()
    span: Span | None = field(default=None, compare=False)


Pattern = (
    Variable
    | Concat
    | Alternate
    | Repeat
    | Permute
    | Exclude
    | PartitionStart
    | PartitionEnd
    | Absent
)

Output = Literal["one row", "show empty", "omit empty", "with unmatched"]
"""ONE ROW PER MATCH, or ALL ROWS PER MATCH with one of its three ways."""
SkipTo = Literal["past last row", "next row", "first", "last"]
Strategy = Literal["contiguous", "skip_till_next", "skip_till_any"]


@dataclass(frozen=True, slots=True)
class Skip:
    """Where to look for the next match after one, as AFTER MATCH SKIP says."""

    to: SkipTo = "past last row"
    variable: str | None = None
    span: Span | None = field(default=None, compare=False)


PAST_LAST_ROW = Skip()


def parts_of(pattern: Pattern) -> tuple[Pattern, ...]:
    """Return the direct parts of a pattern."""
    match pattern:
        case Variable() | Absent() | PartitionStart() | PartitionEnd():
            return ()
        case Concat(parts=parts) | Permute(parts=parts):
            return parts
        case Alternate(options=options):
            return options
        case Repeat(part=part) | Exclude(part=part):
            return (part,)
    assert_never(pattern)


def walk_pattern(pattern: Pattern) -> Iterator[Pattern]:
    """Yield the pattern and all its parts, outermost first, left to right."""
    yield pattern
    for part in parts_of(pattern):
        yield from walk_pattern(part)


def variables_of(pattern: Pattern) -> tuple[str, ...]:
    """Return the variables of a pattern, those of NOT too, in order of first occurrence."""
    named = (part.name for part in walk_pattern(pattern) if isinstance(part, Variable | Absent))
    return tuple(dict.fromkeys(named))


@dataclass(frozen=True, slots=True)
class VariablesAround:
    """What a match may have taken before a part, has surely taken, and may take behind it."""

    may_before: frozenset[str] = frozenset()
    must_before: frozenset[str] = frozenset()
    may_behind: frozenset[str] = frozenset()


NOTHING_AROUND = VariablesAround()


def with_late(
    pattern: Pattern,
    late_of: Callable[[Absent, VariablesAround], frozenset[str]],
    around: VariablesAround = NOTHING_AROUND,
) -> Pattern:
    """Return the pattern with the variables that each of its NOTs has to wait for."""
    match pattern:
        case Absent():
            return replace(pattern, late=late_of(pattern, around))
        case Concat(parts=parts):
            found = []
            for place, part in enumerate(parts):
                behind = _taken_by(*parts[place + 1 :]) | around.may_behind
                found.append(with_late(part, late_of, replace(around, may_behind=behind)))
                around = replace(
                    around,
                    may_before=around.may_before | _taken_by(part),
                    must_before=around.must_before | _surely_taken_by(part),
                )
            return Concat(tuple(found))
        case Alternate(options=options):
            return Alternate(tuple(with_late(each, late_of, around) for each in options))
        case Permute(parts=parts):
            found = []
            for place, part in enumerate(parts):
                others = _taken_by(*parts[:place], *parts[place + 1 :])
                found.append(with_late(part, late_of, _beside(around, others)))
            return Permute(tuple(found))
        case Repeat(part=part, at_most=at_most):
            inside = around if at_most == 1 else _beside(around, _taken_by(part))
            return replace(pattern, part=with_late(part, late_of, inside))
        case Exclude(part=part):
            return replace(pattern, part=with_late(part, late_of, around))
        case Variable() | PartitionStart() | PartitionEnd():
            return pattern
    assert_never(pattern)


def _beside(around: VariablesAround, names: frozenset[str]) -> VariablesAround:
    """Return what is around a part if some variables may come on either side of it."""
    before, behind = around.may_before | names, around.may_behind | names
    return replace(around, may_before=before, may_behind=behind)


def _taken_by(*patterns: Pattern) -> frozenset[str]:
    """Return the variables that may have rows in a match of some patterns."""
    parts = (part for pattern in patterns for part in walk_pattern(pattern))
    return frozenset(part.name for part in parts if isinstance(part, Variable))


def _surely_taken_by(pattern: Pattern) -> frozenset[str]:
    """Return the variables that have a row in every match of a pattern."""
    match pattern:
        case Variable(name=name):
            return frozenset((name,))
        case Concat(parts=parts) | Permute(parts=parts):
            return frozenset[str]().union(*map(_surely_taken_by, parts))
        case Alternate(options=options):
            return frozenset.intersection(*map(_surely_taken_by, options))
        case Repeat(part=part, at_least=at_least):
            return _surely_taken_by(part) if at_least else frozenset()
        case Exclude(part=part):
            return _surely_taken_by(part)
        case Absent() | PartitionStart() | PartitionEnd():
            return frozenset()
    assert_never(pattern)


def can_be_empty(pattern: Pattern) -> bool:
    """Whether a pattern can match without taking a row."""
    match pattern:
        case Variable():
            return False
        case Absent() | PartitionStart() | PartitionEnd():
            return True
        case Concat(parts=parts) | Permute(parts=parts):
            return all(map(can_be_empty, parts))
        case Alternate(options=options):
            return any(map(can_be_empty, options))
        case Repeat(part=part, at_least=at_least):
            return at_least == 0 or can_be_empty(part)
        case Exclude(part=part):
            return can_be_empty(part)
    assert_never(pattern)


def skips_surely(pattern: Pattern, skip: Skip) -> bool:
    """Whether no match of a pattern lacks the row to skip to, or begins with it.

    >>> a, b = Variable("A"), Variable("B")
    >>> skips_surely(Concat((a, b)), Skip("last", "B"))
    True
    >>> skips_surely(Concat((a, Repeat(b, 0, 1))), Skip("last", "B"))
    False
    >>> skips_surely(Permute((a, b)), Skip("last", "B"))
    False
    """
    name = skip.variable
    return name is None or (name in _surely_taken_by(pattern) and name not in _may_begin(pattern))


def _may_begin(pattern: Pattern) -> frozenset[str]:
    """Return the variables that the first row of a match may be of."""
    match pattern:
        case Variable(name=name):
            return frozenset((name,))
        case Concat(parts=parts):
            empty = len(list(takewhile(can_be_empty, parts)))
            return frozenset[str]().union(*map(_may_begin, parts[: empty + 1]))
        case Alternate(options=parts) | Permute(parts=parts):
            return frozenset[str]().union(*map(_may_begin, parts))
        case Repeat(part=part) | Exclude(part=part):
            return _may_begin(part)
        case Absent() | PartitionStart() | PartitionEnd():
            return frozenset()
    assert_never(pattern)


def render_pattern(pattern: Pattern) -> str:
    """Return the pattern as a person would write it; parsed again, it is the same pattern.

    >>> step = Alternate((Variable("B"), Variable("C")))
    >>> render_pattern(Concat((Variable("A"), Repeat(step, 1, None, greedy=False))))
    'A (B | C)+?'
    """
    variables = variables_of(pattern)
    folded = Counter(map(fold, variables))
    # Without quotes, names that differ only in case are the same.
    names = {
        name: variable_text(name) if folded[fold(name)] == 1 else _quoted(name)
        for name in variables
    }
    return _text(pattern, names)


def fold(name: str) -> str:
    """Return an unquoted name as SQL compares it.

    >>> fold("down_2")
    'DOWN_2'
    """
    return name.upper()


def variable_text(name: str) -> str:
    """Return the name of a variable as a query writes it, quoted if necessary.

    >>> variable_text("B"), variable_text("very fast"), variable_text("not")
    ('B', '"very fast"', '"not"')
    """
    letter = name[:1].isalpha() or name.startswith("_")
    plain = letter and name.isidentifier() and _WORD.fullmatch(name) is not None
    return name if plain and name.upper() not in _WORDS_OF_PATTERNS else _quoted(name)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(pattern: Pattern, names: Mapping[str, str]) -> str:
    match pattern:
        case Variable(name=name):
            return names[name]
        case Absent(name=name):
            return f"NOT {names[name]}"
        case PartitionStart():
            return "^"
        case PartitionEnd():
            return "$"
        case Concat(parts=parts):
            return " ".join(_closed(part, names) for part in parts) if parts else "()"
        case Alternate(options=options):
            return " | ".join(_text(option, names) for option in options)
        case Permute(parts=parts):
            return f"PERMUTE({', '.join(_text(part, names) for part in parts)})"
        case Exclude(part=part):
            return f"{{- {_text(part, names)} -}}"
        case Repeat(part=part):
            plain = isinstance(part, Variable | Permute | Exclude)
            inner = _text(part, names)
            return f"{inner if plain else f'({inner})'}{_times(pattern)}"
    assert_never(pattern)


def _closed(pattern: Pattern, names: Mapping[str, str]) -> str:
    inner = _text(pattern, names)
    grouped = isinstance(pattern, Alternate) or (isinstance(pattern, Concat) and pattern.parts)
    return f"({inner})" if grouped else inner


def _times(repeat: Repeat) -> str:
    match repeat.at_least, repeat.at_most:
        case 0, None:
            times = "*"
        case 1, None:
            times = "+"
        case 0, 1:
            times = "?"
        case least, None:
            times = f"{{{least},}}"
        case least, most if least == most:
            times = f"{{{least}}}"
        case least, most:
            times = f"{{{least},{most}}}"
    return times if repeat.greedy else f"{times}?"
