"""What remains of the rows of each key, one key after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Standing(NamedTuple):
    """The times of a key's rows, and where it stands among them."""

    ts: Sequence[int]
    begin: int
    known: int
    whole: bool
    number: int


class Rest(NamedTuple):
    """What remains of a key; rows are those of the key."""

    key: int
    rows: list[int]
    begin: int
    seen: int
    number: int
    whole: bool
    due: int | None


def naive_rest(
    keys: Sequence[Standing],
    back: int,
    keeps_keys: bool,
    idle: bool,
    within: int | None,
    watermark: int,
) -> Iterator[Rest]:
    """Yield what remains of keys: the rows from `back` before the first start row on."""
    for number, key in enumerate(keys):
        first = max(0, min(key.begin, len(key.ts)) - back)
        rows = list(range(first, len(key.ts)))
        if not rows and not keeps_keys:
            if idle:
                # As if it had never come.
                yield Rest(number, [], 0, 0, 0, True, None)
            continue
        due = None
        if within is not None:
            waiting = [ts + within for ts in key.ts[key.begin :] if ts + within >= watermark]
            due = min(waiting, default=None)
        begin = min(key.begin, len(key.ts)) - first
        whole = key.whole and first == 0
        yield Rest(number, rows, begin, key.known - first, key.number, whole, due)
