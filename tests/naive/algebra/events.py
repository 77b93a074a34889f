"""The event algebra as sets are written down: events, and what makes new ones of them.

A stream is a bag of events, in no order: a list, of which only the content counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from eventide.schema import START_TS, TS

Row = Mapping[str, Any]
Condition = Callable[[Row], bool | None]
"""What may hold for an event; it holds if it is true, neither false nor unknown."""
Value = Callable[[Row], Any]
MOST = 200


class TooMuch(Exception):  # noqa: N818
    """There are more results than are worth computing. It says nothing about them."""


@dataclass(frozen=True)
class Event:
    """⟨attributes; start, end⟩: what happened from `start` to `end`, and was certain then."""

    values: tuple[tuple[str, Any], ...]
    start: int
    end: int

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes without the times."""
        return dict(self.values)

    @property
    def row(self) -> Row:
        """The attributes and the times."""
        return {**self.attributes, START_TS: self.start, TS: self.end}

    def of(self, attributes: Row) -> Event:
        """An event of the same period with other attributes."""
        return event(self.start, self.end, attributes)


Bag = list[Event]


def event(start: int, end: int, attributes: Row) -> Event:
    assert start <= end
    return Event(tuple(sorted(attributes.items())), start, end)


def at(time: int, **attributes: Any) -> Event:  # noqa: ANN401
    """An event of one instant."""
    return event(time, time, attributes)


def length(row: Row) -> int:
    """DUR: how long an event is."""
    return row[TS] - row[START_TS]  # type: ignore[no-any-return]


def always(_: Row) -> bool:
    return True


def bag(events: Iterable[Event]) -> Counter[str]:
    """The content of a stream, as text: so 1, 1.0 and True differ, and NaN equals itself."""
    return Counter(map(str, events))


def holds(condition: Condition, found: Event) -> bool:
    return condition(found.row) is True


# Of one stream


def select(condition: Condition, events: Bag) -> Bag:
    return [each for each in events if holds(condition, each)]


def project(names: Iterable[str], events: Bag) -> Bag:
    kept = set(names)
    return [
        each.of({name: value for name, value in each.values if name in kept}) for each in events
    ]


def rename(names: Mapping[str, str], events: Bag) -> Bag:
    assert len({*names.values()}) == len(names), "renaming is one to one"
    return [
        each.of({names.get(name, name): value for name, value in each.values}) for each in events
    ]


def introduce(values: Mapping[str, Value], events: Bag) -> Bag:
    """Each event with computed attributes; all are computed from what was there before."""
    return [
        each.of({**each.attributes, **{name: value(each.row) for name, value in values.items()}})
        for each in events
    ]


def at_instants(total: Callable[[list[Row]], Row], events: Bag) -> Bag:
    """β: one event for all that end at one instant."""
    return [
        event(now, now, total([each.attributes for each in events if each.end == now]))
        for now in sorted({each.end for each in events})
    ]


# Of two streams


def union(*streams: Bag) -> Bag:
    return [each for events in streams for each in events]


def joined(one: Event, other: Event) -> Event:
    """One event and another after it: where both have an attribute, it is the later one's."""
    assert one.end < other.start
    return event(one.start, other.end, {**one.attributes, **other.attributes})


def first_to_end(events: Bag) -> Bag:
    """Of some events, those that end first: several if they do so at one instant."""
    soonest = min((each.end for each in events), default=None)
    return [each for each in events if each.end == soonest]


def seq(left: Bag, right: Bag, condition: Condition = always) -> Bag:
    """NEXT: each left event with the first right ones to end of those that may follow it."""
    return limited(joined(one, x) for one in left for x in following(one, right, condition))


def limited(events: Iterable[Event]) -> Bag:
    found = list(islice(events, MOST + 1))
    if len(found) > MOST:
        raise TooMuch
    return found


def following(one: Event, right: Bag, condition: Condition) -> Bag:
    return first_to_end(
        [x for x in right if one.end < x.start and holds(condition, joined(one, x))]
    )


def identity(events: Bag) -> Bag:
    return events


def mu(
    left: Bag, right: Bag, condition: Condition = always, chain: Callable[[Bag], Bag] = identity
) -> Bag:
    """FOLD: chains of right events behind each left one, as long as `chain` lets each through.

    `condition` and `chain` see `A` of the newest event, `A.last` of the one before it, and
    `A.first` of the left one. `A.last` is not in the results.
    """
    common = sorted({name for each in right for name, _ in each.values})
    found, longest = Bag(), [started(each, common) for each in left]
    while longest:
        longest = limited(
            each
            for instance in longest
            for x in following(remembered(instance, common), right, condition)
            for each in forgotten(chain([joined(remembered(instance, common), x)]), common)
        )
        found += longest
    return found


def started(one: Event, common: Iterable[str]) -> Event:
    """I₀: a left event whose attributes that the right ones have as well are also its first."""
    own = one.attributes
    assert own.keys() >= {*common}, "FOLD takes a left stream with all attributes of the right one"
    return one.of({**own, **{f"{name}.first": own[name] for name in common}})


def remembered(instance: Event, common: Iterable[str]) -> Event:
    (found,) = rename({name: f"{name}.last" for name in common}, [instance])
    return found


def forgotten(events: Bag, common: Iterable[str]) -> Bag:
    last = {f"{name}.last" for name in common}
    return [
        each.of({name: value for name, value in each.values if name not in last}) for each in events
    ]
