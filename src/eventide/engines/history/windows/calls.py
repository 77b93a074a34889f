"""The aggregates that windows need from the time index, or why it cannot answer them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from eventide.accumulators import Accumulator
from eventide.plan.expressions import Aggregate, Call, Column
from eventide.plan.nodes import Filter, Project, Scan
from eventide.plan.render import render
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import (
    CountWindow,
    Sessions,
    SlidingAggregate,
    Window,
    WindowAggregate,
)
from eventide.schema import SEQ, TS
from eventide.store.index.summaries import partials_of
from eventide.store.reading.question import ROWS, AggregateCall, AggregateQuestion

ANSWERED = frozenset({"count", "sum", "avg", "min", "max"})


@dataclass(frozen=True, slots=True)
class Asked:
    """The lowest windows of a plan, the scan below them, and the aggregates to look up."""

    node: WindowAggregate
    window: Window | CountWindow
    scan: Scan
    calls: tuple[AggregateCall, ...]

    def partials(
        self,
        question: AggregateQuestion,
        accumulators: Sequence[Accumulator],
        entries: pa.RecordBatch,
    ) -> list[pa.Array]:
        """Return the partial columns of each aggregate, as its accumulator has them."""
        columns: list[pa.Array] = []
        for call, accumulator in zip(self.calls, accumulators, strict=True):
            names = [ROWS.name]
            if call.attribute is not None:
                parts = partials_of(call.function, question.schema.type_of(call.attribute))
                names = [f"{call.attribute}.{part}" for part in parts]
            columns += [entries.column(name) for name in names]
            # The index has no rest of sums, which comes last.
            missing = accumulator.types[len(names) :]
            columns += [pa.nulls(entries.num_rows, kind) for kind in missing]
        return columns


def asked_of(plan: Plan) -> Asked | str:
    """Return what a block needs from the index, or a sentence why the index cannot answer it."""
    node = lowest_stateful(plan)
    match node:
        case SlidingAggregate():
            return "frames are of each event, and the index has only aggregates of many"
        case WindowAggregate(keys=(_, *_)):
            return "the index has no aggregates by key"
        case WindowAggregate(window=Sessions()):
            return "where a session ends is found by looking at each event"
        case WindowAggregate(window=Window() | CountWindow() as window):
            pass
        case _:
            return "there are no windows"
    found = renamed(node.source)
    if isinstance(found, str):
        return found
    scan, names = found
    calls: list[AggregateCall] = []
    for item in node.aggregates:
        call = call_of(item.aggregate, names)
        if isinstance(call, str):
            return call
        calls.append(call)
    return Asked(node, window, scan, tuple(calls))


def lowest_stateful(plan: Plan) -> Plan | None:
    """Return the lowest node with state of a plan over one scan, if there is one."""
    for source in plan.children:
        found = lowest_stateful(source)
        if found is not None:
            return found
    return None if isinstance(plan, Scan | Filter | Project) else plan


def renamed(plan: Plan) -> tuple[Scan, Mapping[str, str]] | str:
    """Return the scan below nodes that only rename, and the name of each column there."""
    match plan:
        case Scan():
            return plan, {name: name for name in plan.row}
        case Filter(condition=condition):
            return f"{render(condition)} has to be asked of each event"
        case Project(source=source, items=items):
            below = renamed(source)
            if isinstance(below, str):
                return below
            scan, names = below
            kept: dict[str, str] = {}
            for item in items:
                # A computed column does no harm if no aggregate uses it.
                if isinstance(item.expression, Column):
                    kept[item.name] = names.get(item.expression.name, "")
            if kept.get(TS) != TS:
                return "the windows go by a time that is computed, and not by that of the events"
            return scan, kept
    return "there is more than a scan below the windows"


def call_of(aggregate: Aggregate, names: Mapping[str, str]) -> AggregateCall | str:
    """Return an aggregate as the index has it, or why it has none."""
    argument = aggregate.argument
    if aggregate.function not in ANSWERED or aggregate.distinct:
        return f"the index has no {aggregate.function}: {render(aggregate)} needs each event"
    if argument is None:
        return AggregateCall("count")
    if isinstance(argument, Call) and argument.function == "case":
        return f"{render(aggregate)} has a condition, which has to be asked of each event"
    if not isinstance(argument, Column) or not names.get(argument.name):
        return f"{render(aggregate)} is of an expression, and the index has only attributes"
    attribute = names[argument.name]
    if attribute in (TS, SEQ):
        # Every event has them.
        if aggregate.function == "count":
            return AggregateCall("count")
        return f"the index has no aggregates of {attribute}"
    return AggregateCall(aggregate.function, attribute)
