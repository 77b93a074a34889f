"""Plan nodes of standing queries: relational ones over windows of streams, true at every instant.

A tuple is in its window from its time `at` until it expires: at <= now < exp. At one instant,
what expires goes before what arrives. The answer at an instant is that of the same query asked
once over what the windows hold then. Events of one instant count together: an answer is that
after all of them.

Columns of a window are called `alias.column`, so that those of several windows can stand side by
side; the uppermost `Project` gives them the names of the SELECT list.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as Choice

from eventide.errors import PlanError, Span
from eventide.plan.expressions import Expression, Named, NamedAggregate, OrderKey
from eventide.plan.tree import Plan, Row
from eventide.schema import BOOL, TIMESTAMP, DataType

AT = "at"
EXP = "exp"
SIGN = "sign"
LIVE = "live"
CHANGE_COLUMNS = (AT, EXP, SIGN, LIVE)
"""The columns that changes of an answer have beside its own."""
SHOWN = '"shown"'
"""The column that says until when results with a tuple are shown: internal windows do not end.

No attribute can be called so.
"""


@dataclass(frozen=True, slots=True)
class Unbounded:
    """All events; none expires."""


@dataclass(frozen=True, slots=True)
class RangeWindow:
    """`[RANGE t]`: an event for `size_us` from its time on.

    With a jump the tail of the window moves in steps: an event stays until the first multiple of
    `jump_us` at or after ts + size_us.
    """

    size_us: int
    jump_us: int | None = None

    def __post_init__(self) -> None:
        if self.size_us <= 0 or (self.jump_us is not None and self.jump_us <= 0):
            message = f"the length and the jump of a window must be positive, got {self}"
            raise PlanError(message)


@dataclass(frozen=True, slots=True)
class PeriodWindow:
    """`[TUMBLE t]`: the events of the period so far; at the next multiple of `period_us` all go."""

    period_us: int

    def __post_init__(self) -> None:
        if self.period_us <= 0:
            message = f"the period of a window must be positive, got {self.period_us} us"
            raise PlanError(message)


@dataclass(frozen=True, slots=True)
class SinceWindow:
    """`[SINCE a UNTIL b]`: the events of [since_us, until_us); none expires."""

    since_us: int
    until_us: int | None = None

    def __post_init__(self) -> None:
        if self.until_us is not None and self.until_us <= self.since_us:
            message = "a window has to begin before it ends"
            raise PlanError(message)


@dataclass(frozen=True, slots=True)
class RowsWindow:
    """`[ROWS n]`: the last `count` events in order of (ts, _seq), of each key if there are keys.

    `keys` are columns of the scan. With one row for each key it is a relation: an event replaces
    the one before, and if its column `deleted` is true it only removes it.
    """

    count: int
    keys: tuple[str, ...] = ()
    deleted: str | None = None

    def __post_init__(self) -> None:
        if self.count <= 0:
            message = f"a window has at least one row, got {self.count}"
            raise PlanError(message)
        if self.deleted is not None and self.count != 1:
            message = "only a window with one row for each key has deletions"
            raise PlanError(message)


@dataclass(frozen=True, slots=True)
class SessionWindow:
    """`[SESSION gap]`: the events of the session that goes on, of each key if there are keys.

    A session ends `gap_us` after its last event, unless an event comes before that; then all its
    events go.
    """

    gap_us: int
    keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.gap_us <= 0:
            message = f"the gap of a session must be positive, got {self.gap_us} us"
            raise PlanError(message)


StreamWindow = Unbounded | RangeWindow | PeriodWindow | SinceWindow | RowsWindow | SessionWindow


@dataclass(frozen=True, slots=True)
class Windowed(Plan):
    """What the window over a stream holds; the source is a scan.

    With `internal` it bounds what is remembered: results do not shrink when its events expire.
    """

    source: Plan
    alias: str
    window: StreamWindow
    internal: bool = False
    span: Span | None = field(default=None, compare=False)

    @property
    def row(self) -> Row:
        """The columns that come out."""
        return {f"{self.alias}.{name}": kind for name, kind in self.source.row.items()}


@dataclass(frozen=True, slots=True)
class Merge(Plan):
    """UNION ALL: the rows of all sources, which have the same columns."""

    sources: tuple[Plan, ...]

    @property
    def row(self) -> Row:
        """The columns that come out."""
        return self.sources[0].row


@dataclass(frozen=True, slots=True)
class WindowJoin(Plan):
    """Combinations of one row of each source with equal keys on which the condition is true.

    `keys[i]` are the key expressions of source i, over its own columns; all sources have as many,
    of the same types. Null is equal to nothing. The condition is over the columns of all sources,
    whose names differ.
    """

    sources: tuple[Plan, ...]
    keys: tuple[tuple[Expression, ...], ...]
    condition: Expression | None = None
    band: Band | None = None
    span: Span | None = field(default=None, compare=False)

    @property
    def row(self) -> Row:
        """The columns that come out."""
        return {name: kind for source in self.sources for name, kind in source.row.items()}


@dataclass(frozen=True, slots=True)
class Band:
    """Two sources join only where |left - right| <= width: numbers, or times in microseconds.

    Only a hint where to look: the condition of the join says the same again.
    """

    left: Expression
    right: Expression
    width: int | float


@dataclass(frozen=True, slots=True)
class OuterJoin(Plan):
    """LEFT, RIGHT and FULL JOIN: a join of two, and the rows without a partner beside nulls.

    `keeps` says of which sources such rows are kept. The rest is as in `WindowJoin`; a condition
    has what can only be asked of two rows together.
    """

    sources: tuple[Plan, ...]
    keys: tuple[tuple[Expression, ...], ...]
    keeps: tuple[bool, bool]
    condition: Expression | None = None
    band: Band | None = None
    span: Span | None = field(default=None, compare=False)

    @property
    def row(self) -> Row:
        """The columns that come out."""
        return {name: kind for source in self.sources for name, kind in source.row.items()}

    @property
    def word(self) -> str:
        """What it is called in a text: LEFT, RIGHT or FULL."""
        return {(True, False): "LEFT", (False, True): "RIGHT"}.get(self.keeps, "FULL")


@dataclass(frozen=True, slots=True)
class AsOfJoin(Plan):
    """Each row of the left source with the newest event of the right one at that row's time.

    The right source has all events of a stream (`Unbounded`), or those of a relation that is
    not retroactive (`RowsWindow` with one row for each key). `right_time` is not after `left_time`,
    or before it if `strict`. What comes later to the right changes nothing. With `outer`, a row
    without a partner comes beside nulls.
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
        """The columns that come out."""
        return {**self.left.row, **self.right.row}


@dataclass(frozen=True, slots=True)
class Distinct(Plan):
    """One row for each different row; nulls are alike."""

    source: Plan

    @property
    def row(self) -> Row:
        """The columns that come out."""
        return self.source.row


@dataclass(frozen=True, slots=True)
class Difference(Plan):
    """EXCEPT ALL: each row as often as the left source has it more often than the right one."""

    left: Plan
    right: Plan
    span: Span | None = field(default=None, compare=False)

    @property
    def row(self) -> Row:
        """The columns that come out."""
        return self.left.row


@dataclass(frozen=True, slots=True)
class Existence(Plan):
    """The left rows for which the right source has a row with equal keys; none, if `negated`.

    Null is equal to nothing: EXISTS and NOT EXISTS.
    """

    left: Plan
    right: Plan
    left_keys: tuple[Expression, ...]
    right_keys: tuple[Expression, ...]
    negated: bool
    span: Span | None = field(default=None, compare=False)

    @property
    def row(self) -> Row:
        """The columns that come out."""
        return self.left.row


@dataclass(frozen=True, slots=True)
class GroupAggregate(Plan):
    """One row for each key that has a row: keys and aggregates. Null is a key like any other.

    Without keys there is one row, and none while the source is empty.
    """

    source: Plan
    keys: tuple[Named, ...]
    aggregates: tuple[NamedAggregate, ...]
    span: Span | None = field(default=None, compare=False)

    @property
    def row(self) -> Row:
        """The columns that come out."""
        columns = {key.name: key.type for key in self.keys}
        return columns | {item.name: item.aggregate.type for item in self.aggregates}


@dataclass(frozen=True, slots=True)
class Top(Plan):
    """ORDER BY … LIMIT n: the first `count` rows. Of equal ones, those that came first.

    Which of those that came at one instant is arbitrary, but the same wherever it runs.
    """

    source: Plan
    order: tuple[OrderKey, ...]
    count: int
    span: Span | None = field(default=None, compare=False)

    @property
    def row(self) -> Row:
        """The columns that come out."""
        return self.source.row


Report = Choice["current", "istream", "dstream", "rstream"]


@dataclass(frozen=True, slots=True)
class Standing(Plan):
    """A standing query: what of its answer is wanted, and when.

    current   the answer itself; live, its changes
    istream   each row with the instant at which it came into the answer, `at`
    dstream   each row with the instant at which it left
    rstream   the whole answer at every refresh, or without `slide_us` at every instant at which
              something changed

    With `slide_us` the answer is that of the last multiple of it. What came and went between two
    refreshes is not seen; `restore` reports it at the next. `output_window` is over the istream:
    the answer is the last results, whatever becomes of the windows.
    """

    source: Plan
    report: Report = "current"
    slide_us: int | None = None
    restore: bool = False
    output_window: RangeWindow | RowsWindow | None = None
    span: Span | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.slide_us is not None and self.slide_us <= 0:
            message = f"SLIDE must be positive, got {self.slide_us} us"
            raise PlanError(message)
        if self.restore and (self.slide_us is None or self.report in ("current", "dstream")):
            message = "only ISTREAM and RSTREAM with SLIDE have anything to restore"
            raise PlanError(message)

    @property
    def row(self) -> Row:
        """The columns that come out when asked over history."""
        return {**self.reported, **self.source.row}

    @property
    def reported(self) -> dict[str, DataType]:
        """The columns in front of those of the answer."""
        if self.report == "current":
            return {}
        told = {AT: TIMESTAMP}
        return told | {LIVE: BOOL} if self.report == "rstream" and self.restore else told


StandingNode = (
    Windowed
    | Merge
    | WindowJoin
    | OuterJoin
    | AsOfJoin
    | Distinct
    | Difference
    | Existence
    | GroupAggregate
    | Top
    | Standing
)
