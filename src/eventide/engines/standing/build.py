"""A standing plan becomes a tree of operators; the operator of a node depends on its edges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from eventide.errors import PlanError
from eventide.operators.standing.answer.report import Reporter
from eventide.operators.standing.answer.top import FirstRows
from eventide.operators.standing.groups.group import AggregateGroups
from eventide.operators.standing.groups.panes import group_operator
from eventide.operators.standing.groups.recomputed import RecomputedGroups
from eventide.operators.standing.groups.slides import AggregateSlides
from eventide.operators.standing.joins.as_of import JoinAsOf
from eventide.operators.standing.joins.join import JoinSide, JoinWindows
from eventide.operators.standing.operator import StandingOperator
from eventide.operators.standing.retime import RetimeTuples
from eventide.operators.standing.select import NumberTuples, ProjectTuples, SelectTuples
from eventide.operators.standing.sets.difference import DifferenceOperator
from eventide.operators.standing.sets.distinct import Form, distinct_operator
from eventide.operators.standing.sets.existence import ExistenceOperator
from eventide.operators.standing.sets.merge import MergeOperator
from eventide.operators.standing.tree import Placed, StandingTree
from eventide.operators.standing.windows.choice import WindowOperator, window_operator
from eventide.plan.explain import describe
from eventide.plan.expressions import Column, Literal, Named
from eventide.plan.nodes import Filter, Project, sources_of
from eventide.plan.standing.execution import Execution
from eventide.plan.standing.nodes import (
    ANSWER_EXP,
    AsOfJoin,
    Difference,
    Distinct,
    Existence,
    GroupAggregate,
    Merge,
    OuterJoin,
    Standing,
    Top,
    Unbounded,
    Windowed,
    WindowJoin,
)
from eventide.plan.standing.update_patterns import (
    Circumstances,
    Edge,
    pattern_of,
    windows_of,
)
from eventide.plan.tree import Plan, Row
from eventide.schema import INT64

_NUMBERS = ("_left", "_right")
"""The columns with the ids of the rows that an outer join puts together."""


def build_standing(
    plan: Standing,
    execution: Execution = "aware",
    *,
    partitions: int | None = None,
    keeps_answer: bool = True,
) -> StandingTree:
    """Return the operators of a standing query.

    `partitions` is the number of slots in the calendar of the answer; by default it fits its size.
    Without `keeps_answer` only reports are available, if they can do without the answer.
    """
    windows = windows_of(plan)
    internal = [window.internal for window in windows]
    all_internal = all(internal) or plan.output_window is not None
    answer_exp = any(internal) and not all_internal
    circumstances = Circumstances.of(plan, kept=True)
    builder = _Builder(execution, answer_exp)
    builder.add(plan.source, circumstances)
    reporter = Reporter(
        _schema(plan.source),
        pattern_of(plan.source, circumstances),
        plan.report,
        plan.slide_us,
        plan.restore,
        plan.output_window,
        all_internal,
        answer_exp,
        execution,
        keeps_answer,
        partitions,
        is_settled(plan.source) and builder.has(AggregateGroups, AggregateSlides, RecomputedGroups),
    )
    return builder.tree(reporter)


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
class _Builder:
    """Places operators, each after those that feed it; windows are numbered first."""

    execution: Execution
    answer_exp: bool
    windows: list[WindowOperator] = field(default_factory=list)
    placed: list[Placed] = field(default_factory=list)

    def tree(self, reporter: Reporter) -> StandingTree:
        """Return the tree; until all are known, windows have numbers below zero."""
        count = len(self.windows)
        operators = tuple(
            replace(
                each,
                inputs=tuple(
                    -1 - number if number < 0 else number + count for number in each.inputs
                ),
            )
            for each in self.placed
        )
        return StandingTree(tuple(self.windows), operators, reporter)

    def has(self, *kinds: type) -> bool:
        """Whether the last operator that does more than choose or compute is of one of these."""
        passing = (SelectTuples, ProjectTuples)
        last = (each for each in reversed(self.placed) if not isinstance(each.operator, passing))
        return isinstance(next(last).operator, kinds)

    def add(self, plan: Plan, circumstances: Circumstances) -> int:
        """Place the operators of a plan; return the number of the uppermost."""
        if isinstance(plan, Windowed):
            number = len(self.windows)
            self.windows.append(
                window_operator(
                    plan, number, circumstances.slide_us, self.execution, self.answer_exp
                )
            )
            return -1 - number
        if isinstance(plan, AsOfJoin):
            return self._as_of(plan, circumstances)
        sources = sources_of(plan)
        inputs = tuple(self.add(source, circumstances) for source in sources)
        edges = [pattern_of(source, circumstances) for source in sources]
        if isinstance(plan, OuterJoin):
            return self._outer(plan, inputs, edges, circumstances)
        return self._place(self._operator(plan, sources, edges, circumstances), plan, inputs)

    def _place(
        self, operator: StandingOperator[Any], plan: Plan, inputs: tuple[int, ...], role: str = ""
    ) -> int:
        name = describe(plan).split(" ")[0].rstrip(",")
        self.placed.append(Placed(operator, f"{name}{role}", inputs))
        return len(self.placed) - 1

    def _operator(
        self,
        plan: Plan,
        sources: Sequence[Plan],
        edges: Sequence[Edge],
        circumstances: Circumstances,
    ) -> StandingOperator[Any]:
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
