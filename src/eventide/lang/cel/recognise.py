"""Which texts are CEL, and where CEL stands inside SQL. It looks at words and brackets only.

A text is CEL if FILTER, NEXT or FOLD stand in front of a brace, AT INSTANT too, or PUBLISH and a
name at the end of a query. `SELECT … FROM stream` alone is SQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from eventide.errors import ParseError, Span

_WORDS = re.compile(
    r"""
    (?P<skipped>\s+|--[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)
    |(?P<text>'(?:[^']|'')*'?)
    |(?P<quoted>"(?:[^"]|"")*"?|`[^`]*`?)
    |(?P<word>[^\W\d]\w*)
    |(?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_CEL = re.compile(r"\bCEL\b", re.IGNORECASE)
_BRACED = frozenset({"FILTER", "NEXT", "FOLD", "INSTANT"})
_ENDS = frozenset({")", ";"})
_NO_NAMES = frozenset(
    (
        *("AND", "AS", "ASC", "BY", "CASE", "DESC", "ELSE", "END", "FROM", "HAVING", "IN", "IS"),
        *("LIKE", "LIMIT", "NOT", "NULLS", "ON", "OR", "ORDER", "SELECT", "THEN", "UNION"),
        *("USING", "WHEN", "WHERE"),
    )
)
"""Words of SQL beside which PUBLISH is a name."""
_QUERY = frozenset({"SELECT", "FROM", "FILTER", "AT"})
"""Words with which CEL in brackets begins."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word, a name in quotes or a sign of a text."""

    text: str
    start: int
    end: int
    plain: bool = True
    """Whether it is neither a name nor a text in quotes."""

    @property
    def said(self) -> str:
        """The word in upper case, nothing for what stands in quotes."""
        return self.text.upper() if self.plain else ""


def words_of(text: str) -> list[Word]:
    """Return the words of a text, without comments."""
    found = []
    for match in _WORDS.finditer(text):
        if match.lastgroup != "skipped":
            plain = match.lastgroup in ("word", "other")
            found.append(Word(match[0], match.start(), match.end(), plain))
    return found


def is_cel(text: str) -> bool:
    """Whether a text is CEL.

    >>> is_cel("SELECT * FROM FILTER{speed > 3}(cars)"), is_cel("SELECT filter FROM cars")
    (True, False)
    """
    if "{" not in text and "publish" not in text.lower():
        return False
    words = _outside_of_patterns(words_of(text))
    return any(_marks(words, place) for place in range(len(words)))


def _outside_of_patterns(words: list[Word]) -> list[Word]:
    """Return words without those of PATTERN ( … ), where braces count repetitions."""
    found: list[Word] = []
    place = 0
    while place < len(words):
        opens = [each.said for each in words[place : place + 2]] == ["PATTERN", "("]
        if opens:
            place = closing(words, place + 1) + 1
            continue
        found.append(words[place])
        place += 1
    return found


def _marks(words: list[Word], place: int) -> bool:
    """Whether a word stands where only CEL has it."""
    before, word, name, end = (
        words[each] if 0 <= each < len(words) else Word("", 0, 0)
        for each in (place - 1, place, place + 1, place + 2)
    )
    if word.said in _BRACED and name.said == "{":
        return word.said != "INSTANT" or before.said == "AT"
    if word.said != "PUBLISH" or not (end.text == "" or end.said in _ENDS):
        return False
    return _can_name(name) and (before.said == ")" or _can_name(before))


def _can_name(word: Word) -> bool:
    named = word.text[:1].isalpha() or word.text[:1] in ('"', "`", "_")
    return named and word.said not in _NO_NAMES


def closing(words: list[Word], opening: int) -> int:
    """Return the place of the bracket that closes one; if none does, that of the opening one."""
    depth = 0
    for place in range(opening, len(words)):
        depth += {"(": 1, ")": -1}.get(words[place].said, 0)
        if depth == 0:
            return place
    return opening


def definition_in(text: str) -> int | None:
    """Return where the query of CREATE … AS begins, None if a text does not create anything."""
    words = words_of(text)
    if not words or words[0].said != "CREATE":
        return None
    found = [place for place, word in enumerate(words[:-1]) if word.said == "AS"]
    return words[found[0] + 1].start if found else None


def cel_in_sql(text: str) -> Iterator[Span]:
    """Yield where CEL ( … ) stands in SQL: what is inside the brackets.

    >>> text = "SELECT * FROM CEL (FILTER{speed > 3} cars) AS fast"
    >>> [span.of(text) for span in cel_in_sql(text)]
    ['FILTER{speed > 3} cars']
    """
    if _CEL.search(text) is None:
        return
    words = words_of(text)
    place = 1
    while place + 1 < len(words):
        before, word, opening = words[place - 1 : place + 2]
        if word.said == "CEL" and opening.said == "(" and _reads(words, place, before):
            end = closing(words, place + 1)
            if words[end].said != ")":
                span = Span(word.start, opening.end)
                message = "CEL ( is not closed"
                raise ParseError(message, span=span, hint="end it with )")
            yield Span(opening.end, words[end].start)
            place = end
        place += 1


def _reads(words: list[Word], place: int, before: Word) -> bool:
    """Whether CEL ( at a place is a source in FROM, not a function."""
    if before.said in ("FROM", "JOIN"):
        return True
    inside = words[place + 2 : place + 3]
    return before.said == "," and any(each.said in _QUERY for each in inside)
