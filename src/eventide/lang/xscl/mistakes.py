"""What lark cannot read → an error that says what is wrong, where, and what would work."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from eventide.errors import ParseError, Span

SHAPE = "a pattern is stream//step->variable[.//step->variable][step = 'text']"
_PIECE = re.compile(r"\s*(->|//|[^\W\d][\w.-]*|'[^']*'?|\S)")
_WORDS: Mapping[str, str] = {
    "_ARROW": "->",
    "_CLOSE": "]",
    "_DOT": ".",
    "_EQUALS": "=",
    "_OPEN": "[",
    "AXIS": "/ or //",
    "NAME": "a name",
    "QUOTED": "a name",
    "STRING": "a text in quotes",
    "WORD": "a variable",
}
_HINTS: Mapping[str, str] = {
    ":": "write a namespace in full, {http://…}name, or {*}name for any",
    "(": "functions are SQL's: bind a variable, and use them in SELECT or WHERE",
    "and": "write [one][other]",
    "or": "write two patterns with UNION ALL, or bind a variable and use WHERE",
    "!": "bind a variable, and compare it in WHERE",
    "<": "bind a variable, and compare it in WHERE: CAST(v AS DOUBLE) < 3",
    ">": "bind a variable, and compare it in WHERE: CAST(v AS DOUBLE) > 3",
    "as": "write step->variable",
}


def mistake_of(error: UnexpectedInput, text: str) -> ParseError:
    """Return lark's error as ours."""
    place = error.pos_in_stream
    ended = isinstance(error, UnexpectedToken) and error.token.type == "$END"
    if ended or place is None:
        place = len(text)
    found = _PIECE.match(text, place)
    expected = _expected(error)
    if found is None:
        last = len(text.rstrip())
        message = "the pattern ends too early" if text.strip() else "the pattern is empty"
        span = Span(max(0, last - 1), last) if last else None
        return ParseError(message, span=span, hint=expected or SHAPE)
    near = found[1]
    span = Span(found.start(1), found.end(1))
    message = f"cannot read the pattern near {near!r}"
    return ParseError(message, span=span, hint=_hint(near, text[:place]) or expected or SHAPE)


def _hint(near: str, before: str) -> str | None:
    if before.rstrip().endswith("["):
        if near in ("/", "//"):
            return f"write [.{near}…]: a path in brackets begins at its step"
        if near.isdigit():
            return "steps are not counted: all nodes are found"
    return _HINTS.get(near.lower())


def _expected(error: UnexpectedInput) -> str | None:
    names: set[str] = set()
    if isinstance(error, UnexpectedToken):
        names = set(error.expected)
    elif isinstance(error, UnexpectedCharacters):
        names = set(error.allowed)
    found = sorted({_WORDS[name] for name in names if name in _WORDS})
    return f"expected {', '.join(found)}" if 0 < len(found) <= 4 else None
