"""A plan as text: one line a node, its sources indented below it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from eventide.instants import END_OF_TIME_US, START_OF_TIME_US, TimeRange
from eventide.plan.expressions import (
    ALWAYS,
    At,
    Expression,
    MatchAggregate,
    Named,
    NamedAggregate,
    OrderKey,
    rebuild,
)
from eventide.plan.nodes import DerivedStream, EndRows, Filter, Project, Relational, Scan, node_of
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.patterns.tree import render_pattern
from eventide.plan.render import render, render_over
from eventide.plan.situations.allen import ANY, words_of
from eventide.plan.situations.nodes import PeriodJoin, Situations, TemporalPattern
from eventide.plan.situations.parts import Situation
from eventide.plan.standing.nodes import (
    AsOfJoin,
    Difference,
    Distinct,
    Existence,
    GroupAggregate,
    Merge,
    OuterJoin,
    PeriodWindow,
    RangeWindow,
    RowsWindow,
    SessionWindow,
    SinceWindow,
    Standing,
    StandingNode,
    StreamWindow,
    Top,
    Unbounded,
    Windowed,
    WindowJoin,
)
from eventide.plan.times import format_duration, format_timestamp
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import (
    CalendarWindow,
    CountWindow,
    Sessions,
    SlidingAggregate,
    Window,
    WindowAggregate,
)
from eventide.schema import TS
from eventide.visible import visible


def explain(plan: Plan) -> str:
    """Return the plan as indented text.

    >>> from eventide.plan.expressions import Column
    >>> from eventide.schema import FLOAT64
    >>> print(explain(Filter(Scan("cars", (("speed", FLOAT64),)), Column("fast"))))
    Filter fast
      Scan cars (speed)
    """
    return "\n".join(map(visible, _lines(plan, 0)))


def _lines(plan: Plan, depth: int) -> Iterator[str]:
    yield "  " * depth + describe(plan)
    if isinstance(plan, MatchRecognize):
        for item in plan.defines:
            always = item.expression == ALWAYS
            shown = ": any row" if always else f" AS {render(item.expression)}"
            yield "  " * (depth + 2) + item.name + shown
    if isinstance(plan, Situations | TemporalPattern):
        for each in plan.situations:
            yield "  " * (depth + 2) + f"{each.name} AS {render(each.condition)}{_lasting(each)}"
    if isinstance(plan, Relational):
        for name, source in plan.inputs:
            yield "  " * (depth + 1) + f"{name}:"
            yield from _lines(source, depth + 2)
        return
    if isinstance(plan, Windowed) and isinstance(plan.source, Scan):
        # Its line names its source.
        return
    for source in plan.children:
        yield from _lines(source, depth + 1)


def describe(plan: Plan) -> str:
    """Return the line of one node, without what is below it."""
    plan = node_of(plan)
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
        case MatchRecognize():
            return _match(plan)
        case Situations():
            by = f"by {', '.join(map(_item, plan.keys))}, " if plan.keys else ""
            names = ", ".join(each.name for each in plan.situations)
            return f"Situations {by}{names}{_gap(plan.gap_us)}{_computed(plan.aggregates)}"
        case TemporalPattern():
            return _temporal(plan)
        case PeriodJoin():
            kind = "PeriodJoin" if plan.kind == "inner" else f"PeriodJoin {plan.kind}"
            by = f", {keys_text(plan)}" if plan.keys else ""
            related = f"{kind} {related_text(plan)}{by}"
            return f"{related}: {', '.join(plan.columns)}"
        case DerivedStream() | EndRows():
            return _in_order(plan)
        case Relational(duckdb_sql=sql):
            return f"Relational {sql}"
        case _:
            return _standing(plan)


def _in_order(plan: DerivedStream | EndRows) -> str:
    if isinstance(plan, DerivedStream):
        return f"DerivedStream in order of {', '.join((TS, *plan.order))}"
    which, order = ("last", ", newest first") if plan.last else ("first", "")
    skipped = f" after {plan.offset:,} others" if plan.offset else ""
    return f"EndRows the {which} {plan.count:,}{skipped}{order}"


def _standing(plan: StandingNode) -> str:
    match plan:
        case Windowed():
            return _windowed(plan)
        case Merge():
            return "Merge"
        case WindowJoin():
            return _join(plan, "WindowJoin")
        case OuterJoin(word=word):
            return _join(plan, f"OuterJoin {word.lower()}")
        case AsOfJoin(strict=strict, outer=outer):
            kind = "AsOfJoin outer" if outer else "AsOfJoin"
            keys = _equal((plan.left_keys, plan.right_keys))
            return f"{kind}{keys}, the newest {'before' if strict else 'until'} then"
        case Distinct():
            return "Distinct"
        case Difference():
            return "Difference"
        case Existence(negated=negated):
            keys = _equal((plan.left_keys, plan.right_keys))
            return f"{'NotExists' if negated else 'Exists'}{keys}"
        case GroupAggregate(keys=named, aggregates=aggregates):
            by = f" by {', '.join(map(_item, named))}" if named else ""
            return f"GroupAggregate{by}{_computed(aggregates)}"
        case Top(order=order, count=count, keys=keys):
            by = f" by {', '.join(map(render, keys))}" if keys else ""
            return f"Top {count:,}{by} in order of {', '.join(map(_order, order))}"
        case Standing():
            return _root(plan)
    assert_never(plan)


def _root(node: Standing) -> str:
    parts = [] if node.report == "current" else [node.report.upper()]
    if node.restore:
        parts.append("RESTORE")
    if node.output_window is not None:
        parts.append(f"the results of {stream_window_text(node.output_window)}")
    if node.slide_us is not None:
        every = format_duration(node.slide_us)
        parts.append(f"every {every}{_as_if_tumbling(node, node.slide_us, every)}")
    return " ".join(["Standing", *parts])


def _as_if_tumbling(node: Plan, slide_us: int, every: str) -> str:
    """Say what a window as long as its slide holds: not the same events as TUMBLE."""
    if isinstance(node, Windowed):
        alike = node.window == RangeWindow(slide_us)
        return f", at e of the events in (e - {every}, e]" if alike else ""
    found = (_as_if_tumbling(each, slide_us, every) for each in node.children)
    return next(filter(None, found), "")


def _windowed(node: Windowed) -> str:
    scan = node.source
    stream = scan.stream if isinstance(scan, Scan) else ""
    alias = "" if node.alias == stream else f" AS {node.alias}"
    internal = ", internal" if node.internal else ""
    time_range = _range(scan.time_range) if isinstance(scan, Scan) else ""
    window = stream_window_text(node.window)
    columns = ", ".join(scan.row)
    return f"Windowed {stream}{alias}, {window}{internal} ({columns}){time_range}"


def stream_window_text(window: StreamWindow) -> str:
    """Return as text which events a window holds."""
    match window:
        case Unbounded():
            return "all events"
        case RangeWindow(size_us=size, jump_us=jump):
            jumps = "" if jump is None else f" in jumps of {format_duration(jump)}"
            return f"the last {format_duration(size)}{jumps}"
        case PeriodWindow(period_us=period):
            return f"this period of {format_duration(period)}"
        case SinceWindow(since_us=since, until_us=until):
            end = "" if until is None else f" until {format_timestamp(until)}"
            return f"since {format_timestamp(since)}{end}"
        case RowsWindow(count=1, keys=keys) if keys:
            gone = "" if window.deleted is None else f" unless {window.deleted}"
            return f"the last row of each {', '.join(keys)}{gone}"
        case RowsWindow(count=count, keys=keys):
            of = f" of each {', '.join(keys)}" if keys else ""
            return f"the last {count:,} row{'' if count == 1 else 's'}{of}"
        case SessionWindow(gap_us=gap, keys=keys):
            of = f" of each {', '.join(keys)}" if keys else ""
            return f"the session{of} with gaps below {format_duration(gap)}"
    assert_never(window)


def _join(node: WindowJoin | OuterJoin, kind: str) -> str:
    condition = "" if node.condition is None else f" where {render(node.condition)}"
    keys = _equal(node.keys)
    kind = kind if keys or condition else f"{kind} of all with all"
    band = ""
    if node.band is not None:
        # Where there is no key, the nearest are looked for in order.
        left, right = render(node.band.left), render(node.band.right)
        band = f", {left} near {right}"
    return f"{kind}{keys}{condition}{band}"


def _equal(keys: tuple[tuple[Expression, ...], ...]) -> str:
    """Return as text which keys of several sources are equal."""
    pairs = [" = ".join(map(render, parts)) for parts in zip(*keys, strict=True)]
    return f" on {' and '.join(pairs)}" if pairs else ""


def related_text(node: PeriodJoin) -> str:
    """Return as text which relations a join of periods allows."""
    related = _related(node.first.name, node.mask, node.second.name)
    return f"{related}, open ends" if node.open_ends else related


def keys_text(node: PeriodJoin) -> str:
    """Return as text which columns have to be equal for a join of periods."""
    return " and ".join(f"{one} = {other}" for one, other in node.keys)


def _match(node: MatchRecognize) -> str:
    parts = [f"by {', '.join(map(_item, node.keys))}"] if node.keys else []
    parts += [f"in order of {', '.join(map(_order, node.order))}"] if node.order else []
    pattern = f"({render_pattern(node.pattern)})"
    if node.within_us is not None:
        pattern += f" within {format_duration(node.within_us)}"
    if node.strategy != "contiguous":
        pattern += f" {node.strategy}"
    parts.append(pattern)
    skip = f"skip {'' if node.skip.to == 'past last row' else 'to '}{node.skip.to}"
    parts.append(f"{skip} {node.skip.variable}" if node.skip.variable else skip)
    parts.append("one row" if node.output == "one row" else f"all rows, {node.output}")
    if node.timeout_rows:
        parts.append("timeout rows")
    shown = ", ".join(_measure(item, node) for item in node.measures)
    return f"MatchRecognize {', '.join(parts)}{f': {shown}' if shown else ''}"


def _temporal(node: TemporalPattern) -> str:
    parts = [f"by {', '.join(map(_item, node.keys))}"] if node.keys else []
    names = [each.name for each in node.situations]
    for each in node.constraints:
        parts.append(_related(names[each.first], each.mask, names[each.second]))
    if not node.constraints:
        parts.append(", ".join(names))
    parts.append(f"within {format_duration(node.within_us)}")
    parts.append("detected early" if node.detection == "early" else "when all are over")
    if node.confirm:
        parts.append("confirmed")
    if node.limit is not None:
        parts.append(f"at most {node.limit:,} a key")
    shown = ", ".join(map(_item, node.returns))
    described = f"TemporalPattern {', '.join(parts)}{_gap(node.gap_us)}"
    return f"{described}: {shown}" if shown else described


def _related(first: str, mask: int, second: str) -> str:
    relations = " or ".join(words_of(mask)) if mask != ANY else "anyhow beside"
    return f"{first} {relations} {second}"


def _lasting(situation: Situation) -> str:
    least, most = situation.least_us, situation.most_us
    if most is None:
        return f" for at least {format_duration(least)}" if least else ""
    if not least:
        return f" for at most {format_duration(most)}"
    return f" for {format_duration(least)} to {format_duration(most)}"


def _gap(gap_us: int | None) -> str:
    return "" if gap_us is None else f", over after {format_duration(gap_us)} of silence"


def _measure(item: Named, node: MatchRecognize) -> str:
    # Of one row per match everything is final: to say so would only be noise.
    expression = item.expression if node.all_rows else _unmarked(item.expression)
    return _named(expression, item.name)


def _unmarked(expression: Expression) -> Expression:
    match expression:
        case At() | MatchAggregate():
            return replace(expression, final=False)
    return rebuild(expression, _unmarked)


def _order(key: OrderKey) -> str:
    nulls = " NULLS FIRST" if key.nulls_first else ""
    return f"{render(key.expression)}{' DESC' if key.descending else ''}{nulls}"


def _item(item: Named) -> str:
    return _named(item.expression, item.name)


def _named(expression: Expression, name: str) -> str:
    text = render(expression)
    return text if text == name else f"{text} AS {name}"


def _computed(aggregates: tuple[NamedAggregate, ...]) -> str:
    shown = ", ".join(_named(item.aggregate, item.name) for item in aggregates)
    return f": {shown}" if shown else ""


def _window(window: Window | CountWindow | Sessions | CalendarWindow) -> str:
    match window:
        case Sessions(gap_us):
            return f"sessions with a gap of {format_duration(gap_us)}"
        case CalendarWindow(unit="all"):
            return "over all of time"
        case CalendarWindow(unit):
            return f"by {unit}"
        case Window(size_us, slide_us):
            size, slide = format_duration(size_us), format_duration(slide_us)
        case CountWindow(rows, every):
            size, slide = f"{rows:,} row{'' if rows == 1 else 's'}", f"{every:,}"
        case _:
            assert_never(window)
    return f"tumbling {size}" if window.is_tumbling else f"hopping {size} every {slide}"


def _range(time_range: TimeRange) -> str:
    if time_range.is_empty:
        return " never"
    text = ""
    if time_range.start_us != START_OF_TIME_US:
        text += f" from {format_timestamp(time_range.start_us)}"
    if time_range.end_us != END_OF_TIME_US:
        text += f" until {format_timestamp(time_range.end_us)}"
    return text
