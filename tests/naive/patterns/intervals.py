"""Where matches can be, straight from the definitions: all candidates are tried, one by one.

A candidate has a row for each symbol with a condition. It determines the rows in which its matches
lie. `naive_ranges` is the twin of `periods_of` and `merged` together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from eventide.plan.patterns.skeleton import Skeleton

Range = tuple[int, int]
"""Places of rows, [first, end)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Rows of one sequence by their times, ascending, and on which of them each symbol can be.

    `met` has the symbols that something is asked of. `numbered` says that it is known which rows
    follow one another.
    """

    skeleton: Skeleton
    within: int
    ts: Sequence[int]
    met: Mapping[int, Sequence[bool]]
    numbered: bool = True


def candidates(asked: Asked) -> Iterator[dict[int, int]]:
    """Yield every choice of a row for each asked symbol that could be part of a match."""
    symbols = sorted(asked.met)

    def more(taken: dict[int, int]) -> Iterator[dict[int, int]]:
        if len(taken) == len(symbols):
            yield taken
            return
        symbol = symbols[len(taken)]
        for row in range(len(asked.ts)):
            # C1: what is asked holds.
            if not asked.met[symbol][row]:
                continue
            if taken:
                before, (first, *_) = symbols[len(taken) - 1], taken.values()
                # C2: all of it in time. C3: as far apart as the pattern says.
                if asked.ts[row] - asked.ts[first] > asked.within:
                    continue
                if not can_follow(asked, before, taken[before], symbol, row):
                    continue
            yield from more({**taken, symbol: row})

    return more({})


def can_follow(asked: Asked, before: int, one: int, symbol: int, other: int) -> bool:
    """Whether two rows can be those of two symbols, the first before the second."""
    if not asked.numbered:
        return asked.ts[one] <= asked.ts[other]
    if one_block(asked.skeleton, before, symbol):
        return other - one == symbol - before
    return other - one >= symbol - before


def has_room(asked: Asked, candidate: Mapping[int, int]) -> bool:
    """Whether no block would begin before the first row there is."""
    return all(
        row >= symbol - first
        for symbol, row in candidate.items()
        for first in range(symbol)
        if one_block(asked.skeleton, first, symbol)
    )


def one_block(skeleton: Skeleton, first: int, last: int) -> bool:
    """Whether no gap lies between two symbols."""
    return all(symbol.follows for symbol in skeleton.symbols[first + 1 : last + 1])


def range_of(asked: Asked, candidate: Mapping[int, int]) -> Range:
    """Return the rows in which all matches lie that have the rows of a candidate."""
    skeleton, last_symbol = asked.skeleton, len(asked.skeleton.symbols) - 1
    first, last = min(candidate), max(candidate)
    least_us = asked.ts[candidate[last]] - asked.within
    most_us = asked.ts[candidate[first]] + asked.within
    inside = [row for row, ts in enumerate(asked.ts) if least_us <= ts <= most_us]
    if asked.numbered and skeleton.begins and one_block(skeleton, 0, first):
        inside = [row for row in inside if row >= candidate[first] - first]
    if asked.numbered and skeleton.ends and one_block(skeleton, last, last_symbol):
        inside = [row for row in inside if row <= candidate[last] + last_symbol - last]
    return (inside[0], inside[-1] + 1) if inside else (0, 0)


def naive_ranges(asked: Asked) -> list[Range]:
    """Return the rows of all candidates, as ranges that share nothing, in order."""
    return joined([range_of(asked, candidate) for candidate in candidates(asked)])


def joined(ranges: Sequence[Range]) -> list[Range]:
    """Return ranges in order, those that share a place as one."""
    found = {each for each in ranges if each[0] < each[1]}
    while True:
        pair = next(
            (
                (one, other)
                for one in found
                for other in found
                if one != other and one[0] < other[1] and other[0] < one[1]
            ),
            None,
        )
        if pair is None:
            return sorted(found)
        one, other = pair
        found = found - {one, other} | {(min(one[0], other[0]), max(one[1], other[1]))}
