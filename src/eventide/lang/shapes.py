"""Texts that differ only in constants are planned once.

    … WHERE user = 'ann' AND price > 70        shape:  … WHERE user = ⟨text⟩ AND price > ⟨int⟩
    … WHERE user = 'bob' AND price > 65        the second text has the plan of the first one with
                                               'bob' and 65 in it

The first text of a shape is planned as any text. Of its numbers and strings, those are *blanks*
whose constants have been taken out of the plan, while nothing else of the plan has their place in
the text. All others are part of the shape: a length of a window, a pattern of LIKE, a name. A blank
has a kind with its type, so that another constant of the kind has the same meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property

from eventide.errors import Span
from eventide.plan.constants import cast_constant
from eventide.plan.expressions import Expression, Literal, Scalar, columns_of, walk
from eventide.plan.sharing.rules import ALL_RULES, SharingRules
from eventide.plan.sharing.share_parts import DividedPlan, cuts_of
from eventide.plan.sharing.template import Template, TemplateQuery, member_of
from eventide.plan.tree import Plan
from eventide.schema import (
    BOOL,
    FLOAT64,
    INT64,
    INTERVAL,
    NULL,
    STRING,
    TIMESTAMP,
    DataType,
)

_CONSTANT = re.compile(r"'([^'\\]*)'(?!')|(?<![\w.$\"`])(\d{1,15})(\.\d{1,15})?(?![\w.])")
_MICROSECOND = timedelta(microseconds=1)
_SAFE = re.compile(r"--|/\*|\"|`|\\|''")
"""A text with comments, quoted names or escapes is not cut up: a string in it may be none."""


MOST_SHAPES = 10_000
"""So many shapes are remembered."""


@dataclass(frozen=True, slots=True)
class TextConstant:
    """A number or a string in a text: where it is, its kind, and its value."""

    start: int
    end: int
    kind: str
    value: Scalar | datetime | timedelta

    @property
    def literal(self) -> Literal:
        """The constant as a query types it."""
        match self.value:
            case str():
                return Literal(self.value, STRING)
            case bool():
                return Literal(self.value, BOOL)
            case float():
                return Literal(self.value, FLOAT64)
            case datetime() as time:
                utc = time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)
                return Literal((utc - datetime(1970, 1, 1)) // _MICROSECOND, TIMESTAMP)
            case timedelta() as length:
                return Literal(length // _MICROSECOND, INTERVAL)
            case Decimal() as number:
                _, digits, exponent = number.as_tuple()
                assert isinstance(exponent, int)
                return Literal(number, DataType("decimal", max(len(digits), -exponent), -exponent))
            case int():
                return Literal(self.value, INT64)
        return Literal(None, NULL)


def constants_in(text: str) -> list[TextConstant] | None:
    """Return the numbers and strings of a text; None if it is not safe to look for them.

    >>> [(each.kind, each.value) for each in constants_in("car = 'a' AND speed > 70.5")]
    [('text', 'a'), ('3.1', Decimal('70.5'))]
    """
    if _SAFE.search(text):
        return None
    found = []
    for match in _CONSTANT.finditer(text):
        start, end = match.span()
        letters, whole, fraction = match.groups()
        if letters is not None:
            found.append(TextConstant(start, end, "text", letters))
        elif fraction is None:
            found.append(TextConstant(start, end, "int", int(whole)))
        else:
            number = Decimal(whole + fraction)
            _, digits, exponent = number.as_tuple()
            found.append(TextConstant(start, end, f"{len(digits)}.{-int(exponent)}", number))
    return found


def outline(text: str, constants: Iterable[TextConstant]) -> str:
    """Return a text with the kinds of its constants instead of them."""
    parts, place = [], 0
    for each in constants:
        parts += [text[place : each.start], "\0", each.kind, "\0"]
        place = each.end
    return "".join([*parts, text[place:]])


@dataclass(frozen=True, slots=True)
class Blank:
    """Where a constant of a plan comes from: a blank, perhaps with a minus before it."""

    blank: int
    type: DataType
    negative: bool


@dataclass(frozen=True)
class TextShape:
    """What texts that differ only in blanks have in common."""

    plan: Plan
    """The plan of the first text."""

    member: TemplateQuery
    """That of the first text; conditions have `$1` instead of constants, too."""
    sources: tuple[Blank | Literal, ...]
    """For each constant its blank, or its value if it is the same in all texts."""
    fixed: tuple[tuple[int, object], ...]
    """The constants of the text that are no blanks."""
    common: bool
    """Whether what may follow is part of the template."""
    rules: SharingRules

    @cached_property
    def cuts(self) -> tuple[DividedPlan, ...]:
        """The ways to divide the plan into a part that others may have, and what is above it."""
        varying = frozenset(
            place for place, each in enumerate(self.sources) if isinstance(each, Blank)
        )
        cuts = cuts_of(self.plan, self.member, varying, common=self.common, rules=self.rules)
        return tuple(cuts)

    @property
    def follower_columns(self) -> frozenset[str]:
        """The constants in conditions on what may follow, not on what comes first."""
        found = frozenset().union(*map(columns_of, self.member.conditions[1:]))
        return frozenset(name for name in found if name.startswith("$"))

    def values(self, constants: Sequence[TextConstant]) -> list[Scalar] | None:
        """Return the constants of the plan of a text; None if one does not fit its type."""
        found: list[Scalar] = []
        for source in self.sources:
            if isinstance(source, Literal):
                found.append(source.value)
                continue
            literal = cast_constant(constants[source.blank].literal, source.type)
            if literal is None:
                return None
            value = literal.value
            assert isinstance(value, int | float | Decimal | str)
            found.append(-value if source.negative and not isinstance(value, str) else value)
        return found


def shape_of(
    text: str,
    constants: Sequence[TextConstant],
    plan: Plan,
    member: TemplateQuery,
    *,
    common: bool = False,
    rules: SharingRules = ALL_RULES,
) -> TextShape:
    """Return the shape of a text by its plan; constants of conditions are taken out as well."""
    opened = member.opened()
    taken = [_source(each, constants, text) for each in opened.constants]
    kept = {
        span for span in map(_span_of, _literals(opened.template.plan, opened.conditions)) if span
    }
    sources: list[Blank | Literal] = []
    blanks: set[int] = set()
    for source, literal in zip(taken, opened.constants, strict=True):
        is_blank = source is not None and _is_free(constants[source.blank], kept, opened.template)
        sources.append(source if source is not None and is_blank else literal)
        if source is not None and is_blank:
            blanks.add(source.blank)
    fixed = tuple(
        (place, each.value) for place, each in enumerate(constants) if place not in blanks
    )
    return TextShape(plan, opened, tuple(sources), fixed, common, rules)


def _source(literal: Literal, constants: Sequence[TextConstant], text: str) -> Blank | None:
    span = literal.span
    if span is None:
        return None
    for place, each in enumerate(constants):
        negative = span.start < each.start and text[span.start : each.start].strip() == "-"
        if span.end == each.end and (span.start == each.start or negative):
            found = cast_constant(each.literal, literal.type)
            value = None if found is None else found.value
            if negative and isinstance(value, int | float | Decimal):
                value = -value
            # -0 is 0, without its sign.
            unsigned = value == 0 and text[: each.start].rstrip().endswith("-")
            if value == literal.value and not unsigned:
                return Blank(place, literal.type, negative)
    return None


def _is_free(constant: TextConstant, kept: set[Span], template: Template) -> bool:
    """Whether a constant is nowhere in a plan but where it was taken out, nor in a name."""
    overlaps = any(span.start < constant.end and constant.start < span.end for span in kept)
    # A column without a name is called as it is written.
    written = str(constant.value)
    unnamed = [name for name in template.columns if not name.isidentifier() or name == written]
    return not overlaps and not any(written in name for name in unnamed)


def _span_of(literal: Literal) -> Span | None:
    return literal.span


def _literals(plan: Plan, conditions: Iterable[Expression]) -> list[Literal]:
    own = [each for each, _ in plan.expressions]
    found = [
        part for each in (*own, *conditions) for part in walk(each) if isinstance(part, Literal)
    ]
    return found + [each for child in plan.children for each in _literals(child, ())]


class KnownShapes:
    """The shapes that are known, found by the outline of a text and the constants in a shape."""

    def __init__(self) -> None:
        self.tables: dict[Hashable, dict[tuple[int, ...], dict[tuple[str, ...], list[TextShape]]]]
        self.tables = {}
        """By outline, then by which constants are part of the shape, then by these constants."""
        self.count = 0
        """How many shapes are known."""

    def fitting(self, outline: Hashable, constants: Sequence[TextConstant]) -> Iterator[TextShape]:
        """Yield the shapes of texts with an outline and constants."""
        for places, shapes in self.tables.get(outline, {}).items():
            yield from shapes.get(tuple(repr(constants[each].value) for each in places), ())

    def add(self, outline: Hashable, shape: TextShape) -> None:
        """Note the shape of texts with an outline; if there are too many, the others go."""
        if self.count >= MOST_SHAPES:
            self.tables.clear()
            self.count = 0
        table = self.tables.setdefault(outline, {})
        shapes = table.setdefault(tuple(place for place, _ in shape.fixed), {})
        # NaN is not equal to itself, but written alike.
        shapes.setdefault(tuple(repr(value) for _, value in shape.fixed), []).append(shape)
        self.count += 1


@dataclass(frozen=True, slots=True)
class Shaped:
    """A query as its shape, and its constants."""

    shape: TextShape
    values: list[Scalar]


class TextShapes:
    """The shapes of texts that have been planned."""

    def __init__(
        self, plan: Callable[[str], Plan], rules: SharingRules = ALL_RULES, *, common: bool = False
    ) -> None:
        self.plan = plan
        self.rules = rules
        self.common = common
        self.known = KnownShapes()

    def find(self, text: str) -> Shaped | TemplateQuery | Plan:
        """Return a text's shape and constants, its template, or the plan that runs alone."""
        constants = constants_in(text)
        if constants is None:
            plan = self.plan(text)
            return member_of(plan, common=self.common, rules=self.rules) or plan
        kind = outline(text, constants)
        for shape in self.known.fitting(kind, constants):
            values = shape.values(constants)
            if values is not None:
                return Shaped(shape, values)
        plan = self.plan(text)
        member = member_of(plan, common=self.common, rules=self.rules)
        if member is None:
            return plan
        shape = shape_of(text, constants, plan, member, common=self.common, rules=self.rules)
        self.known.add(kind, shape)
        return Shaped(shape, [each.value for each in shape.member.constants])
