"""A text of XSCL → its clauses, and where each stands.

SELECT a, t  FROM  blog//item->x[…]  FOLLOWED BY  {a = b, 1 DAY}  news//item->y[…]  PUBLISH p
selected           left                           braces          right                     name
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from eventide.errors import ParseError, Span

SHAPE = (
    "a query is [SELECT …] FROM pattern [FOLLOWED BY{a = b, 1 DAY} pattern | JOIN{…} pattern] "
    "[PUBLISH name]"
)
_TOKEN = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]+`|\{[^{}]*\}|//?@?|->|[^\W\d][\w.]*(?:-(?!>)[\w.]+)*|\S"
)
_TAG = re.compile(r"""<(/?)[^\W\d][\w:.-]*(?:"[^"]*"|'[^']*'|[^<>"'])*?(/?)>""")
_PATH = ("/", "//", "/@", "//@", "->")


@dataclass(frozen=True, slots=True)
class Clauses:
    """The clauses of a text; what is not there is None."""

    selected: Span | None
    left: Span
    ordered: bool
    """FOLLOWED BY, not JOIN."""
    braces: Span | None
    right: Span | None
    published: Span | None


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)


def clauses_of(text: str) -> Clauses:
    """Return the clauses of a text."""
    selected, start = _selected(text)
    words = list(_outer_words(text, start))
    if selected is not None and (not words or words[0].text.upper() != "FROM"):
        near = words[0].span if words else Span(max(0, len(text) - 1), len(text))
        message = "SELECT needs FROM behind what it selects"
        raise ParseError(message, span=near, hint=SHAPE)
    if words and words[0].text.upper() == "FROM":
        start, words = words[0].end, words[1:]
    words, end, published = _published(words, len(text))
    joins = [place for place, word in enumerate(words) if _is_join(words, place)]
    if not joins:
        return Clauses(selected, Span(start, end), False, None, None, published)
    if len(joins) > 1:
        message = "a query joins two documents"
        hint = "PUBLISH the first join, and join what it publishes"
        raise ParseError(message, span=words[joins[1]].span, hint=hint)
    place = joins[0]
    ordered = words[place].text.upper() == "FOLLOWED"
    behind = place + 2 if ordered else place + 1
    if behind >= len(words) or not words[behind].text.startswith("{"):
        message = f"{'FOLLOWED BY' if ordered else 'JOIN'} needs braces: which values are equal"
        raise ParseError(message, span=words[place].span, hint="write {a = b, 1 DAY}")
    braces = words[behind]
    inside = Span(braces.start + 1, braces.end - 1)
    left, right = Span(start, words[place].start), Span(braces.end, end)
    return Clauses(selected, left, ordered, inside, right, published)


def _selected(text: str) -> tuple[Span | None, int]:
    """Return what is selected, and where the rest begins."""
    found = re.compile(r"\s*SELECT\b", re.IGNORECASE).match(text)
    if found is None:
        return None, 0
    start = found.end()
    if re.compile(r"\s*<").match(text, start):
        end = _end_of_element(text, start)
    else:
        words = _outer_words(text, start)
        end = next((word.start for word in words if word.text.upper() == "FROM"), len(text))
    return Span(start, end), end


def _end_of_element(text: str, start: int) -> int:
    depth = 0
    for tag in _TAG.finditer(text, start):
        depth += -1 if tag[1] else not tag[2]
        if depth <= 0:
            return tag.end()
    message = "the document behind SELECT does not end"
    raise ParseError(message, span=Span(start, start + 1), hint="close each <element>")


def _outer_words(text: str, start: int) -> Iterator[_Word]:
    """Yield the words of a text that are neither in brackets nor parts of paths."""
    depth = 0
    before = ""
    for token in _TOKEN.finditer(text, start):
        word = token[0]
        if word in ("[", "]"):
            depth += 1 if word == "[" else -1
        elif depth == 0 and before not in _PATH and word not in _PATH:
            yield _Word(word, token.start(), token.end())
        # A name goes on behind its namespace.
        named = word.startswith("{") and before in _PATH
        before = before if named else word


def _published(words: list[_Word], end: int) -> tuple[list[_Word], int, Span | None]:
    """Return the words before PUBLISH, where they end, and the name."""
    for place, word in enumerate(words):
        if word.text.upper() == "PUBLISH":
            behind = words[place + 1 :]
            if len(behind) != 1:
                message = "PUBLISH needs one name"
                raise ParseError(message, span=word.span, hint=SHAPE)
            return words[:place], word.start, behind[0].span
    return words, end, None


def _is_join(words: list[_Word], place: int) -> bool:
    word = words[place].text.upper()
    following = words[place + 1].text if place + 1 < len(words) else ""
    if word == "FOLLOWED":
        return following.upper() == "BY"
    return word == "JOIN" and place > 0
