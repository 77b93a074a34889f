"""`--param name=value`: the values of parameters in a query."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import click

from eventide.cli.app import ASKED_WRONGLY, Failure

Value = str | bool | int | float | Decimal | datetime | None

_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}

parameter_option = click.option(
    "--param",
    "given",
    multiple=True,
    metavar="NAME=VALUE",
    help="The value of $NAME in the query; 1=VALUE is that of the first ?. May be repeated.",
)


def values_of(given: tuple[str, ...]) -> dict[str, Value] | list[Value] | None:
    """Return the values of parameters: by name, or in order if the names are numbers.

    >>> values_of(("limit=130", "car='7'"))
    {'limit': 130, 'car': '7'}
    >>> values_of(("2=true", "1=1.5"))
    [Decimal('1.5'), True]
    """
    found: dict[str, Value] = {}
    for each in given:
        name, equals, text = each.partition("=")
        name = name.strip().removeprefix("$")
        if not equals or not (name.isidentifier() or name.isdecimal()) or name in found:
            problem = f"--param {each} is not NAME=VALUE"
            if name in found:
                problem = f"--param {name} is given twice"
            problem = f"{problem}\nhint: write --param limit=130, once for each parameter"
            raise Failure(problem, ASKED_WRONGLY)
        found[name] = value_of(text)
    numbers = [str(number) for number in range(1, len(found) + 1)]
    if found and sorted(found) == sorted(numbers):
        return [found[number] for number in numbers]
    return found or None


def value_of(text: str) -> Value:
    """Return a value with the type that SQL would give it; what is no other value is text.

    >>> value_of("130"), value_of("1e3"), value_of("NULL"), value_of("a b"), value_of("'130'")
    (130, 1000.0, None, 'a b', '130')
    """
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if text.lstrip("+-")[:1].isdigit():
        return _number_or_time(text)
    return text


def _number_or_time(text: str) -> Value:
    plain = text.isascii() and "_" not in text
    for kind in (int, float if "e" in text.lower() else Decimal, datetime.fromisoformat):
        try:
            value = kind(text) if plain else text
        except (ValueError, ArithmeticError):
            continue
        assert isinstance(value, str | int | float | Decimal | datetime)
        if isinstance(value, datetime) and value.tzinfo is not None:
            value = value.astimezone(UTC).replace(tzinfo=None)
        return value
    return text
