"""A text of XSCL → a query of documents."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from eventide.errors import ParseError, PlanError, Span
from eventide.lang.xscl.clauses import SHAPE, Clauses, clauses_of
from eventide.lang.xscl.output import constructed, listed
from eventide.lang.xscl.parse import ParsedPattern, parse_pattern
from eventide.lang.xscl.sides import PatternSides
from eventide.plan.times import parse_duration
from eventide.plan.xml.document_joins import DocumentJoin, Names
from eventide.plan.xml.document_queries import (
    DocumentQuery,
    OutputColumn,
    OutputDocument,
    OutputNode,
)
from eventide.plan.xml.patterns import PatternStep, TreePattern

ROOT = "."
"""The variable of what a pattern asks for, if it has no name."""
ROOT_NAME = "joined"
_PARTS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]+`|\{[^{}]*\}|\[|\]|//?")
_EQUAL = re.compile(r"\s*([^\W\d]\w*)\s*=\s*([^\W\d]\w*)\s*")


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query, and where the streams stand that it reads."""

    query: DocumentQuery
    streams: tuple[Span, ...]


def parse_query(text: str) -> ParsedQuery:
    """Return the query that a text is.

    >>> text = "FROM blog//item->x[.//author->a] FOLLOWED BY{a = b, 1 day} news//item[.//author->b]"
    >>> query = parse_query(text).query
    >>> query.source.equal, query.source.selected
    ((('a', 'b'),), (('x',), ('.',)))
    """
    try:
        return _parse(text)
    except ParseError as error:
        raise error.located_in(text) from None


def _parse(text: str) -> ParsedQuery:
    clauses = clauses_of(text)
    parts = [each for each in (clauses.left, clauses.right) if each is not None]
    parsed = [_pattern(text, each) for each in parts]
    roots = [
        _asked(each.pattern, text[each.stream.end : part.end])
        for each, part in zip(parsed, parts, strict=True)
    ]
    patterns = tuple(pattern for pattern, _ in roots)
    sides = PatternSides(patterns)
    if clauses.selected is None:
        output: OutputDocument | tuple[OutputColumn, ...] = _default([root for _, root in roots])
    elif text[clauses.selected.start : clauses.selected.end].lstrip().startswith("<"):
        output = constructed(text, clauses.selected, sides)
    else:
        output = listed(text, clauses.selected, sides)
    published = None if clauses.published is None else clauses.published.of(text).strip('"`')
    streams = tuple(each.stream for each in parsed)
    if len(patterns) == 1:
        return ParsedQuery(DocumentQuery(patterns[0], output, published), streams)
    query = DocumentQuery(patterns[0], output, published)
    selected = tuple(_of_side(query, side) for side in (0, 1))
    join = _join(text, clauses, sides, (selected[0], selected[1]))
    return ParsedQuery(replace(query, source=join), streams)


def _pattern(text: str, part: Span) -> ParsedPattern:
    if not part.of(text).strip():
        message = "a pattern is missing"
        place = Span(max(0, part.start - 1), max(1, part.start))
        raise ParseError(message, span=place, hint=SHAPE)
    return parse_pattern(" " * part.start + part.of(text))


def _asked(pattern: TreePattern, path: str) -> tuple[TreePattern, str]:
    """Return a pattern with a variable for the last step of its path, and the variable.

    That is what the pattern asks for: it is no predicate of the step above.
    """
    depth = 0
    steps = 0
    for part in _PARTS.findall(path):
        depth += (part == "[") - (part == "]")
        steps += depth == 0 and part in ("/", "//")

    def named(step: PatternStep, below: int) -> tuple[PatternStep, str]:
        if below:
            last, name = named(step.below[-1], below - 1)
            return replace(step, below=(*step.below[:-1], last)), name
        return replace(step, variable=step.variable or ROOT), step.variable or ROOT

    root, name = named(pattern.root, steps - 1)
    return TreePattern(pattern.stream, root), name


def _default(roots: list[str]) -> OutputDocument:
    """Return what is written without SELECT: what the patterns ask for, below a new root."""
    nodes = [OutputNode(0 if side == 0 else 1, root) for side, root in enumerate(roots)]
    return OutputDocument((f"<{ROOT_NAME}>", *nodes, f"</{ROOT_NAME}>"))


def _of_side(query: DocumentQuery, side: int) -> Names:
    return tuple({node.variable: None for node in query.nodes if node.side == side})


def _join(
    text: str, clauses: Clauses, sides: PatternSides, selected: tuple[Names, Names]
) -> DocumentJoin:
    """Return the join that the braces ask for."""
    assert clauses.braces is not None
    conditions, comma, duration = clauses.braces.of(text).rpartition(",")
    start = clauses.braces.start
    if not comma:
        message = "the braces need how far apart the documents may be"
        raise ParseError(message, span=clauses.braces, hint="write {a = b, 1 DAY}")
    equal: list[tuple[str, str]] = []
    place = start
    for part in re.split(r"(\bAND\b)", conditions, flags=re.IGNORECASE):
        if part.upper() != "AND":
            equal.append(_equal(part, place, sides))
        place += len(part)
    within = parse_duration(duration)
    if within is None:
        first = start + len(conditions) + 1
        span = Span(first, max(first + 1, clauses.braces.end))
        message = f"{duration.strip()!r} is no length of time"
        raise ParseError(message, span=span, hint="write 1 DAY, 30 minutes or 3d")
    left, right = sides.patterns
    try:
        return DocumentJoin(left, right, tuple(equal), within, clauses.ordered, selected)
    except PlanError as error:
        raise ParseError(error.message, span=clauses.braces, hint=error.hint) from None


def _equal(part: str, place: int, sides: PatternSides) -> tuple[str, str]:
    """Return a pair of a variable on the left and one on the right."""
    found = _EQUAL.fullmatch(part)
    start = place + len(part) - len(part.lstrip())
    span = Span(start, max(start + 1, place + len(part.rstrip())))
    if found is None:
        message = "the braces compare variables with =, joined by AND"
        raise ParseError(message, span=span, hint="bind what else is to be compared in a pattern")
    one, other = found[1], found[2]
    if sides.has(0, one) and sides.has(1, other):
        return sides.name(0, one), sides.name(1, other)
    if sides.has(0, other) and sides.has(1, one):
        return sides.name(0, other), sides.name(1, one)
    for name in (one, other):
        sides.side_of(name, span)
    message = f"{one} and {other} are nodes of one document"
    raise ParseError(
        message, span=span, hint="compare one of the left pattern with one of the right"
    )
