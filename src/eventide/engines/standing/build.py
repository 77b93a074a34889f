"""A standing plan becomes a tree of operators; the operator of a node depends on its edges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from eventide.engines.standing.options import DEFAULT, StandingOptions
from eventide.errors import PlanError
from eventide.operators.align_rows import AlignRows
from eventide.operators.operator import Operator
from eventide.operators.standing.answer.report import Reporter
from eventide.operators.standing.answer.top import FirstRows
from eventide.operators.standing.groups.choice import group_operator
from eventide.operators.standing.groups.group import AggregateGroups
from eventide.operators.standing.groups.recomputed import RecomputedGroups
from eventide.operators.standing.groups.slides import AggregateSlides
from eventide.operators.standing.joins.as_of import JoinAsOf
from eventide.operators.standing.joins.join import JoinSide, JoinWindows
from eventide.operators.standing.retime import RetimeTuples
from eventide.operators.standing.select import NumberTuples, ProjectTuples, SelectTuples
from eventide.operators.standing.sets.difference import DifferenceOperator
from eventide.operators.standing.sets.distinct import Form, distinct_operator
from eventide.operators.standing.sets.existence import ExistenceOperator
from eventide.operators.standing.sets.merge import MergeOperator
from eventide.operators.standing.windows.choice import window_operator
from eventide.operators.tree import TreeBuilder
from eventide.plan.expressions import Column, Literal, Named
from eventide.plan.nodes import Filter, Project, Scan
from eventide.plan.standing.edges import Circumstances, Edge
from eventide.plan.standing.execution import Execution
from eventide.plan.standing.joins import AsOfJoin, Existence, OuterJoin, WindowJoin
from eventide.plan.standing.nodes import (
    ANSWER_EXP,
    Difference,
    Distinct,
    GroupAggregate,
    Merge,
    Standing,
    Top,
)
from eventide.plan.standing.update_patterns import pattern_of, windows_of
from eventide.plan.standing.windows import RowsWindow, Unbounded, Windowed
from eventide.plan.tree import Plan, Row
from eventide.schema import INT64, SEQ, TIMESTAMP, TS

_NUMBERS = ("_left", "_right")
"""The columns with the ids of the rows that an outer join puts together."""

AddEvents = Callable[[TreeBuilder, Plan], int]
"""Places the operators of a plan whose rows are events, with `_seq`; returns the uppermost."""


def add_standing(
    builder: TreeBuilder,
    plan: Standing,
    add_events: AddEvents,
    options: StandingOptions = DEFAULT,
    *,
    inside: bool = False,
) -> int:
    """Place the operators of a standing query, the last of which reports its answer.

    If it stands `inside` another query, or reads derived events, its windows wait for each other:
    not all of its inputs may be equally far.
    """
    windows = windows_of(plan)
    waits = inside or not all(isinstance(each.source, Scan) for each in windows)
    before = len(builder.leaves)
    sources = [_source(builder, each, add_events) for each in windows]
    if waits:
        # When the events end, time stops at the newest of all, stored or derived; see `share_end`.
        leaves = range(-len(builder.leaves), -before)
        sources = [
            builder.place(
                AlignRows(event_schema(each)),
                each,
                (own, *others_of([*sources, *leaves], own)),
                name=f"events {each.alias}",
            )
            for each, own in zip(windows, sources, strict=True)
        ]
    internal = [window.internal for window in windows]
    all_internal = all(internal) or plan.output_window is not None
    answer_exp = any(internal) and not all_internal
    circumstances = Circumstances.of(plan, kept=True)
    within = _Inside(builder, options.execution, answer_exp, sources)
    number = within.add(plan.source, circumstances)
    reporter = Reporter(
        _schema(plan.source),
        pattern_of(plan.source, circumstances),
        plan.report,
        plan.slide_us,
        plan.restore,
        plan.output_window,
        all_internal,
        answer_exp,
        options.execution,
        options.keep(plan) and not inside,
        options.partitions,
        is_settled(plan.source)
        and within.ends_in(AggregateGroups, AggregateSlides, RecomputedGroups),
    )
    return builder.place(reporter, plan, (number,), name="answer", ends=waits)


def _source(builder: TreeBuilder, window: Windowed, add_events: AddEvents) -> int:
    """Place what a window reads."""
    if not isinstance(window.source, Scan):
        return add_events(builder, window.source)
    relation = isinstance(window.window, RowsWindow) and window.window.deleted is not None
    return builder.leaf(window.source, event_schema(window), relation=relation)


def share_end(builder: TreeBuilder) -> None:
    """Let all standing queries inside a query end at one instant: the newest event below any.

    Over history they do; live they share a clock, and should stop where it would have come to.
    """
    aligned = [
        (place, each)
        for place, each in enumerate(builder.placed)
        if isinstance(each.operator, AlignRows)
    ]
    leaves = [number for _, each in aligned for number in each.inputs if number < 0]
    for place, each in aligned:
        own, *others = each.inputs
        inputs = (own, *others_of([*others, *leaves], own))
        builder.placed[place] = replace(each, inputs=inputs)


def others_of(numbers: Sequence[int], own: int) -> tuple[int, ...]:
    """Return all numbers but one's own, each once."""
    return tuple(dict.fromkeys(each for each in numbers if each != own))


def is_settled(plan: Plan) -> bool:
    """Whether each row belongs to one group, and two consecutive rows of a group always differ."""
    match plan:
        case GroupAggregate():
            return True
        case Filter(source=source):
            return is_settled(source)
        case Project(source=source, items=items):
            columns = {each.expression for each in items if isinstance(each.expression, Column)}
            return is_settled(source) and {each.name for each in columns} >= source.row.keys()
    return False


def event_schema(leaf: Windowed) -> pa.Schema:
    """Return the columns of a window's events: time, place in order of arrival, and the scan's."""
    columns = {TS: TIMESTAMP, SEQ: INT64} | dict(leaf.source.row)
    return pa.schema([(name, kind.arrow) for name, kind in columns.items()])


def _schema(plan: Plan) -> pa.Schema:
    return pa.schema([(name, kind.arrow) for name, kind in plan.row.items()])


def _beside_nulls(plan: OuterJoin, known: Row) -> ProjectTuples:
    """Return what makes rows of an outer join of rows with some of its columns."""
    items = tuple(
        Named(name, Column(name, kind) if name in known else Literal(None, kind))
        for name, kind in plan.row.items()
    )
    return ProjectTuples(items, _schema(plan))


@dataclass
class _Inside:
    """Places the operators inside a standing query."""

    builder: TreeBuilder
    execution: Execution
    answer_exp: bool
    sources: list[int]
    """What the windows read, left to right."""
    windows: int = 0
    """The number of windows so far."""

    def ends_in(self, *kinds: type) -> bool:
        """Whether the last operator that does more than choose or compute is of one of these."""
        passing = (SelectTuples, ProjectTuples)
        placed = reversed(self.builder.placed)
        last = (each for each in placed if not isinstance(each.operator, passing))
        return isinstance(next(last).operator, kinds)

    def add(self, plan: Plan, circumstances: Circumstances) -> int:
        """Place the operators of a plan; return the number of the uppermost."""
        if isinstance(plan, Windowed):
            return self._window(plan, circumstances)
        if isinstance(plan, AsOfJoin):
            return self._as_of(plan, circumstances)
        sources = plan.children
        inputs = tuple(self.add(source, circumstances) for source in sources)
        edges = [pattern_of(source, circumstances) for source in sources]
        if isinstance(plan, OuterJoin):
            return self._outer(plan, inputs, edges, circumstances)
        return self._place(self._operator(plan, sources, edges, circumstances), plan, inputs)

    def _window(self, plan: Windowed, circumstances: Circumstances) -> int:
        source = self.sources[self.windows]
        operator = window_operator(
            plan, self.windows, circumstances.slide_us, self.execution, self.answer_exp
        )
        self.windows += 1
        name = f"window {plan.alias}"
        return self.builder.place(operator, plan, (source,), name=name)

    def _place(
        self, operator: Operator[Any], plan: Plan, inputs: tuple[int, ...], role: str = ""
    ) -> int:
        name = plan.line.split(" ")[0].rstrip(",") + role if role else ""
        return self.builder.place(operator, plan, inputs, name=name)

    def _operator(
        self,
        plan: Plan,
        sources: Sequence[Plan],
        edges: Sequence[Edge],
        circumstances: Circumstances,
    ) -> Operator[Any]:
        schema = self._schema_of(plan)
        match plan:
            case Filter(condition=condition):
                return SelectTuples(condition, schema)
            case Project(items=items):
                return ProjectTuples(items, schema)
            case Merge():
                return MergeOperator(schema, len(sources))
            case WindowJoin():
                below = [self._schema_of(source) for source in sources]
                return self._join(plan, below, edges, circumstances)
            case Distinct():
                # The pattern says whether values that stay may be emitted again (`_distinct`).
                form: Form = "successors" if self.execution == "aware" else "stored"
                form = "counted" if pattern_of(plan, circumstances).strict else form
                return distinct_operator(schema, form, self.execution, edges[0])
            case Difference():
                return DifferenceOperator(schema, self.execution, *edges)
            case Existence(left_keys=left, right_keys=right, negated=negated):
                return ExistenceOperator(schema, left, right, negated, self.execution, *edges)
            case GroupAggregate():
                return group_operator(plan, edges[0], self.execution, circumstances.slide_us)
            case Top():
                return FirstRows(plan, edges[0], self.execution)
        message = f"{type(plan).__name__} does not belong into a standing query"
        raise PlanError(message)

    def _join(
        self,
        plan: WindowJoin | OuterJoin,
        below: Sequence[pa.Schema],
        edges: Sequence[Edge],
        circumstances: Circumstances,
    ) -> JoinWindows:
        sides = tuple(
            JoinSide(schema, own, edge.strict, edge.in_order, edge.lifetime_us)
            for schema, own, edge in zip(below, plan.keys, edges, strict=True)
        )
        return JoinWindows(
            sides,
            plan.condition,
            self._with_answer_exp(column for schema in below for column in schema),
            self.execution,
            plan.band,
            circumstances.slide_us,
        )

    def _outer(
        self,
        plan: OuterJoin,
        inputs: tuple[int, ...],
        edges: Sequence[Edge],
        circumstances: Circumstances,
    ) -> int:
        """Place a join, and beside it the rows without a partner.

        These are found by their keys, as for NOT EXISTS. If a condition decides beside keys, they
        are found by the ids of the rows that results are made of.
        """
        schemas, sides = [_schema(source) for source in plan.sources], list(inputs)
        kept = [place for place in (0, 1) if plan.keeps[place]]
        by_id = plan.condition is not None
        for place in kept if by_id else ():
            schemas[place] = schemas[place].append(pa.field(_NUMBERS[place], pa.int64()))
            numbers = NumberTuples(schemas[place])
            sides[place] = self._place(numbers, plan, (sides[place],), ", ids")
        join = self._join(plan, schemas, edges, circumstances)
        joined = self._place(join, plan, tuple(sides))
        arms = [joined]
        if by_id:
            arms = [self._place(_beside_nulls(plan, plan.row), plan, (joined,), ", no ids")]
        for place in kept:
            other, keys = sides[1 - place], (plan.keys[place], plan.keys[1 - place])
            edge = edges[1 - place]
            if by_id:
                own = (Column(_NUMBERS[place], INT64),)
                other, keys = joined, (own, own)
                edge = pattern_of(WindowJoin(plan.sources, plan.keys), circumstances)
            alone = ExistenceOperator(
                schemas[place], *keys, True, self.execution, edges[place], edge
            )
            number = self._place(alone, plan, (sides[place], other), ", alone")
            nulls = _beside_nulls(plan, plan.sources[place].row)
            arms.append(self._place(nulls, plan, (number,), ", nulls"))
        return self._place(MergeOperator(_schema(plan), len(arms)), plan, tuple(arms), ", all")

    def _as_of(self, plan: AsOfJoin, circumstances: Circumstances) -> int:
        """Place a join as of a time: true times run below it, and the left emits only births."""
        true_times = replace(circumstances, slide_us=None)
        left = self.add(plan.left, true_times)
        right = self.add(plan.right, true_times)
        schema = self._schema_of(plan)
        operator = JoinAsOf(
            _schema(plan.right),
            plan.left_keys,
            plan.right_keys,
            schema,
            newest=any(isinstance(each.window, Unbounded) for each in windows_of(plan.right)),
            strict=plan.strict,
            outer=plan.outer,
        )
        number = self._place(operator, plan, (left, right))
        emits_ends = self.execution == "negative"
        if not emits_ends and circumstances.slide_us is None:
            return number
        retimed = RetimeTuples(schema, circumstances.slide_us, emits_ends)
        return self._place(retimed, plan, (number,))

    def _schema_of(self, plan: Plan) -> pa.Schema:
        """Return the columns that travel: those of the node, and `ANSWER_EXP` if needed."""
        return self._with_answer_exp(_schema(plan))

    def _with_answer_exp(self, columns: Iterable[pa.Field]) -> pa.Schema:
        schema = pa.schema([column for column in columns if column.name != ANSWER_EXP])
        return schema.append(pa.field(ANSWER_EXP, pa.int64())) if self.answer_exp else schema
