"""Joins of two documents by equal values in them: what one query asks for.

blog//item->x[.//author->a] FOLLOWED BY{a = b, 1 DAY} news//item->y[.//author->b]

documents   one that fits the left pattern, and one that fits the right pattern
equal       ((a, b),): nodes with the same string value
ordered     FOLLOWED BY: the right one is newer, by at most a day
selected    ((x,), (y,)): there is one row for each tuple of nodes that these stand on
"""

from __future__ import annotations

from dataclasses import dataclass

from eventide.errors import PlanError
from eventide.plan.xml.patterns import TreePattern

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DocumentJoin:
    """All pairs of documents that fit two patterns and have equal values, within some time.

    With `ordered` the document on the right is newer than the one on the left, by at most
    `within_us`. Without, they are two different ones whose times differ by at most that.
    """

    left: TreePattern
    right: TreePattern
    equal: tuple[tuple[str, str], ...]
    """Pairs of a variable of the left pattern and one of the right pattern."""
    within_us: int
    ordered: bool = True
    selected: tuple[Names, Names] = ((), ())
    """The variables of each pattern whose nodes tell rows of two documents apart."""

    def __post_init__(self) -> None:
        if not self.equal:
            message = "a join of documents without a value that they have in common"
            raise PlanError(message, hint="write one variable = another in the braces")
        if self.within_us < int(self.ordered):
            message = "a join of documents within no time"
            raise PlanError(message, hint="write a longer time")
        lefts, rights = zip(*self.equal, strict=True)
        for pattern, names in (
            (self.left, (*lefts, *self.selected[0])),
            (self.right, (*rights, *self.selected[1])),
        ):
            unknown = sorted({*names} - {*pattern.variables})
            if unknown:
                message = f"{unknown[0]!r} is no variable of {pattern}"
                hint = (
                    f"its variables are {', '.join(pattern.variables) or 'none: write step->name'}"
                )
                raise PlanError(message, hint=hint)

    def turned(self) -> DocumentJoin:
        """Return the join with its sides exchanged, for the newer document on the left."""
        equal = tuple((right, left) for left, right in self.equal)
        selected = (self.selected[1], self.selected[0])
        return DocumentJoin(self.right, self.left, equal, self.within_us, self.ordered, selected)
