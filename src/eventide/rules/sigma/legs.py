"""The events of the rules that a correlation is about, in columns of the same names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eventide.rules.texts import all_of, any_of, quoted

VALUE = '"$value"'
"""The field whose different values are counted."""

Part = tuple[str, str]
"""A query that others read by its name: one of WITH."""


@dataclass(frozen=True, slots=True)
class Leg:
    """The events of one rule: the source they are in, and the columns of the group."""

    source: str
    condition: str
    keys: tuple[str, ...]
    value: str | None = None

    @property
    def place(self) -> tuple[object, ...]:
        """What legs have in common that one SELECT can read."""
        return (self.source, self.keys, self.value)

    def select(self, names: Sequence[str], condition: str, more: Sequence[str] = ()) -> str:
        """Return the SELECT of the events that have all columns of the group."""
        keys = [f"{key} AS {quoted(name)}" for key, name in zip(self.keys, names, strict=True)]
        value = [] if self.value is None else [f"{self.value} AS {VALUE}"]
        # CEL reads events with attributes.
        items = [*keys, *value, *more] or ['TRUE AS "$any"']
        known = [f"{key} IS NOT NULL" for key in self.keys]
        where = all_of([condition, *known])
        return f"SELECT ts, {', '.join(items)} FROM {self.source} WHERE {where}"


def gathered(
    legs: Sequence[Leg], names: Sequence[str], prefix: str, *, marked: bool
) -> tuple[list[Part], str]:
    """Return the events of all legs: parts, and what stands behind FROM.

    Those of one source are read once: an event that several rules select is one event. With
    `marked`, the column $1 says whether it is one of the first rule, and so on.
    """
    if len({leg.place for leg in legs}) == 1:
        marks = [f"COALESCE({leg.condition}, FALSE) AS {mark(i)}" for i, leg in enumerate(legs, 1)]
        either = str(any_of(leg.condition for leg in legs))
        return [], f"({legs[0].select(names, either, marks if marked else ())})"
    parts = []
    for place, leg in enumerate(legs, 1):
        marks = [
            f"{'TRUE' if each == place else 'FALSE'} AS {mark(each)}"
            for each in range(1, len(legs) + 1)
        ]
        select = leg.select(names, leg.condition, marks if marked else ())
        parts.append((leg_name(prefix, place), select))
    return parts, f"CEL ({' UNION '.join(name for name, _ in parts)})"


def leg_name(prefix: str, place: int) -> str:
    """Return the name of the events of a leg; no stream can have it."""
    return quoted(f"${prefix}leg{place}")


def mark(place: int) -> str:
    """Return the column that says whether an event is one of a leg."""
    return quoted(f"${place}")
