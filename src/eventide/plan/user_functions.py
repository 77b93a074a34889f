"""Functions that users write in Python: computed over whole columns, in any query.

A function is known to the process that registers it. A bound call carries its function, so that it
goes with a plan to wherever it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from eventide.errors import SchemaError
from eventide.plan.aggregates import AGGREGATES
from eventide.plan.functions import FUNCTIONS, Function
from eventide.plan.signatures import takes
from eventide.schema import DataType


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A function by its name, the types that it takes, and the one that it returns."""

    name: str
    takes: tuple[DataType, ...]
    returns: DataType
    compute: Callable[..., Any] = field(compare=False, repr=False)
    """Takes an Arrow array for each argument and returns one value for each row."""

    @property
    def known(self) -> Function:
        """What the planner knows of it. It may fail for some values."""
        count = len(self.takes)
        shown = " and ".join(map(str, self.takes)) or "nothing"
        rule = takes(*self.takes, returns=self.returns)
        return Function(self.name, shown, rule, count, count, can_fail=True)


@dataclass(slots=True)
class Registered:
    """The functions of users by name, and how often any has been registered."""

    functions: dict[str, UserFunction] = field(default_factory=dict)
    changes: int = 0
    """Plans that were made before the last one may differ."""


REGISTERED = Registered()
_registering = Lock()


def register_function(
    name: str, compute: Callable[..., Any], takes: Sequence[str | DataType], returns: str | DataType
) -> UserFunction:
    """Make a Python function known to the queries of this process.

    `compute` gets an Arrow array for each argument, all of one length, and returns as many values:
    an Arrow array, a NumPy array or a list. Nulls are passed to it. It has to depend on its
    arguments alone. `takes` and `returns` are types such as "string" or "decimal(10,2)". A function
    that is registered again takes the place of the first.

    >>> import pyarrow.compute as pc
    >>> _ = register_function("shout", pc.utf8_upper, ["string"], "string")
    >>> from eventide import sql
    >>> sql("SELECT shout(word) AS loud FROM words", words=[{"ts": 0, "word": "now"}]).rows()
    [{'loud': 'NOW'}]
    """
    called = name.lower() if isinstance(name, str) else ""
    if not called.isidentifier():
        message = f"a function cannot be called {name!r}"
        raise SchemaError(message, hint="use letters, digits and underscores")
    if called in FUNCTIONS or called in AGGREGATES:
        message = f"{called!r} is a function of Eventide"
        raise SchemaError(message, hint="give yours another name")
    if isinstance(takes, str):
        message = f"what {name} takes is a list of types, not {takes!r}"
        raise SchemaError(message, hint=f'write ["{takes}"]')
    types = tuple(map(_typed, takes))
    if not types:
        message = f"{name} takes nothing, so it is a constant"
        raise SchemaError(message, hint="use a parameter of the query: $name")
    function = UserFunction(called, types, _typed(returns), compute)
    with _registering:
        REGISTERED.functions[called] = function
        REGISTERED.changes += 1
    return function


def _typed(kind: str | DataType) -> DataType:
    return kind if isinstance(kind, DataType) else DataType.parse(kind)


def user_function(name: str) -> UserFunction | None:
    """Return the function of a user that has this name, in any case."""
    return REGISTERED.functions.get(name.lower())


def user_functions() -> tuple[UserFunction, ...]:
    """Return all functions of users."""
    return tuple(REGISTERED.functions.values())


def function_named(name: str) -> Function | None:
    """Return what is known of a function: one of Eventide's, or a user's."""
    found = FUNCTIONS.get(name)
    if found is None:
        own = user_function(name)
        found = None if own is None else own.known
    return found


def called_like_functions() -> list[str]:
    """Return the names of all functions that are called like functions."""
    own = [name for name, each in FUNCTIONS.items() if each.form == "call"]
    return [*own, *REGISTERED.functions]
