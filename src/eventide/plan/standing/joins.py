"""Plan nodes that join the rows of windows: all with all, as of a time, by whether there is one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

from eventide.errors import Span
from eventide.plan.check import require, require_unique
from eventide.plan.expressions import Call, Column, Expression
from eventide.plan.render import render, render_equal
from eventide.plan.standing.edges import Edge, UpdatePattern, joined, outer
from eventide.plan.tree import (
    ChangeExpression,
    EdgesBelow,
    Keys,
    Names,
    OverSeveral,
    OverTwo,
    Plan,
    Row,
    Use,
    changed_values,
    replaced,
)
from eventide.schema import INT64


@dataclass(frozen=True, slots=True)
class Band:
    """Two sources join only where |left - right| <= width: numbers, or times in microseconds.

    It is only a hint where to look: the condition of the join contains the same restriction.
    """

    left: Expression
    right: Expression
    width: int | float

    def changed(self, change: ChangeExpression) -> Band:
        """Return the band with other expressions."""
        left, right = change(self.left, Use(child=0)), change(self.right, Use(child=1))
        return replace(self, left=left, right=right)


class Joined(OverSeveral):
    """A join of sources whose columns have different names.

    `keys[i]` are the key expressions of source i, over its own columns; all sources have as many,
    of the same types. Null is equal to nothing. The condition is over the columns of all sources.
    """

    __slots__ = ()
    keeps_rows = True
    keys: tuple[Keys, ...]
    condition: Expression | None
    band: Band | None

    def with_expressions(self, change: ChangeExpression) -> Self:
        """Return the node with other keys and another condition."""
        return replaced(
            self,
            keys=_changed_keys(self.keys, change),
            condition=self.condition and change(self.condition, Use("condition", child=None)),
            band=self.band and self.band.changed(change),
        )

    @property
    def compared(self) -> tuple[Keys, ...]:
        """The keys of each source."""
        return self.keys

    def with_compared(self, keys: tuple[Keys, ...]) -> Self:
        """Return the node with other keys."""
        return replaced(self, keys=keys)

    @property
    def on(self) -> str:
        """What has to hold of rows that join, as text."""
        condition = "" if self.condition is None else f" where {render(self.condition)}"
        found = f"{render_equal(self.keys)}{condition}" or " of all with all"
        if self.band is None:
            return found
        # Where there is no key, the nearest are looked for in order.
        return f"{found}, {render(self.band.left)} near {render(self.band.right)}"

    def check(self) -> None:
        """Check the sources beside each other."""
        count = len(self.sources)
        require(count >= 2 and len(self.keys) == count, "a join of one source")
        require_unique(name for source in self.sources for name in source.row)
        require(self.band is None or count == 2, "a band between more than two sources")


class Paired(OverTwo):
    """Rows of the left source that look for rows of the right one with equal keys."""

    __slots__ = ()
    left_keys: Keys
    right_keys: Keys

    def with_expressions(self, change: ChangeExpression) -> Self:
        """Return the node with other keys."""
        return self.with_compared(_changed_keys(self.compared, change))

    @property
    def compared(self) -> tuple[Keys, ...]:
        """The keys of each source."""
        return (self.left_keys, self.right_keys)

    def with_compared(self, keys: tuple[Keys, ...]) -> Self:
        """Return the node with other keys."""
        left, right = keys
        return replaced(self, left_keys=left, right_keys=right)


def _changed_keys(keys: tuple[Keys, ...], change: ChangeExpression) -> tuple[Keys, ...]:
    """Return the changed keys of each source."""
    return tuple(changed_values(own, change, Use(child=child)) for child, own in enumerate(keys))


@dataclass(frozen=True, slots=True)
class WindowJoin(Joined):
    """Combinations of one row of each source with equal keys on which the condition is true."""

    beside = True

    sources: tuple[Plan, ...]
    keys: tuple[tuple[Expression, ...], ...]
    condition: Expression | None = None
    band: Band | None = None
    span: Span | None = field(default=None, compare=False)

    @property
    def line(self) -> str:
        """Its line in explain."""
        return f"WindowJoin{self.on}"

    @property
    def comes_with_events(self) -> bool:
        """Whether a row comes with the last of its events: if those below do."""
        return all(each.comes_with_events for each in self.sources)

    def keyed(self, keys: tuple[str, ...], carried: Row) -> Plan | None:  # noqa: ARG002 - in rows
        """Return the node with one more key in each source, or none if only the first has it."""
        if not any(keys[1:]):
            return self
        if not all(keys):
            return None
        more = (Column(key, INT64) for key in keys)
        return self.with_compared(
            tuple((*own, key) for own, key in zip(self.keys, more, strict=True))
        )

    def edge(self, below: EdgesBelow) -> Edge:
        """Return the edge of combinations."""
        return joined([below.of(each) for each in self.sources])


@dataclass(frozen=True, slots=True)
class OuterJoin(Joined):
    """LEFT, RIGHT and FULL JOIN: a join of two sources, and rows without a partner beside nulls.

    `keeps` names the sources whose rows are kept. The rest is as in `WindowJoin`; the condition has
    only what needs two rows together.
    """

    sources: tuple[Plan, ...]
    keys: tuple[tuple[Expression, ...], ...]
    keeps: tuple[bool, bool]
    condition: Expression | None = None
    band: Band | None = None
    span: Span | None = field(default=None, compare=False)

    @property
    def word(self) -> str:
        """Its name in text: LEFT, RIGHT or FULL."""
        return {(True, False): "LEFT", (False, True): "RIGHT"}.get(self.keeps, "FULL")

    @property
    def line(self) -> str:
        """Its line in explain."""
        return f"OuterJoin {self.word.lower()}{self.on}"

    @property
    def state_keys(self) -> Keys:
        """The keys as they are in its rows, also in rows without a partner."""
        left, right = self.keys
        if self.word != "FULL":
            return left if self.word == "LEFT" else right
        both = zip(left, right, strict=True)
        return tuple(Call("coalesce", pair, pair[0].type) for pair in both)

    def keys_below(self, key: Expression) -> Keys | None:
        """Return the keys that are compared."""
        kept = self.state_keys
        return tuple(own[kept.index(key)] for own in self.keys) if key in kept else None

    def edge(self, below: EdgesBelow) -> Edge:
        """Return the edge of rows that may lose their nulls."""
        kept = zip(self.sources, self.keeps, strict=True)
        return outer([below.of(each) for each, keeps in kept if keeps])


@dataclass(frozen=True, slots=True)
class AsOfJoin(Paired):
    """Each row of the left source with the newest event of the right one at that row's time.

    The right source has all events of a stream (`Unbounded`), or those of a relation that is not
    retroactive (`RowsWindow` with one row for each key). `right_time` is not after `left_time`, or
    before it if `strict`. Later events on the right change nothing. With `outer`, a row without a
    partner comes beside nulls.
    """

    left: Plan
    right: Plan
    left_keys: tuple[Expression, ...]
    right_keys: tuple[Expression, ...]
    strict: bool = False
    outer: bool = False
    span: Span | None = field(default=None, compare=False)

    @property
    def row(self) -> Row:
        """The columns of the output."""
        return {**self.left.row, **self.right.row}

    def check(self) -> None:
        """The sources share no name."""
        require_unique([*self.left.row, *self.right.row])

    @property
    def line(self) -> str:
        """Its line in explain."""
        kind = "AsOfJoin outer" if self.outer else "AsOfJoin"
        newest = "before" if self.strict else "until"
        return f"{kind}{render_equal(self.compared)}, the newest {newest} then"

    @property
    def time_use(self) -> str:
        """The part of the query that needs times."""
        return "ASOF JOIN"

    def edge(self, below: EdgesBelow) -> Edge:
        """Return the edge on the left: each row keeps its partner."""
        return below.of(self.left)


@dataclass(frozen=True, slots=True)
class Existence(Paired):
    """The left rows for which the right source has a row with equal keys; none, if `negated`.

    Null is equal to nothing: EXISTS and NOT EXISTS.
    """

    keeps_rows = True

    left: Plan
    right: Plan
    left_keys: tuple[Expression, ...]
    right_keys: tuple[Expression, ...]
    negated: bool
    span: Span | None = field(default=None, compare=False)

    def needed(self, wanted: Names) -> tuple[Names, ...]:
        """Return the wanted columns and the keys of the left rows, but the keys of the right."""
        left, right = self.read
        return wanted | left, right

    @property
    def line(self) -> str:
        """Its line in explain."""
        return f"{'NotExists' if self.negated else 'Exists'}{render_equal(self.compared)}"

    def edge(self, below: EdgesBelow) -> Edge:
        """Rows may go at any time, and come back."""
        return Edge(UpdatePattern.STRICT, below.of(self.left).lifetime_us)
