"""The plan node of row patterns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from eventide.errors import Span
from eventide.plan.check import (
    require,
    require_local,
    require_type,
)
from eventide.plan.events.timed import fresh
from eventide.plan.expressions import (
    ALWAYS,
    At,
    Call,
    Column,
    Expression,
    MatchAggregate,
    MatchNumber,
    Named,
    NamedAggregate,
    OrderKey,
    rebuild,
    walk,
)
from eventide.plan.patterns.tree import (
    PAST_LAST_ROW,
    Output,
    Pattern,
    Skip,
    Strategy,
    Variable,
    can_be_empty,
    render_pattern,
    skips_surely,
    variables_of,
)
from eventide.plan.render import render, render_computed, render_items, render_order
from eventide.plan.times import format_duration
from eventide.plan.tree import (
    ChangeExpression,
    Names,
    OverKeys,
    Plan,
    Row,
    Timed,
    Use,
    changed_items,
    changed_order,
    columns_named,
)
from eventide.schema import BOOL, INT64, TIMESTAMP, TS

TIMED_OUT = "timed_out"
_DEFINE, _MEASURE = Use("condition", local=False), Use("item", local=False)


@dataclass(frozen=True, slots=True)
class MatchRecognize(OverKeys):
    """Matches of a row pattern among the rows of each key, in order.

    `order` is empty for the order of (ts, _seq). `defines` has the condition of every variable of
    the pattern, in the order of `variables`; `subsets` are names for several of them.
    """

    reads_time = True

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

    def keyed(self, keys: tuple[str, ...], carried: Row) -> Plan | None:
        """Return the node with more keys, unless a match may have no row to skip to."""
        if not skips_surely(self.pattern, self.skip):
            return None
        return OverKeys.keyed(self, keys, carried)

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
            keys=changed_items(self.keys, change),
            order=changed_order(self.order, change),
            defines=changed_items(self.defines, change, _DEFINE),
            measures=changed_items(self.measures, change, _MEASURE),
        )

    @property
    def computed(self) -> tuple[Named | NamedAggregate, ...]:
        """The columns that the node computes: keys and measures."""
        return (*self.keys, *self.measures)

    def check(self) -> None:
        """Each variable has a condition, and expressions name no others."""
        row = self.source.row
        defined = tuple(item.name for item in self.defines)
        require(defined == self.variables, f"conditions of {defined}, variables {self.variables}")
        known = {*self.variables, *(name for name, _ in self.subsets), None}
        for item in (*self.defines, *self.measures):
            for part in walk(item.expression):
                if isinstance(part, At | MatchAggregate):
                    require(part.variable in known, f"no pattern variable {part.variable!r}")
                match part:
                    case At(argument=argument):
                        _check_in_match(argument, row)
                    case MatchAggregate():
                        require_type(part)
                        for inner in part.plain.parts:
                            _check_in_match(inner, row, numbered=True)
                    case Call():
                        require_type(part)

    def needed(self, wanted: Names) -> tuple[Names, ...]:
        """Return the columns that expressions read, the time, and of matched rows the wanted."""
        shown = wanted if self.all_rows else frozenset[str]()
        return (shown | self.read[0] | {TS},)

    def only(self, wanted: Names) -> MatchRecognize:
        """Return the node with fewer measures, but one: matches without columns are not counted."""
        kept = tuple(item for item in self.measures if item.name in wanted)
        return replace(self, measures=kept or self.measures[:1])

    @property
    def line(self) -> str:
        """Its line in explain."""
        parts = [f"by {render_items(self.keys)}"] if self.keys else []
        parts += [f"in order of {render_order(self.order)}"] if self.order else []
        pattern = f"({render_pattern(self.pattern)})"
        if self.within_us is not None:
            pattern += f" within {format_duration(self.within_us)}"
        if self.strategy != "contiguous":
            pattern += f" {self.strategy}"
        parts.append(pattern)
        skip = f"skip {'' if self.skip.to == 'past last row' else 'to '}{self.skip.to}"
        parts.append(f"{skip} {self.skip.variable}" if self.skip.variable else skip)
        parts.append(f"all rows, {self.output}" if self.all_rows else self.output)
        if self.timeout_rows:
            parts.append("timeout rows")
        # Of one row per match everything is final: to say so would only be noise.
        shown = self.measures if self.all_rows else map(_unmarked, self.measures)
        return f"MatchRecognize {', '.join(parts)}{render_computed(shown)}"

    @property
    def details(self) -> tuple[str, ...]:
        """The conditions of the variables."""
        return tuple(
            f"{item.name}: any row"
            if item.expression == ALWAYS
            else f"{item.name} AS {render(item.expression)}"
            for item in self.defines
        )

    @property
    def time_use(self) -> str | None:
        """The part of the query that needs times."""
        return None if self.within_us is None else "WITHIN"

    def timed(self) -> Timed:
        """Return the matches with their times and their order as hidden measures.

        Of one key, a start row has one match at most, so matches are in the order of their start
        rows, except where every match is wanted: there they are numbered.
        """
        below = self.source.timed()
        if self.all_rows and isinstance(self.pattern, Variable):
            (condition,) = self.defines
            if condition.expression == ALWAYS:
                # Every row is a match of its own, so they are in the order of the rows.
                return replace(below, plan=replace(self, source=below.plan))
        taken = list(self.row)
        hidden: list[Named] = []

        def measured(expression: Expression) -> Column:
            name = fresh("_of_match", [*taken, *(item.name for item in hidden)])
            hidden.append(Named(name, expression))
            return Column(name, expression.type)

        started = At(below.ts, edge="start")
        began: Expression = measured(started)
        ts: Expression = below.ts
        if self.all_rows:
            # A row in no match is its own beginning.
            began = Call("coalesce", (began, below.ts), TIMESTAMP)
        else:
            ts = At(below.ts, edge="last", final=True)
            if can_be_empty(self.pattern):
                ts = Call("coalesce", (ts, started), TIMESTAMP)
            ts = measured(ts)
        parts: list[Expression] = [began, *columns_named(self, *(key.name for key in self.keys))]
        parts += [measured(At(part, edge="start")) for part in below.order]
        if self.strategy == "skip_till_any":
            parts.append(measured(MatchNumber()))
        if self.all_rows:
            parts.append(measured(MatchAggregate("count", None, type=INT64)))
            parts += below.order
        node = replace(self, source=below.plan, measures=(*self.measures, *hidden))
        return Timed(node, ts, began, tuple(parts))


def _check_in_match(expression: Expression, row: Row, *, numbered: bool = False) -> None:
    """Check an expression over one row of a match, where only its variable is known too."""
    for part in walk(expression):
        nested = isinstance(part, At | MatchAggregate)
        nested = nested or (isinstance(part, MatchNumber) and not numbered)
        require(not nested, f"{type(part).__name__} inside another")
        if isinstance(part, Column):
            require_local(part, row)


def _unmarked(measure: Named) -> Named:
    """Return a measure without the mark FINAL."""

    def changed(expression: Expression) -> Expression:
        if isinstance(expression, At | MatchAggregate):
            return replace(expression, final=False)
        return rebuild(expression, changed)

    return Named(measure.name, changed(measure.expression))
