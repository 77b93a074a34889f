"""How many templates there are for a number of equal values, by writing all graphs down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations, product

Cells = tuple[tuple[int, int], ...]
Shape = tuple[int, tuple[int, ...], Cells]
"""How many nodes are on the left, the node above each, and pairs of nodes with equal values."""
# A leaf, or a node with two or more below it.
LeafTree = int | tuple["LeafTree", ...]


def shapes(equal: int, *, flat: bool = False) -> Iterator[Shape]:
    """Yield all reduced graphs with so many equal values; some are the same but for numbers."""
    for lefts in range(1, equal + 1):
        for rights in range(1, equal + 1):
            for cells in matrices(lefts, rights, equal):
                for left, right in product(trees(range(lefts)), trees(range(rights))):
                    if not flat or (is_flat(left) and is_flat(right)):
                        yield shape(left, right, cells)


def matrices(lefts: int, rights: int, ones: int) -> set[Cells]:
    """Return which leaves can be equal, each to one at least, up to the order of leaves."""
    found = set()
    for cells in combinations(list(product(range(lefts), range(rights))), ones):
        rows, columns = ({*side} for side in zip(*cells, strict=True))
        if len(rows) == lefts and len(columns) == rights:
            found.add(
                min(
                    tuple(sorted((one[row], other[column]) for row, column in cells))
                    for one in permutations(range(lefts))
                    for other in permutations(range(rights))
                )
            )
    return found


def trees(leaves: Sequence[int]) -> Iterator[LeafTree]:
    """Yield all trees with these leaves whose inner nodes have two or more below them."""
    if len(leaves) == 1:
        yield leaves[0]
    for parts in partitions(list(leaves)):
        if len(parts) > 1:
            yield from product(*(list(trees(part)) for part in parts))


def partitions(things: list[int]) -> Iterator[list[list[int]]]:
    """Yield all ways to divide things into parts."""
    if not things:
        yield []
        return
    first, *rest = things
    for count in range(len(rest) + 1):
        for chosen in combinations(rest, count):
            for others in partitions([each for each in rest if each not in chosen]):
                yield [[first, *chosen], *others]


def is_flat(tree: LeafTree) -> bool:
    """Whether all leaves are right below the root."""
    return isinstance(tree, int) or all(isinstance(each, int) for each in tree)


def shape(left: LeafTree, right: LeafTree, cells: Cells) -> Shape:
    """Return a graph of two trees, its nodes numbered from the top."""
    parents: list[int] = []

    def number(tree: LeafTree, above: int, places: dict[int, int]) -> None:
        parents.append(above)
        place = len(parents) - 1
        if isinstance(tree, int):
            places[tree] = place
        else:
            for each in tree:
                number(each, place, places)

    on_left: dict[int, int] = {}
    on_right: dict[int, int] = {}
    number(left, -1, on_left)
    lefts = len(parents)
    number(right, -1, on_right)
    equal = tuple((on_left[one], on_right[other]) for one, other in cells)
    return lefts, tuple(parents), equal
