"""Parameters: `?` and `$name` in a query, whose values are given beside its text.

A value is never read as text of the query, and it has the type that it has in Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np

from eventide.errors import BindError, Span
from eventide.plan.bind import suggestion
from eventide.plan.types import MAX_PRECISION

Value = str | bool | int | float | Decimal | date | timedelta | None
Parameters = Sequence[object] | Mapping[str, object] | None
"""The values of a query's parameters: in order for `?`, by name for `$name`."""

_TYPES = "a number, a text, True, False, None, a datetime, a date, a timedelta or a Decimal"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter in a text; `name` is empty for a `?`."""

    name: str
    span: Span


def assigned(found: Sequence[Parameter], params: object) -> dict[int, object]:
    """Return the values of the parameters of a text, by the places where they begin."""
    values = _checked(params)
    if not found and not values:
        return {}
    in_order = sorted(found, key=lambda each: each.span.start)
    given = _given(in_order, values)
    return {each.span.start: value for each, value in zip(in_order, given, strict=True)}


def _checked(params: object) -> Parameters:
    plain = isinstance(params, Sequence) and not isinstance(params, str | bytes)
    if plain or params is None or isinstance(params, Mapping):
        return params  # type: ignore[return-value]
    message = f"params is a list or a dict, not {type(params).__name__}"
    hint = 'write params=[60, "a"] for ?, or params={"limit": 60} for $limit'
    raise BindError(message, hint=hint)


def _given(found: Sequence[Parameter], values: Parameters) -> list[object]:
    """Return the value of each parameter."""
    if isinstance(values, Mapping):
        return _by_name(found, values)
    return _by_number(found, values or ())


def _by_name(found: Sequence[Parameter], values: Mapping[str, object]) -> list[object]:
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


def _by_number(found: Sequence[Parameter], values: Sequence[object]) -> list[object]:
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


def known_value(given: object, parameter: Parameter) -> Value:
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


def _encoded(value: str, shown: str, parameter: Parameter) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        message = f"the value of {shown} has half a character"
        raise BindError(message, span=parameter.span, hint="read the text as UTF-8") from None
    return value
