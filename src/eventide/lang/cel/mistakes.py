"""What lark cannot read → an error that says what is wrong, where, and what would work."""

from __future__ import annotations

from collections.abc import Mapping

from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from eventide.errors import ParseError, Span
from eventide.lang.cel.recognise import Word, words_of

SHAPE = "CEL is [SELECT … FROM] stream, with FILTER{…}, NEXT{…} and FOLD{…, …, …} [PUBLISH name]"
_BRACED: Mapping[str, str] = {
    "FILTER": "write FILTER{condition} stream",
    "NEXT": "write left NEXT{condition} right; NEXT{} takes any event",
    "FOLD": "write left FOLD{condition, as long as, value AS name} right",
    "INSTANT": "write AT INSTANT{MAX(price) AS top} stream",
}
_SQL: Mapping[str, str] = {
    "CREATE": "CREATE, DROP and EXPLAIN are statements around CEL: use sql",
    "DROP": "CREATE, DROP and EXPLAIN are statements around CEL: use sql",
    "WHERE": "write FROM FILTER{condition} stream",
    "HAVING": "write FROM FILTER{condition} (…)",
    "GROUP": "AT INSTANT{key, COUNT(*) AS n} stream groups the events of an instant",
    "JOIN": "write left NEXT{condition} right",
    "LIMIT": "write SELECT … FROM CEL (…) LIMIT 10: that is SQL around it",
    "ORDER": "write SELECT … FROM CEL (…) ORDER BY …: that is SQL around it",
    "WITH": "write the query in brackets in the place of its name",
    "DISTINCT": "write SELECT DISTINCT … FROM CEL (…): that is SQL around it",
}
_WORDS: Mapping[str, str] = {
    "_AS": "AS",
    "_CLOSE": "}",
    "_COMMA": ",",
    "_FROM": "FROM",
    "_FILTER": "FILTER{…}",
    "_FOLD": "FOLD{…}",
    "_LPAR": "(",
    "_NEXT": "NEXT{…}",
    "_OPEN": "{",
    "_PUBLISH": "PUBLISH",
    "_RPAR": ")",
    "_UNION": "UNION",
    "COMPARISON": "a comparison",
    "NAME": "a name",
    "NUMBER": "a value",
}
_CLOSING = {"(": ")", "{": "}"}


def mistake_of(error: UnexpectedInput, text: str) -> ParseError:
    """Return lark's error as ours."""
    place = error.pos_in_stream
    ended = isinstance(error, UnexpectedToken) and error.token.type == "$END"
    if ended or place is None:
        place = len(text)
    before = words_of(text[:place])
    rest = words_of(text[place:])
    near = rest[0].text if rest else ""
    span = Span(place, place + max(1, len(near)))
    known = (
        _unclosed(text, place)
        or _of_sql(before, near, span)
        or _misplaced(before, near, span)
        or (_missing_end(before) if ended else None)
    )
    if known is not None:
        return known
    expected = _expected(error)
    if not near:
        if not before:
            message = "the query is empty"
            return ParseError(message, hint=SHAPE)
        message, end = "the query ends too early", before[-1]
        return ParseError(message, span=Span(end.start, end.end), hint=expected or SHAPE)
    hint = _hint(before, near, expected)
    return ParseError(f"cannot read the query near {near!r}", span=span, hint=hint)


def _unclosed(text: str, place: int) -> ParseError | None:
    """Return the error for a text in quotes or a comment without an end."""
    opened = Span(place, place + 1)
    if text[place : place + 1] == "'":
        return ParseError("a string is not closed", span=opened, hint="end it with '")
    if text[place : place + 2] in ('""', "``"):
        empty = Span(place, place + 2)
        return ParseError("a name is empty", span=empty, hint="write it between the quotes")
    if text[place : place + 1] in ('"', "`"):
        quote = text[place]
        return ParseError("a quoted name is not closed", span=opened, hint=f"end it with {quote}")
    if text[place - 1 : place + 1] == "/*":
        span = Span(place - 1, place + 1)
        return ParseError("a comment is not closed", span=span, hint="end it with */")
    return None


def _misplaced(before: list[Word], near: str, span: Span) -> ParseError | None:
    """Return the error for something that stands where it cannot."""
    last = before[-1] if before else Word("", 0, 0)
    said, earlier = near.upper(), [each.said for each in before[-3:]]
    place = Span(last.start, last.end)
    if near == "$" and last.text == ".":
        message = "decorators do not nest"
        hint = "name the attribute before: (SELECT price AS first FROM …) NEXT{$1.first < …} …"
        return ParseError(message, span=span, hint=hint)
    if near == "$":
        message = "$ stands without a name"
        hint = "write $1.price for the left event, $2.price for the right one, $name for a value"
        return ParseError(message, span=span, hint=hint)
    if near == "." and last.text:
        message = f"{last.text} stands in front of a dot"
        hint = "attributes have no stream in front: write $1.price, $2.price or just price"
        return ParseError(message, span=place, hint=hint)
    if said in _BRACED and near[:1].isalpha():
        return ParseError(f"{said} has no braces", span=span, hint=_BRACED[said])
    if near == "(" and last.said in _BRACED:
        return ParseError(f"{last.said} has no braces", span=place, hint=_BRACED[last.said])
    if near == "}" and earlier[-2:] == ["FILTER", "{"]:
        opened = Span(before[-2].start, span.end)
        return ParseError("FILTER has no condition", span=opened, hint=_BRACED["FILTER"])
    if before and before[0].said in ("CREATE", "DROP"):
        place = Span(before[0].start, before[0].end)
        return ParseError(f"{before[0].said} is not CEL", span=place, hint=_SQL["CREATE"])
    if said in _SQL:
        return ParseError(f"{said} is not CEL", span=span, hint=_SQL[said])
    if said == "AS" and "{" not in _open_brackets(before) and "SELECT" not in earlier:
        message = "a stream has no other name here"
        return ParseError(message, span=span, hint="$1. is the left event, $2. the right one")
    if last.text == ";":
        message = "more than one statement"
        return ParseError(message, span=span, hint="run them one at a time")
    return None


def _of_sql(before: list[Word], near: str, span: Span) -> ParseError | None:
    """Return the error for what is written as in SQL, but cannot be here."""
    last = before[-1] if before else Word("", 0, 0)
    earlier, place = [each.said for each in before[-3:]], Span(last.start, last.end)
    if near == "{" and last.said in ("NEXT", "FOLD") and _begins(before[:-1]):
        message = f"{last.said} has no left side"
        return ParseError(message, span=place, hint=_BRACED[last.said])
    if last.said == "FROM" and earlier[-2:-1] == ["}"]:
        message = "FROM stands in front of all of it"
        return ParseError(message, span=place, hint="leave FROM out: FILTER{condition} stream")
    if earlier[-2:] == ["SELECT", "DISTINCT"]:
        return ParseError("DISTINCT is not CEL", span=place, hint=_SQL["DISTINCT"])
    if last.said == "SELECT" and earlier[-2:-1] == ["("] and "{" in _open_brackets(before):
        message = "a condition has no query in it"
        return ParseError(message, span=place, hint="write left NEXT{condition} (SELECT … FROM …)")
    if near.isalpha() and last.text.isdigit() and "DUR" in [each.said for each in before[-8:]]:
        message = f"{near} is no unit of time"
        return ParseError(
            message, span=span, hint="write 500 ms, 90 s, 10 min, 2 h, 3 d or 52 weeks"
        )
    return None


def _open_brackets(before: list[Word]) -> list[str]:
    found: list[str] = []
    for each in before:
        if each.said in _CLOSING:
            found.append(each.said)
        elif each.said in _CLOSING.values() and found:
            found.pop()
    return found


def _missing_end(before: list[Word]) -> ParseError | None:
    """Return the error for a bracket that is not closed."""
    opened: list[Word] = []
    for each in before:
        if each.said in _CLOSING:
            opened.append(each)
        elif each.said in _CLOSING.values() and opened:
            opened.pop()
    if not opened:
        return None
    bracket = opened[-1]
    message = f"a {bracket.text} is not closed"
    hint = f"end it with {_CLOSING[bracket.text]}"
    return ParseError(message, span=Span(bracket.start, bracket.end), hint=hint)


def _expected(error: UnexpectedInput) -> str:
    """Return what could stand there, as a hint; nothing if that is too much to say."""
    if isinstance(error, UnexpectedToken):
        kinds = set(error.accepts or error.expected)
    elif isinstance(error, UnexpectedCharacters):
        kinds = set(error.allowed or ())
    else:
        kinds = set()
    names = sorted({_WORDS[kind] for kind in kinds if kind in _WORDS})
    if "a value" in names:
        return "expected a value or a condition"
    return f"expected {' or '.join(names)}" if 0 < len(names) <= 5 else ""


def _begins(before: list[Word]) -> bool:
    """Whether a stream begins behind some words."""
    return not before or before[-1].said in ("FROM", "(", "UNION", "ALL")


def _hint(before: list[Word], near: str, expected: str) -> str:
    if near == "," and expected == "expected }":
        return "put conditions together with AND"
    if near in (",", "}") and expected == "expected AS":
        return "give the value a name: … AS name"
    if near in _CLOSING.values() and not _open_brackets(before):
        return f"leave the {near} out: nothing is open"
    return expected or SHAPE
