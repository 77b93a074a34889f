"""Frequent values of groups the obvious way: Golab's Algorithm 6 over lists of tuples, fixed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tests.naive.standing.groups import Tuple, in_order, plain


@dataclass(frozen=True)
class FrequentValue:
    """A frequent value, the bounds of its count, and how often it really came."""

    value: Any
    lower: int
    upper: int
    exactly: int


def exact_counts(members: Sequence[Tuple], column: str) -> Counter[Any]:
    return Counter(
        plain(each.values[column]) for each in members if each.values[column] is not None
    )


def frequent(
    members: Sequence[Tuple], column: str, wanted: Fraction | int, kept: int
) -> list[FrequentValue]:
    """Return the frequent values of the tuples of a group that live at an instant.

    Those that come and go together are a pane: it lists its most frequent values, and misses each
    other one at most as often as the first of these came.
    """
    panes: dict[tuple[int, int], list[Tuple]] = {}
    for each in members:
        panes.setdefault((each.at, each.exp), []).append(each)
    lower: Counter[Any] = Counter()
    missed, listing = 0, Counter[Any]()
    for pane in panes.values():
        ranked = sorted(
            exact_counts(pane, column).items(), key=lambda item: (-item[1], _order(item[0]))
        )
        left_out = ranked[kept][1] if len(ranked) > kept else 0
        missed += left_out
        for value, count in ranked[:kept]:
            lower[value] += count
            listing[value] += left_out
    exactly = exact_counts(members, column)
    total = sum(exactly.values())
    ranked = sorted(lower.items(), key=lambda item: (-item[1], _order(item[0])))
    if isinstance(wanted, int):
        ranked = ranked[:wanted]
    else:
        ranked = [(value, count) for value, count in ranked if count > wanted * total]
    return [
        FrequentValue(value, count, count + missed - listing[value], exactly[value])
        for value, count in ranked
    ]


def _order(value: Any) -> Any:  # noqa: ANN401
    return (1, 0.0) if value == "NaN" else in_order(value)
