"""Which parts of a text are patterns. The tokens of SQL are found without them.

In a pattern, `/*` and `//` are steps, and braces are around namespaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from eventide.errors import ParseError, Span

_PIECE = re.compile(
    r"""
    (?P<skipped>\s+|--[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)
    |(?P<opening>XPATH\s*\()
    |'(?:[^']|'')*'?|"(?:[^"]|"")*"?|`[^`]*`?|[^\W\d]\w*|\d\w*|.
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_INSIDE = re.compile(r"""'(?:[^']|'')*'?|"[^"]*"?|`[^`]*`?|\{[^{}]*\}?|[^'"`{}()]+|.""", re.DOTALL)
_PATTERN = re.compile(r"""\s*([^\W\d]\w*|"[^"]*"|`[^`]*`)\s*/""")
_NO_NEWLINE = re.compile(r"[^\n]")


def patterns_in(text: str) -> Iterator[Span]:
    """Yield where patterns stand in SQL: what is inside of the brackets of FROM XPATH ( … ).

    >>> text = "SELECT x FROM XPATH (blog//*->x[. = ')']) AS b"
    >>> [span.of(text) for span in patterns_in(text)]
    ["blog//*->x[. = ')']"]
    """
    place, before = 0, ""
    while (piece := _PIECE.match(text, place)) is not None:
        place = piece.end()
        if piece["skipped"] is not None:
            continue
        if piece["opening"] is not None and _reads(before, text, place):
            end = _closing(text, piece)
            yield Span(place, end)
            place = end
        before = piece[0].upper()


def _reads(before: str, text: str, place: int) -> bool:
    """Whether XPATH ( is a source in FROM, not a function."""
    return before in ("FROM", "JOIN") or (before == "," and _PATTERN.match(text, place) is not None)


def _closing(text: str, opening: re.Match[str]) -> int:
    """Return where the bracket is closed."""
    place, depth = opening.end(), 1
    while (piece := _INSIDE.match(text, place)) is not None:
        depth += {"(": 1, ")": -1}.get(piece[0], 0)
        if depth == 0:
            return place
        place = piece.end()
    message = "XPATH ( is not closed"
    raise ParseError(message, span=Span(*opening.span()), hint="end it with )")


def without_patterns(text: str) -> tuple[str, tuple[Span, ...]]:
    """Return a text in which patterns are blank, and where they stand.

    >>> without_patterns("SELECT * FROM XPATH (blog//item->x)")[0]
    'SELECT * FROM XPATH (            )'
    """
    patterns = tuple(patterns_in(text))
    for span in patterns:
        text = text[: span.start] + _NO_NEWLINE.sub(" ", span.of(text)) + text[span.end :]
    return text, patterns
