"""What no text may hold, whatever it says: a NUL outside of a string, a number without end."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot.tokenizer_core import Token, TokenType

from eventide.errors import ParseError, Span

MOST_DIGITS = 1_000
_NUL = "\0"


def check_words(tokens: Iterable[Token]) -> None:
    """Refuse words that cannot be meant, before anything is made of them."""
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
