"""Windows and frames over lists of dictionaries, straight from their definitions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

Event = dict[str, Any]


def in_order(events: Iterable[Event]) -> list[Event]:
    return sorted(events, key=lambda event: (event["ts"], event["_seq"]))


def aggregate(function: str, values: list[Any]) -> Any:  # noqa: ANN401
    """`values` are those of the events in order, nulls included."""
    present = [value for value in values if value is not None]
    match function:
        case "count(*)":
            return len(values)
        case "count":
            return len(present)
        case "first":
            return values[0] if values else None
        case "last":
            return values[-1] if values else None
        case "stddev":
            return sample_deviation(present) if len(present) > 1 else None
    if not present:
        return None
    match function:
        case "sum":
            return exact_sum(present)
        case "avg":
            return exact_average(present)
        case "min":
            return min(present, key=nan_last)
        case "max":
            return max(present, key=nan_last)
    raise AssertionError(function)


def nan_last(value: Any) -> tuple[bool, Any]:  # noqa: ANN401
    return (value != value, 0 if value != value else value)  # noqa: PLR0124


def exact_sum(values: list[Any]) -> Any:  # noqa: ANN401
    if not any(isinstance(value, float) for value in values):
        return sum(values)
    if not all(map(math.isfinite, values)):
        return sum(value for value in values if not math.isfinite(value))
    return float(sum(map(Fraction, values)))


def exact_average(values: list[Any]) -> float:
    """The sum as a double, divided once."""
    return float(exact_sum(values)) / len(values)


def sample_deviation(values: list[Any]) -> float:
    if not all(map(math.isfinite, values)):
        return math.nan
    mean = sum(map(Fraction, values)) / len(values)
    squares = sum((Fraction(value) - mean) ** 2 for value in values)
    return math.sqrt(squares / (len(values) - 1))


Aggregates = Sequence[tuple[str, str, str]]
"""(name of the result, function, attribute)."""


def computed(group: Sequence[Event], aggregates: Aggregates) -> Event:
    return {
        name: aggregate(function, [event[attribute] for event in group])
        for name, function, attribute in aggregates
    }


def windows(
    events: Iterable[Event], keys: Sequence[str], size: int, slide: int, aggregates: Aggregates
) -> list[Event]:
    """One row for each window [k·slide, k·slide + size) and key with an event in it."""
    groups: dict[tuple[Any, ...], list[Event]] = {}
    for event in in_order(events):
        start = (event["ts"] - size) // slide * slide + slide
        while start <= event["ts"]:
            key = tuple(event[name] for name in keys)
            groups.setdefault((start, *key), []).append(event)
            start += slide
    return [
        {
            **dict(zip(keys, key, strict=True)),
            "window_start": start,
            "window_end": start + size,
            **computed(group, aggregates),
        }
        for (start, *key), group in groups.items()
    ]


def count_windows(
    events: Iterable[Event], keys: Sequence[str], size: int, slide: int, aggregates: Aggregates
) -> list[Event]:
    """One row for `size` events of a key from each multiple of `slide` on, if there are so many."""
    by_key: dict[tuple[Any, ...], list[Event]] = {}
    for event in in_order(events):
        by_key.setdefault(tuple(event[name] for name in keys), []).append(event)
    return [
        {
            **dict(zip(keys, key, strict=True)),
            "window_start": same_key[first]["ts"],
            "window_end": same_key[first + size - 1]["ts"],
            **computed(same_key[first : first + size], aggregates),
        }
        for key, same_key in by_key.items()
        for first in range(0, len(same_key) - size + 1, slide)
    ]


def sessions(
    events: Iterable[Event], keys: Sequence[str], gap: int, aggregates: Aggregates
) -> list[Event]:
    """One row for the events of a key that follow one another with less than a gap between them."""
    by_key: dict[tuple[Any, ...], list[list[Event]]] = {}
    for event in in_order(events):
        found = by_key.setdefault(tuple(event[name] for name in keys), [])
        if found and event["ts"] - found[-1][-1]["ts"] < gap:
            found[-1].append(event)
        else:
            found.append([event])
    return [
        {
            **dict(zip(keys, key, strict=True)),
            "window_start": session[0]["ts"],
            "window_end": session[-1]["ts"] + gap,
            **computed(session, aggregates),
        }
        for key, found in by_key.items()
        for session in found
    ]


def range_frames(
    events: Iterable[Event], keys: Sequence[str], preceding: int, aggregates: Aggregates
) -> list[Event]:
    """Every event with aggregates over [ts - preceding, ts] of its key."""

    def holds(event: Event, other: Event) -> bool:
        return bool(event["ts"] - preceding <= other["ts"] <= event["ts"])

    return framed(in_order(events), keys, holds, aggregates)


def rows_frames(
    events: Iterable[Event], keys: Sequence[str], preceding: int, aggregates: Aggregates
) -> list[Event]:
    """Every event with aggregates over itself and the `preceding` ones of its key before it."""
    ordered = in_order(events)
    ranks: dict[int, int] = {}
    counts: dict[tuple[Any, ...], int] = {}
    for event in ordered:
        key = tuple(event[name] for name in keys)
        counts[key] = counts.get(key, 0) + 1
        ranks[event["_seq"]] = counts[key]

    def holds(event: Event, other: Event) -> bool:
        return ranks[event["_seq"]] - preceding <= ranks[other["_seq"]] <= ranks[event["_seq"]]

    return framed(ordered, keys, holds, aggregates)


def framed(
    ordered: list[Event],
    keys: Sequence[str],
    holds: Callable[[Event, Event], bool],
    aggregates: Aggregates,
) -> list[Event]:
    by_key: dict[tuple[Any, ...], list[Event]] = {}
    for event in ordered:
        by_key.setdefault(tuple(event[name] for name in keys), []).append(event)
    rows = []
    for same_key in by_key.values():
        for event in same_key:
            frame = [other for other in same_key if holds(event, other)]
            rows.append({**event, **computed(frame, aggregates)})
    return rows
