"""A CEL text → its syntax tree; lark's errors become ours."""

from __future__ import annotations

from typing import cast

from lark import Token, Tree
from lark.exceptions import UnexpectedInput

from eventide.errors import ParseError
from eventide.lang.cel.mistakes import mistake_of
from eventide.lang.cel.tables import parser
from eventide.lang.cel.tree import (
    CelItem,
    CelName,
    Filtered,
    Fold,
    Instants,
    NamedStream,
    Next,
    Query,
    Stream,
    Union,
    Value,
    parts_of,
    span_of,
)

Part = Tree[Token]

MOST_LEVELS = 100
"""Parts inside each other: planning takes more than their number."""


def parse_cel(text: str) -> Stream:
    """Return the syntax tree of a text.

    >>> parse_cel("FILTER{speed > 3} cars NEXT{} cars").left.source.name.text
    'cars'
    """
    try:
        stream = _stream(cast("Part", parser().parse(text).children[0]))
    except UnexpectedInput as error:
        raise mistake_of(error, text) from None
    except RecursionError:
        message = "the query is nested too deeply"
        raise ParseError(message, hint="write x IN (…) for many ORs, PUBLISH parts") from None
    check_levels(stream)
    return stream


def check_levels(stream: Stream) -> None:
    """Refuse more parts inside each other than are planned in a second."""
    level = [stream]
    for _ in range(MOST_LEVELS):
        level = [part for each in level for part in parts_of(each)]
        if not level:
            return
    message = f"parts inside each other on more than {MOST_LEVELS} levels"
    hint = "PUBLISH parts as streams, and read these by name"
    raise ParseError(message, span=stream.span, hint=hint)


def _stream(part: Part) -> Stream:
    span = span_of(part)
    match part.data, part.children:
        case "stream", [Tree() as name]:
            return NamedStream(_name(name), span)
        case "filter", [Tree() as condition, Tree() as source]:
            return Filtered(condition, _stream(source), span)
        case "next", [Tree() as left, condition, Tree() as right]:
            return Next(_stream(left), _optional(condition), _stream(right), span)
        case "fold", [Tree() as left, condition, proceed, bindings, Tree() as right]:
            items = bindings.children if isinstance(bindings, Tree) else []
            return Fold(
                _stream(left),
                _optional(condition),
                _optional(proceed),
                tuple(_item(each) for each in items if isinstance(each, Tree)),
                _stream(right),
                span,
            )
        case "union", sources:
            return Union(tuple(_stream(each) for each in sources if isinstance(each, Tree)), span)
        case "instants", [*items, Tree() as source]:
            found = tuple(_item(each) for each in items if isinstance(each, Tree))
            return Instants(found, _stream(source), span)
        case "bracketed", [Tree() as query]:
            return _stream(query)
        case "query", [select, Tree() as source, published]:
            items = select.children if isinstance(select, Tree) else []
            named = published.children[0] if isinstance(published, Tree) else None
            return Query(
                tuple(_item(each) for each in items if isinstance(each, Tree)),
                _stream(source),
                None if named is None else _name(cast("Part", named)),
                span,
            )
    message = f"the grammar has {part.data}, and nothing reads it"
    raise AssertionError(message)


def _item(part: Part) -> CelItem:
    value, name, *_ = (*part.children, None)
    found = value if isinstance(value, Tree) else None
    return CelItem(found, _name(name) if isinstance(name, Tree) else None, span_of(part))


def _optional(part: object) -> Value | None:
    return part if isinstance(part, Tree) else None


def _name(part: Part) -> CelName:
    (token,) = part.children
    assert isinstance(token, Token)
    return CelName(name_text(token), span_of(token))


def name_text(token: Token) -> str:
    """Return a name without its quotes."""
    if token.type != "QUOTED":
        return str(token)
    quote = token[0]
    return token[1:-1].replace(quote * 2, quote)
