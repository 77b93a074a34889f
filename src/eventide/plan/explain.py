"""A plan as text: one line a node, its sources indented below it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from eventide.batch import END_OF_TIME_US, START_OF_TIME_US, TimeRange
from eventide.plan.expressions import Expression, Named
from eventide.plan.nodes import (
    Filter,
    NamedAggregate,
    Plan,
    Project,
    Relational,
    Scan,
    SlidingAggregate,
    Window,
    WindowAggregate,
    sources_of,
)
from eventide.plan.render import render, render_over
from eventide.plan.times import format_duration, format_timestamp


def explain(plan: Plan) -> str:
    """Return the plan as indented text.

    >>> from eventide.plan.expressions import Column
    >>> from eventide.schema import FLOAT64
    >>> print(explain(Filter(Scan("cars", (("speed", FLOAT64),)), Column("fast"))))
    Filter fast
      Scan cars (speed)
    """
    return "\n".join(_lines(plan, 0))


def _lines(plan: Plan, depth: int) -> Iterator[str]:
    yield "  " * depth + describe(plan)
    if isinstance(plan, Relational):
        for name, source in plan.inputs:
            yield "  " * (depth + 1) + f"{name}:"
            yield from _lines(source, depth + 2)
        return
    for source in sources_of(plan):
        yield from _lines(source, depth + 1)


def describe(plan: Plan) -> str:
    """Return the line of one node, without what is below it."""
    match plan:
        case Scan(stream=stream, columns=columns, time_range=time_range):
            names = ", ".join(name for name, _ in columns)
            return f"Scan {stream} ({names}){_range(time_range)}"
        case Filter(condition=condition):
            return f"Filter {render(condition)}"
        case Project(items=items):
            return f"Project {', '.join(map(_item, items))}"
        case WindowAggregate(keys=keys, window=window, aggregates=aggregates):
            by = f"by {', '.join(map(_item, keys))}, " if keys else ""
            return f"WindowAggregate {by}{_window(window)}{_computed(aggregates)}"
        case SlidingAggregate(keys=keys, frame=frame, aggregates=aggregates):
            return f"SlidingAggregate {render_over(keys, frame)}{_computed(aggregates)}"
        case Relational(duckdb_sql=sql):
            return f"Relational {sql}"
    assert_never(plan)


def _item(item: Named) -> str:
    return _named(item.expression, item.name)


def _named(expression: Expression, name: str) -> str:
    text = render(expression)
    return text if text == name else f"{text} AS {name}"


def _computed(aggregates: tuple[NamedAggregate, ...]) -> str:
    shown = ", ".join(_named(item.aggregate, item.name) for item in aggregates)
    return f": {shown}" if shown else ""


def _window(window: Window) -> str:
    size = format_duration(window.size_us)
    if window.is_tumbling:
        return f"tumbling {size}"
    return f"hopping {size} every {format_duration(window.slide_us)}"


def _range(time_range: TimeRange) -> str:
    if time_range.is_empty:
        return " never"
    text = ""
    if time_range.start_us != START_OF_TIME_US:
        text += f" from {format_timestamp(time_range.start_us)}"
    if time_range.end_us != END_OF_TIME_US:
        text += f" until {format_timestamp(time_range.end_us)}"
    return text
