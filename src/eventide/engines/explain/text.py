"""The ways to answer a block as text: estimates, measured cost, and advice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eventide.engines.explain.explained import Advice, Considered, ExplainedBlock
from eventide.engines.history.access import Cost, WorkStep

CHOSEN, OTHER = "→", " "
MOST_CONDITIONS = 12
MOST_ADVICE = 3
LONGEST_STEP = 60
HEADS = ("time", "events", "leaves", "entries", "intervals")


def block_lines(block: ExplainedBlock) -> Iterator[str]:
    """Yield the ways that were considered for a block, its conditions and its steps."""
    refused = block.ways.refused
    if refused is not None:
        yield f"index: no, because {refused}"
    if len(block.ways.accesses) > 1 or block.actual is not None:
        yield from way_lines(block)
    yield from condition_lines(block.conditions)
    yield from map(advice_line, block.advice[:MOST_ADVICE])
    if block.actual is not None:
        yield from step_lines(block)
        yield from block.actual.notes


def way_lines(block: ExplainedBlock) -> Iterator[str]:
    """Yield a table of the ways, cheapest first, the chosen one with its measured cost."""
    of = f" for {block.name}" if block.name else ""
    rows: list[tuple[str, ...]] = [(f"ways{of}, cheapest first", *HEADS)]
    notes: list[str] = [""]
    for number, access in enumerate(block.ways.accesses):
        mark = OTHER if number else CHOSEN
        rows.append((f"  {mark} {access.name}", *numbers_of(access.estimate)))
        notes.append("" if block.actual is not None and number == 0 else access.describe())
        if block.actual is not None and number == 0:
            rows.append(("      actual", *numbers_of(block.actual)))
            notes.append(access.describe())
    for line, what in zip(aligned(rows), notes, strict=True):
        yield line
        if what:
            yield f"      {what}"


def numbers_of(cost: Cost) -> tuple[str, ...]:
    """Return a cost as the cells of a table."""
    counts = (cost.rows, cost.blocks, cost.entries, cost.intervals)
    return (seconds_text(cost.seconds), *(f"{count:,}" for count in counts))


def condition_lines(conditions: Sequence[Considered]) -> Iterator[str]:
    """Yield the conditions that can be looked up: how many events meet each, and how it is done."""
    if not conditions:
        return
    yield "conditions, those looked up marked"
    rows = [
        (f"{CHOSEN if each.chosen else OTHER} {each.text}", events_text(each), how_text(each))
        for each in conditions[:MOST_CONDITIONS]
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, events, how in rows:
        yield f"  {name:<{widths[0]}}  {events:>{widths[1]}}  {how}"
    if len(conditions) > MOST_CONDITIONS:
        yield f"    … {len(conditions) - MOST_CONDITIONS:,} more"


def events_text(each: Considered) -> str:
    """Return how many events meet a condition."""
    about = "about " if each.reach.read_rows else ""
    return f"{about}{each.reach.events:,} events"


def how_text(each: Considered) -> str:
    """Return how the events of a condition are found."""
    names = ", ".join(each.condition.attributes)
    reach = each.reach
    if not reach.read_rows:
        return f"secondary index on {names}" if reach.lookups else "the time index has them"
    read = f"no index on {names}: a column of {reach.read_rows:,} rows to read"
    return f"{read}, the rest by index" if reach.lookups else read


def advice_line(advice: Advice) -> str:
    """Return what would make a query faster."""
    stream = f'db.stream("{advice.stream}")'
    added = "rebuild_indexes()" if advice.missing else f'add_index("{advice.attribute}")'
    took = seconds_text(advice.seconds)
    return f"hint: with an index on {advice.attribute} it would take {took}: {stream}.{added}"


def step_lines(block: ExplainedBlock) -> Iterator[str]:
    """Yield how the time was spent; for a replay, the time of all threads together."""
    rows: list[tuple[str, ...]] = [("steps", "time", "rows in", "rows out")]
    for step in block.steps:
        rows.append(
            (f"  {shortened(step.name)}", *step_cells(step, is_plan=step is block.planning))
        )
    yield from aligned(rows)
    if block.best.name == "replay":
        yield "    the time of steps is that of all threads together"


def step_cells(step: WorkStep, *, is_plan: bool) -> tuple[str, ...]:
    """Return a step as the cells of a table."""
    taken = "" if step.rows_in is None else f"{step.rows_in:,}"
    return seconds_text(step.seconds), taken, "" if is_plan else f"{step.rows:,}"


def aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield rows as lines: the first column to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for name, *cells in rows:
        right = "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True))
        yield f"{name:<{widths[0]}}{right}".rstrip()


def shortened(text: str, most: int = LONGEST_STEP) -> str:
    """Return a text cut to a maximum length."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def seconds_text(seconds: float) -> str:
    """Return a duration with three digits.

    >>> [seconds_text(each) for each in (0.0000214, 0.0142, 0.251, 12.3)]
    ['0.02 ms', '14.2 ms', '251 ms', '12.3 s']
    """
    ms = seconds * 1000
    if ms >= 1000:
        return f"{seconds:,.{1 if seconds < 1000 else 0}f} s"
    digits = 2 if ms < 9.995 else 1 if ms < 99.95 else 0
    return f"{ms:.{digits}f} ms"
