"""The plans of texts that were seen before.

A plan depends on nothing but what it was made of: the text, the values of its parameters, the
schemas of all streams, the named queries and the functions of users. So a plan is found again by
these, and is never out of date.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from threading import Lock

from eventide.plan.named import NamedQuery
from eventide.plan.tree import Plan
from eventide.plan.user_functions import REGISTERED
from eventide.schema import Schema

MOST_PLANS = 256
LONGEST_TEXT = 10_000
"""Longer texts are planned each time."""
PLAIN_TYPES = (str, bool, int, float, Decimal, date, timedelta, type(None))
"""Types whose values are equal if they are written alike; a subclass may write what it likes."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a plan depends on beside the text and its parameters."""

    catalog: Mapping[str, Schema]
    indexed: frozenset[str]
    named: Mapping[str, NamedQuery]
    functions: int
    """How often users' functions have been registered."""

    @classmethod
    def of(
        cls,
        catalog: Mapping[str, Schema],
        indexed: Collection[str],
        named: Mapping[str, NamedQuery],
    ) -> Surroundings:
        """Return surroundings that do not change when the mappings do."""
        return cls(dict(catalog), frozenset(indexed), dict(named), REGISTERED.changes)


class SeenPlans:
    """Plans by text and parameters; the one that was not used for longest is forgotten."""

    def __init__(self, most: int = MOST_PLANS) -> None:
        self.most = most
        self.plans: OrderedDict[Hashable, tuple[Surroundings, Plan]] = OrderedDict()
        self.changing = Lock()

    def find(self, key: Hashable, surroundings: Surroundings) -> Plan | None:
        """Return the plan that was made in the same surroundings, if it is known."""
        with self.changing:
            found = self.plans.get(key)
            if found is None or found[0] != surroundings:
                return None
            self.plans.move_to_end(key)
            return found[1]

    def add(self, key: Hashable, surroundings: Surroundings, plan: Plan) -> None:
        """Remember a plan, instead of one that was made in other surroundings."""
        with self.changing:
            self.plans[key] = (surroundings, plan)
            self.plans.move_to_end(key)
            if len(self.plans) > self.most:
                self.plans.popitem(last=False)


def key_of(text: str, params: object) -> Hashable | None:
    """Return what tells a text with parameters from others, None if it is not remembered.

    Values are told apart as they are written: `1` and `1.0` are equal, and so are `0.0` and `-0.0`,
    but not the same to a query.
    """
    if len(text) > LONGEST_TEXT:
        return None
    if params is None:
        return text
    if isinstance(params, dict):
        names, values = tuple(params), list(params.values())
    elif isinstance(params, list | tuple):
        names, values = (), list(params)
    else:
        return None
    if not all(map(is_plain, values)) or not all(type(name) is str for name in names):
        return None
    written = tuple((type(value), repr(value)) for value in values)
    if sum(len(each) for _, each in written) > LONGEST_TEXT:
        return None
    return (text, names, written)


def is_plain(value: object) -> bool:
    """Whether a value is known by its type and how it is written."""
    return type(value) in PLAIN_TYPES or (type(value) is datetime and value.tzinfo in (None, UTC))
