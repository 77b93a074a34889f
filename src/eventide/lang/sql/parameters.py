"""Parameters in SQL: `?` and `$name` in a query, whose values are given beside its text.

A parameter is replaced before the text is parsed: its token becomes the tokens of a literal. A
value is never read as SQL, so it can hold any text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from math import isfinite

from sqlglot.tokenizer_core import Token, TokenType

from eventide.errors import BindError, Span
from eventide.lang.parameters import Parameter, known_value
from eventide.lang.sql.dialect import Eventide

SIGNS = (TokenType.PLACEHOLDER, TokenType.PARAMETER)
"""The tokens that a parameter begins with; in a PATTERN they mean something else."""
_NAMES = (TokenType.VAR, TokenType.NUMBER)


@dataclass(frozen=True, slots=True)
class TokenParameter(Parameter):
    """A parameter whose tokens are `[start, end)`."""

    start: int
    end: int


def substituted(tokens: Sequence[Token], values: Mapping[int, object]) -> list[Token]:
    """Return the tokens of a text with each parameter replaced by its value."""
    replaced: list[Token] = []
    done = 0
    for parameter in parameters_in(tokens):
        replaced += tokens[done : parameter.start]
        before = replaced[-1].text.upper() if replaced else ""
        last = tokens[parameter.end - 1]
        for token in _literal(values[parameter.span.start], before, parameter):
            place = (last.line, last.col, parameter.span.start, parameter.span.end - 1)
            replaced.append(Token(token.token_type, token.text, *place, []))
        done = parameter.end
    return [*replaced, *tokens[done:]]


def first_parameter(tokens: Sequence[Token]) -> Span | None:
    """Return where the first parameter of a text stands, None if it has none."""
    return next((each.span for each in parameters_in(tokens)), None)


def parameters_in(tokens: Sequence[Token]) -> Iterator[TokenParameter]:
    """Yield the parameters of a text. In a row pattern, `?` and `$` are part of its grammar."""
    place = 0
    pattern_end = 0
    while place < len(tokens):
        token = tokens[place]
        if place >= pattern_end and _opens_pattern(tokens, place):
            pattern_end = _closing(tokens, place + 1)
        in_pattern = place < pattern_end and not _in_braces(tokens, place)
        if token.token_type not in SIGNS or in_pattern:
            place += 1
            continue
        name, end = "", place + 1
        if token.token_type == TokenType.PARAMETER:
            word = tokens[end] if end < len(tokens) else None
            if word is None or word.start != token.end + 1 or not _is_name(word):
                message = "$ stands without the name of a parameter"
                span = Span(token.start, token.end + 1)
                raise BindError(message, span=span, hint="write $name")
            name, end = word.text, end + 1
        yield TokenParameter(name, Span(token.start, tokens[end - 1].end + 1), place, end)
        place = end


def _is_name(word: Token) -> bool:
    quoted = word.token_type == TokenType.IDENTIFIER
    return word.token_type in _NAMES or (word.text.isidentifier() and not quoted)


def _opens_pattern(tokens: Sequence[Token], place: int) -> bool:
    following = tokens[place + 1].token_type if place + 1 < len(tokens) else None
    return tokens[place].text.upper() == "PATTERN" and following == TokenType.L_PAREN


def _closing(tokens: Sequence[Token], opening: int) -> int:
    depth = 0
    for place in range(opening, len(tokens)):
        kind = tokens[place].token_type
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if not depth:
            return place
    return len(tokens)


def _in_braces(tokens: Sequence[Token], place: int) -> bool:
    """Whether a place in a row pattern is a number of times: A{2,$most}, but not {- A? -}."""
    before = [token.token_type for token in tokens[max(0, place - 4) : place]]
    if TokenType.L_BRACE not in before:
        return False
    opening = len(before) - 1 - before[::-1].index(TokenType.L_BRACE)
    inside = before[opening + 1 :]
    return not inside or (inside[-1] == TokenType.COMMA and TokenType.DASH not in inside)


def _literal(given: object, before: str, parameter: Parameter) -> Iterator[Token]:
    """Yield the tokens of a value; `before` is the word in front of its parameter."""
    value = known_value(given, parameter)
    match value:
        case None | bool():
            yield from _tokens({None: "NULL", True: "TRUE", False: "FALSE"}[value])
        case str():
            yield from _filled("''", value)
        case int():
            yield from _number(str(abs(value)), negative=value < 0)
        case float() if isfinite(value):
            text = repr(abs(value))
            yield from _number(text if "e" in text else f"{text}e0", negative=str(value)[0] == "-")
        case float():
            yield from _filled("CAST('' AS DOUBLE)", repr(value))
        case Decimal():
            text = f"{abs(value):f}"
            yield from _number(text if "." in text else f"{text}.", negative=value.is_signed())
        case datetime():
            yield from _filled("''" if before == "TIMESTAMP" else "TIMESTAMP ''", str(value))
        case date():
            yield from _filled("''" if before == "DATE" else "DATE ''", str(value))
        case timedelta():
            us = value // timedelta(microseconds=1)
            interval = "'' MICROSECONDS"
            yield from _filled(
                interval if before == "INTERVAL" else f"INTERVAL {interval}", str(us)
            )


def _number(text: str, *, negative: bool) -> Iterator[Token]:
    for token in _tokens("(-0)" if negative else "0"):
        kind = token.token_type
        yield Token(kind, text if kind == TokenType.NUMBER else token.text)


def _filled(shape: str, text: str) -> Iterator[Token]:
    """Yield the tokens of a shape with a text in the place of its string."""
    for token in _tokens(shape):
        kind = token.token_type
        yield Token(kind, text if kind == TokenType.STRING else token.text)


@cache
def _tokens(shape: str) -> tuple[Token, ...]:
    return tuple(Eventide().tokenize(shape))
