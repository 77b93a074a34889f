"""The plan node for the witnesses of a pattern in the documents of a stream."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from eventide.errors import Span
from eventide.plan.check import require, require_columns, require_unique
from eventide.plan.events.timed import ordered_columns
from eventide.plan.expressions import Column
from eventide.plan.standing.edges import Edge
from eventide.plan.tree import EdgesBelow, Names, OverOne, Row, Timed
from eventide.plan.tree import Plan as PlanNode
from eventide.schema import BINARY, DOCUMENT, STRING, TIMESTAMP, TS

if TYPE_CHECKING:
    from eventide.plan.xml.patterns import TreePattern


@dataclass(frozen=True, slots=True)
class Witnesses(OverOne):
    """One row for each witness of a pattern in a document, at the time of the document.

    `columns` are the variables whose string values are wanted. Witnesses are distinct tuples of
    nodes, so rows can be equal.
    """

    is_stream = True
    reads_time = True
    passes = False
    rows_apart = True

    source: PlanNode
    pattern: TreePattern
    columns: tuple[str, ...]
    span: Span | None = field(default=None, compare=False)

    @property
    def row(self) -> Row:
        """The columns of the output."""
        return {TS: TIMESTAMP, **dict.fromkeys(self.columns, STRING)}

    @property
    def in_order(self) -> bool:
        """Whether rows come in order of (ts, _seq): of `ts` alone."""
        return False

    def needed(self, wanted: Names) -> tuple[Names, ...]:  # noqa: ARG002 - a document as a whole
        """Return the documents and their times."""
        return (frozenset({TS, DOCUMENT}),)

    def only(self, wanted: Names) -> Witnesses:
        """Return the node without string values that nothing above wants."""
        return replace(self, columns=tuple(name for name in self.columns if name in wanted))

    def check(self) -> None:
        """The source has documents, and the columns are variables."""
        require_columns(self, self.source.row, TS, DOCUMENT)
        require(self.source.row[DOCUMENT] == BINARY, "documents that are no bytes")
        require_unique([TS, *self.pattern.variables])
        require({*self.columns} <= {*self.pattern.variables}, "columns that are no variables")

    @property
    def state_keys(self) -> None:
        """No state."""
        return None

    @property
    def reach_us(self) -> int:
        """No state."""
        return 0

    @property
    def comes_with_events(self) -> bool:
        """Whether a row comes with the last of its events: if those below do."""
        return self.source.comes_with_events

    def timed(self) -> Timed:
        """Return the node: its rows are events."""
        time = Column(TS, TIMESTAMP)
        return Timed(self, time, time, ordered_columns(self, *self.columns))

    def edge(self, below: EdgesBelow) -> Edge:
        """Return the edge of the source: the witnesses of a document come and go with it."""
        return below.of(self.source)

    @property
    def line(self) -> str:
        """Its line in explain."""
        return f"Witnesses {self.pattern}"
