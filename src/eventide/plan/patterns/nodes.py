"""The plan node of row patterns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from eventide.errors import Span
from eventide.plan.expressions import Column, Named, OrderKey, rebuild_named, rebuild_order
from eventide.plan.patterns.tree import PAST_LAST_ROW, Output, Pattern, Skip, Strategy, variables_of
from eventide.plan.tree import ChangeExpression, OverOne, Plan, Row
from eventide.schema import BOOL, TS

TIMED_OUT = "timed_out"


@dataclass(frozen=True, slots=True)
class MatchRecognize(OverOne):
    """Matches of a row pattern among the rows of each key, in order.

    `order` is empty for the order of (ts, _seq). `defines` has the condition of every variable of
    the pattern, in the order of `variables`; `subsets` are names for several of them.
    """

    source: Plan
    keys: tuple[Named, ...]
    order: tuple[OrderKey, ...]
    pattern: Pattern
    defines: tuple[Named, ...]
    measures: tuple[Named, ...]
    subsets: tuple[tuple[str, tuple[str, ...]], ...] = ()
    output: Output = "one row"
    skip: Skip = PAST_LAST_ROW
    within_us: int | None = None
    strategy: Strategy = "contiguous"
    timeout_rows: bool = False
    span: Span | None = field(default=None, compare=False)

    @property
    def variables(self) -> tuple[str, ...]:
        """The pattern's variables, as the pattern spells them, in order of first occurrence."""
        return variables_of(self.pattern)

    @property
    def all_rows(self) -> bool:
        """Whether the output has the matched rows one by one."""
        return self.output != "one row"

    @property
    def row(self) -> Row:
        """The columns of the output."""
        columns = {key.name: key.type for key in self.keys}
        measures = {item.name: item.type for item in self.measures}
        if self.timeout_rows:
            measures[TIMED_OUT] = BOOL
        if not self.all_rows:
            return {**columns, **measures}
        # As in the standard: keys, columns of the order, measures, and the rest of the row.
        source = self.source.row
        ordered = [item.expression for item in self.order] or [Column(TS)]
        names = [each.name for each in ordered if isinstance(each, Column)]
        first = {name: source[name] for name in names if name not in columns}
        return {**columns, **first, **measures} | {
            name: kind for name, kind in source.items() if name not in measures
        }

    def with_expressions(self, change: ChangeExpression) -> MatchRecognize:
        """Return the node with other keys, order, conditions and measures."""
        return replace(
            self,
            keys=rebuild_named(self.keys, change),
            order=rebuild_order(self.order, change),
            defines=rebuild_named(self.defines, change),
            measures=rebuild_named(self.measures, change),
        )
