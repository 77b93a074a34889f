"""Refuse what no query text may contain: a NUL outside of a string, an endless number."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot.tokenizer_core import Token, TokenType

from eventide.errors import ParseError, Span

MOST_DIGITS = 1_000
_NUL = "\0"


def check_words(tokens: Iterable[Token]) -> None:
    """Refuse such words before the text is parsed."""
    for token in tokens:
        if token.token_type == TokenType.STRING:
            continue
        if _NUL in token.text:
            place = token.start + token.text.index(_NUL)
            message = "the query has a NUL character"
            raise ParseError(message, span=Span(place, place + 1), hint="leave it out")
        if token.token_type == TokenType.NUMBER and len(token.text) > MOST_DIGITS:
            message = f"a number of {len(token.text):,} digits"
            span = Span(token.start, token.start + 1)
            raise ParseError(message, span=span, hint="write a number with up to 38 digits")
