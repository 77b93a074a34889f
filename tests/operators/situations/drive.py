"""Drives operators of situations over rows in any batches, with any watermarks, and compares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from eventide.engines.build import build_tree
from eventide.instants import ALL_TIME, END_OF_TIME_US, START_OF_TIME_US, TimeRange
from eventide.operators.tree import OperatorTree
from eventide.plan.passes import optimise
from eventide.plan.situations.nodes import Situations, TemporalPattern
from eventide.plan.tree import Plan
from tests.naive.situations.nodes import FLAGS, SCHEMA, SECOND, Row

NOTHING_SPARED = -(2**40)
"""In place of how much is kept for nothing before it is dropped: then it is dropped at once."""

Cut = tuple[int, int]
"""How many rows there are by then, and the watermark behind them."""


def bag(found: Iterable[Row]) -> Counter[str]:
    """Rows as text, so that 1 and 1.0 and True differ, and NaN equals itself."""
    return Counter(str(sorted(row.items())) for row in found)


def run(
    node: Plan, events: Sequence[Row], cuts: Sequence[Cut] = (), owned: TimeRange = ALL_TIME
) -> list[Row]:
    """Return the results of all rows, which come in one batch unless they are cut."""
    return [row for _, _, rows in stepped(node, events, cuts, owned) for row in rows]


def stepped(
    node: Plan, events: Sequence[Row], cuts: Sequence[Cut] = (), owned: TimeRange = ALL_TIME
) -> Iterator[tuple[int, int, list[Row]]]:
    """Yield how many rows there were, the watermark, and the results of each step.

    The state is dumped and loaded after each. A step is done twice: it has to leave the state as
    it was.
    """
    tree = build_tree(optimise(node), owned)
    states = tree.initial_state()
    start = 0
    whole = (len(events), events[-1]["ts"] if events else START_OF_TIME_US)
    for end, watermark in [*(cuts or [whole]), (len(events), END_OF_TIME_US)]:
        batch = to_batch(tree, events[start:end])
        _, first = tree.step(states, (batch,), watermark)
        states, results = tree.step(states, (batch,), watermark)
        assert bag(plain(first)) == bag(plain(results))
        assert results.schema == tree.output_schema
        states = tree.load(tree.dump(states))
        start = end
        yield end, watermark, plain(results)


def to_batch(tree: OperatorTree, events: Sequence[Row]) -> pa.RecordBatch:
    batch = pa.RecordBatch.from_pylist(list(events), schema=SCHEMA.arrow)
    return batch.select(tree.input_schema.names)


def plain(batch: pa.RecordBatch) -> list[Row]:
    """Return rows with times as microseconds."""
    for place, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type) or pa.types.is_duration(field.type):
            batch = batch.set_column(place, field.name, batch.column(place).view(pa.int64()))
    found: list[Row] = batch.to_pylist()
    return found


def drawn(lines: Mapping[str, str], at: Sequence[int] = (), k: str | None = "p") -> list[Row]:
    """Return the rows of a drawing: `#` is true, `.` false and `?` unknown, one for each row."""
    known: Mapping[str, bool | None] = {"#": True, ".": False, "?": None}
    times = at or range(max(map(len, lines.values())))
    blank: Row = {"k": k, **dict.fromkeys(FLAGS, False), "v": None, "n": None, "w": None}
    return [
        {"ts": ts * SECOND, "_seq": place, **blank}
        | {name.lower(): known[line[place]] for name, line in lines.items()}
        for place, ts in enumerate(times)
    ]


def one_by_one(events: Sequence[Row]) -> list[Cut]:
    """Cut behind each row, with the watermark at it."""
    return [(place, row["ts"]) for place, row in enumerate(events, 1)]


@st.composite
def cuts_of(
    draw: st.DrawFn, node: Situations | TemporalPattern, events: Sequence[Row]
) -> list[Cut]:
    """Draw cuts: watermarks lag behind, stand between rows, or just where a silence is over."""
    places = draw(st.lists(st.integers(0, len(events)), max_size=len(events)))
    found = []
    low = START_OF_TIME_US
    for place in [*sorted(places), len(events)]:
        high = events[place]["ts"] if place < len(events) else END_OF_TIME_US - 1
        last = events[place - 1]["ts"] if place else low
        silent = last if node.gap_us is None else last + node.gap_us
        wanted: Sequence[Any] = (last, low, high, last + 1, silent, silent + 1, (last + high) // 2)
        low = draw(st.sampled_from([each for each in wanted if low <= each <= high] or [low]))
        found.append((place, low))
    return found
