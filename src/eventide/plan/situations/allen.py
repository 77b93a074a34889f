"""Allen's thirteen relations between periods, as bits of a mask, and how they compose.

    a  before b        ├──a──┤   ├──b──┤        b  before       bi  after
    a  meets b         ├──a──┼──b──┤            m  meets        mi  met by
    a  overlaps b      ├──a──┼──┼──b──┤         o  overlaps     oi  overlapped by
    a  starts b        ╞══a══╪──b──┤            s  starts       si  started by
    a  during b        ├─b─╞══a══╡─b─┤          d  during       di  contains
    a  finishes b      ├──b──╪══a══╡            f  finishes     fi  finished by
    a  equals b        ╞══ab══╡                 e  equals

A mask holds the relations that a pair may have; a constraint of a pattern is such a mask.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Literal

Dialect = Literal["allen", "paper"]

NAMES = (
    "before",
    "after",
    "meets",
    "met by",
    "overlaps",
    "overlapped by",
    "starts",
    "started by",
    "during",
    "contains",
    "finishes",
    "finished by",
    "equals",
)
"""The relations by the number of their bit; inverses are neighbours, `equals` is its own."""

(
    BEFORE,
    AFTER,
    MEETS,
    MET_BY,
    OVERLAPS,
    OVERLAPPED_BY,
    STARTS,
    STARTED_BY,
    DURING,
    CONTAINS,
    FINISHES,
    FINISHED_BY,
    EQUALS,
) = (1 << bit for bit in range(13))
ANY = (1 << 13) - 1
"""Every relation: no constraint at all."""

GROUPS = (
    OVERLAPS | FINISHED_BY | CONTAINS,
    STARTS | EQUALS | STARTED_BY,
    OVERLAPPED_BY | FINISHES | DURING,
)
"""The relations that two open periods may come to have: a began first, together, or last."""

SHORTHANDS: Mapping[str, int] = {
    "intersects": sum(GROUPS),
    "precedes": BEFORE | MEETS,
    "follows": AFTER | MET_BY,
}
"""Words for several relations: a and b share an instant; a ends at or before the start of b."""
WORDS = (*NAMES, *SHORTHANDS)
"""All words that may stand between two situations or periods."""

_FAR = 1 << 62
"""Later than every end that is known."""

_IN_THE_PAPER: Mapping[str, str] = {"finishes": "finished by", "finished by": "finishes"}


def mask_named(name: str, dialect: Dialect = "allen") -> int | None:
    """Return the relations of a word in lower case, one space between its parts, or None.

    In the dialect of the TPStream paper, a finishes b when a began first and both end together.

    >>> mask_named("met by") == MET_BY, mask_named("finishes", "paper") == FINISHED_BY
    (True, True)
    >>> names_of(mask_named("precedes"))
    ('before', 'meets')
    """
    if name in SHORTHANDS:
        return SHORTHANDS[name]
    meant = _IN_THE_PAPER.get(name, name) if dialect == "paper" else name
    return 1 << NAMES.index(meant) if meant in NAMES else None


def names_of(mask: int) -> tuple[str, ...]:
    """Return the names of the relations of a mask, as Allen uses them.

    >>> names_of(BEFORE | FINISHED_BY)
    ('before', 'finished by')
    """
    return tuple(name for bit, name in enumerate(NAMES) if mask >> bit & 1)


def words_of(mask: int) -> tuple[str, ...]:
    """Return the fewest words for the relations of a mask, as Allen uses them.

    >>> words_of(BEFORE | MEETS | FINISHED_BY)
    ('precedes', 'finished by')
    """
    short = tuple(word for word, meant in SHORTHANDS.items() if meant & ~mask == 0)
    for word in short:
        mask &= ~SHORTHANDS[word]
    return (*short, *names_of(mask))


def relations_of(mask: int) -> Iterator[int]:
    """Yield the single relations of a mask."""
    return (1 << bit for bit in range(13) if mask >> bit & 1)


def inverse(mask: int) -> int:
    """Return the relations of (b, a) where those of (a, b) are given.

    >>> names_of(inverse(BEFORE | DURING | EQUALS))
    ('after', 'contains', 'equals')
    """
    turned = mask & EQUALS
    for bit in range(12):
        if mask >> bit & 1:
            turned |= 1 << (bit ^ 1)
    return turned


def relation_between(a: tuple[int, int], b: tuple[int, int]) -> int:
    """Return the one relation that period a has to period b; both last for a while."""
    if a[1] < b[0]:
        return BEFORE
    if a[1] == b[0]:
        return MEETS
    if b[1] < a[0]:
        return AFTER
    if b[1] == a[0]:
        return MET_BY
    starts = (a[0] > b[0]) - (a[0] < b[0])
    ends = (a[1] > b[1]) - (a[1] < b[1])
    return {
        (-1, -1): OVERLAPS,
        (-1, 0): FINISHED_BY,
        (-1, 1): CONTAINS,
        (0, -1): STARTS,
        (0, 0): EQUALS,
        (0, 1): STARTED_BY,
        (1, -1): DURING,
        (1, 0): FINISHES,
        (1, 1): OVERLAPPED_BY,
    }[starts, ends]


def possible_relations(a: tuple[int, int | None], b: tuple[int, int | None]) -> int:
    """Return the relations that period a may have to b; the end of an open period is None.

    >>> names_of(possible_relations((0, None), (5, 7)))
    ('contains',)
    >>> names_of(possible_relations((0, None), (5, None)))
    ('overlaps', 'contains', 'finished by')
    """
    if a[1] is None and b[1] is None:
        return GROUPS[(a[0] > b[0]) - (a[0] < b[0]) + 1]
    ends = [_FAR if end is None else end for _, end in (a, b)]
    return relation_between((a[0], ends[0]), (b[0], ends[1]))


def mask_of_open(mask: int) -> int:
    """Return a mask for periods of which the first is open, with the end of time as its end.

    Two open periods then end together. They satisfy a mask if all the relations that they may come
    to have are in it.

    >>> names_of(mask_of_open(SHORTHANDS["intersects"]) & ~SHORTHANDS["intersects"])
    ()
    >>> names_of(mask_of_open(BEFORE | EQUALS | GROUPS[0]))
    ('before', 'overlaps', 'contains', 'finished by')
    """
    certain = mask & ~(FINISHED_BY | EQUALS | FINISHES)
    for group, together in zip(GROUPS, (FINISHED_BY, EQUALS, FINISHES), strict=True):
        if group & ~mask == 0:
            certain |= together
    return certain


@cache
def compositions() -> Mapping[tuple[int, int], int]:
    """Return for relations (a, b) and (b, c) the possible relations (a, c), by trying all ends."""
    periods = [(start, end) for start in range(6) for end in range(start + 1, 6)]
    found: dict[tuple[int, int], int] = {}
    for a, b, c in product(periods, repeat=3):
        pair = (relation_between(a, b), relation_between(b, c))
        found[pair] = found.get(pair, 0) | relation_between(a, c)
    return found


@cache
def compose(first: int, second: int) -> int:
    """Return the possible relations (a, c) for (a, b) in `first` and (b, c) in `second`.

    >>> names_of(compose(MEETS, MEETS)), names_of(compose(DURING, BEFORE))
    (('before',), ('before',))
    """
    table = compositions()
    composed = 0
    for one, other in product(relations_of(first), relations_of(second)):
        composed |= table[one, other]
    return composed


class ContradictionError(Exception):
    """No periods can have the required relations; `path` has three situations that show it."""

    def __init__(self, path: tuple[int, int, int]) -> None:
        super().__init__(path)
        self.path = path


def path_consistent(masks: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the relations that remain when every pair is checked through every third period.

    `masks[i][j]` has the relations allowed for (i, j), `ANY` without a constraint. Raises
    `ContradictionError` with (i, j, k): through j, no relation is left for (i, k).
    """
    count = len(masks)
    left = [list(row) for row in masks]
    changed = True
    while changed:
        changed = False
        for i, j, k in product(range(count), repeat=3):
            if len({i, j, k}) < 3:
                continue
            tighter = left[i][k] & compose(left[i][j], left[j][k])
            if tighter == left[i][k]:
                continue
            if not tighter:
                raise ContradictionError((i, j, k))
            left[i][k], left[k][i] = tighter, inverse(tighter)
            changed = True
    return left
