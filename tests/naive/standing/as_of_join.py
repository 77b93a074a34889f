"""The obvious, slow twin of the join as of a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.naive.standing.window_join import Life

Row = dict[str, Any]


def joined_as_of(
    left: Sequence[Life],
    right: Sequence[Life],
    keys: tuple[str, str],
    *,
    newest: bool,
    strict: bool,
    outer: bool,
) -> list[tuple[Row, int, int]]:
    """Return each left row beside what the right one held when it came; from when to when.

    With `newest` that is the last right row of its key in order of coming, which never goes;
    otherwise all that had come and not gone. With `strict` it has to have come before.
    """
    found = []
    names = [name for life in right[:1] for name in life.row]
    for life in left:
        now = life.at - 1 if strict else life.at
        key = life.row[keys[0]]
        held = [each for each in right if key is not None and each.row[keys[1]] == key]
        met = [each.row for each in held if each.at <= now and (newest or now < each.end)]
        met = met[-1:] if newest else met
        if not met and outer:
            met = [dict.fromkeys(names)]
        found += [({**life.row, **row}, life.at, life.end) for row in met]
    return found
