"""Parameters: `?` and `$name` in a query, whose values are given beside its text.

A parameter is replaced before the text is parsed: its token becomes the tokens of a literal. A
value is never read as SQL, so it can hold any text, and it has the type that it has in Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from math import isfinite

import numpy as np
from sqlglot.tokenizer_core import Token, TokenType

from eventide.errors import BindError, Span
from eventide.lang.sql.dialect import Eventide
from eventide.plan.bind import suggestion
from eventide.plan.types import MAX_PRECISION

Value = str | bool | int | float | Decimal | date | timedelta | None
Parameters = Sequence[object] | Mapping[str, object] | None
"""The values of a query's parameters: in order for `?`, by name for `$name`."""

_TYPES = "a number, a text, True, False, None, a datetime, a date, a timedelta or a Decimal"
SIGNS = (TokenType.PLACEHOLDER, TokenType.PARAMETER)
"""The tokens that a parameter begins with; in a PATTERN they mean something else."""
_NAMES = (TokenType.VAR, TokenType.NUMBER)


@dataclass(frozen=True, slots=True)
class _Parameter:
    """A parameter in a text: its tokens are `[start, end)`, `name` is empty for a `?`."""

    name: str
    start: int
    end: int
    span: Span


def substituted(tokens: Sequence[Token], params: object) -> list[Token]:
    """Return the tokens of a text with each parameter replaced by its value."""
    values = _checked(params)
    found = list(_parameters(tokens))
    if not found and not values:
        return list(tokens)
    given = _given(found, values)
    replaced: list[Token] = []
    done = 0
    for parameter, value in zip(found, given, strict=True):
        replaced += tokens[done : parameter.start]
        before = replaced[-1].text.upper() if replaced else ""
        last = tokens[parameter.end - 1]
        for token in _literal(value, before, parameter):
            place = (last.line, last.col, parameter.span.start, parameter.span.end - 1)
            replaced.append(Token(token.token_type, token.text, *place, []))
        done = parameter.end
    return [*replaced, *tokens[done:]]


def first_parameter(tokens: Sequence[Token]) -> Span | None:
    """Return where the first parameter of a text stands, None if it has none."""
    return next((each.span for each in _parameters(tokens)), None)


def _parameters(tokens: Sequence[Token]) -> Iterator[_Parameter]:
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
        yield _Parameter(name, place, end, Span(token.start, tokens[end - 1].end + 1))
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


def _checked(params: object) -> Parameters:
    plain = isinstance(params, Sequence) and not isinstance(params, str | bytes)
    if plain or params is None or isinstance(params, Mapping):
        return params  # type: ignore[return-value]
    message = f"params is a list or a dict, not {type(params).__name__}"
    hint = 'write params=[60, "a"] for ?, or params={"limit": 60} for $limit'
    raise BindError(message, hint=hint)


def _given(found: Sequence[_Parameter], values: Parameters) -> list[object]:
    """Return the value of each parameter."""
    if isinstance(values, Mapping):
        return _by_name(found, values)
    return _by_number(found, values or ())


def _by_name(found: Sequence[_Parameter], values: Mapping[str, object]) -> list[object]:
    for parameter in found:
        if not parameter.name:
            message = "? has no name, and params is a dict"
            raise BindError(message, span=parameter.span, hint="write $name, or give a list")
        if parameter.name not in values:
            message = f"no value for ${parameter.name}"
            hint = suggestion(parameter.name, [str(name) for name in values], "value")
            raise BindError(message, span=parameter.span, hint=hint)
    names = [parameter.name for parameter in found]
    for name in values:
        if name not in names:
            hint = suggestion(str(name), names, "parameter") if names else "the query has none"
            message = f"no parameter ${name} in the query"
            raise BindError(message, hint=hint)
    return [values[name] for name in names]


def _by_number(found: Sequence[_Parameter], values: Sequence[object]) -> list[object]:
    """Return the values of `?`, one after another, and of `$1`, `$2` and so on."""
    signs = {bool(parameter.name) for parameter in found}
    if len(signs) > 1:
        plain = next(parameter for parameter in found if not parameter.name)
        message = "? and $ in one query"
        raise BindError(message, span=plain.span, hint="write $name everywhere, or ? everywhere")
    numbers = []
    for place, parameter in enumerate(found, 1):
        name = parameter.name
        if name and not (name.isdecimal() and int(name) > 0):
            message = f"no value for ${name}"
            hint = f'give it by name: params={{"{name}": …}}'
            raise BindError(message, span=parameter.span, hint=hint)
        number = int(name) if name else place
        if number > len(values):
            message = f"no value for parameter {number}"
            hint = f"params has {len(values)}" if values else "give params=[…]"
            raise BindError(message, span=parameter.span, hint=hint)
        numbers.append(number)
    unused = sorted(set(range(1, len(values) + 1)) - set(numbers))
    if unused:
        message = f"params has {len(values)}, and the query does not use number {unused[0]}"
        hint = "write ? where a value goes" if not numbers else "leave it out"
        raise BindError(message, span=found[-1].span if found else None, hint=hint)
    return [values[number - 1] for number in numbers]


def _literal(given: object, before: str, parameter: _Parameter) -> Iterator[Token]:
    """Yield the tokens of a value; `before` is the word in front of its parameter."""
    value = _known(given, parameter)
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


def _known(given: object, parameter: _Parameter) -> Value:
    """Return a value as one of the types that a literal can have."""
    value = given.item() if isinstance(given, np.generic) else given
    shown = f"${parameter.name}" if parameter.name else "?"
    match value:
        case None | bool() | float() | timedelta():
            return value
        case str():
            return _encoded(value, shown, parameter)
        case int() if len(str(abs(value))) <= MAX_PRECISION:
            return value
        case Decimal() if value.is_finite() and len(f"{abs(value):f}") <= MAX_PRECISION + 1:
            return value
        case datetime():
            return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        case date():
            return value
        case int() | Decimal():
            message = f"the value of {shown} has more than {MAX_PRECISION} digits"
            raise BindError(message, span=parameter.span, hint="give a float")
    message = f"the value of {shown} is a {type(given).__name__}"
    hint = f"it has to be {_TYPES}"
    if isinstance(value, list | tuple | set | frozenset):
        hint = f"write one parameter for each value: IN ({shown}, …)"
    raise BindError(message, span=parameter.span, hint=hint)


def _encoded(value: str, shown: str, parameter: _Parameter) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        message = f"the value of {shown} has half a character"
        raise BindError(message, span=parameter.span, hint="read the text as UTF-8") from None
    return value


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
