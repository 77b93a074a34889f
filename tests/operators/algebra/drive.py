"""Drives the operators of a plan over events, cut at any instants, and compares."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from eventide.engines.build import build_tree
from eventide.instants import END_OF_TIME_US
from eventide.operators.tree import OperatorTree
from eventide.plan.passes import optimise
from eventide.plan.passes.bound_lengths import bound_lengths
from eventide.plan.passes.divide_conditions import divide_conditions
from eventide.plan.tree import Plan
from eventide.schema import TS
from tests.naive.algebra.plans import CATALOG, Row, Streams


def bag(found: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Rows as text, so that 1 and 1.0 and True differ, and NaN equals itself."""
    return Counter(str(sorted(row.items())) for row in found)


def divided(plan: Plan) -> Plan:
    """A plan whose sequences have keys and bounds of their own."""
    return bound_lengths(divide_conditions(plan))


def run(plan: Plan, streams: Streams, instants: Sequence[int] = ()) -> list[Row]:
    return [row for _, rows in stepped(plan, streams, instants) for row in rows]


def stepped(
    plan: Plan, streams: Streams, instants: Sequence[int] = ()
) -> Iterator[tuple[int, list[Row]]]:
    """Yield the rows of the state and the results of each step: of the events before an instant.

    The state is dumped and loaded after each step.
    """
    tree = build_tree(optimise(plan))
    states = tree.initial_state()
    begin = -END_OF_TIME_US
    for until in [*sorted(instants), END_OF_TIME_US]:
        given = {
            name: [row for row in rows if begin <= row[TS] < until]
            for name, rows in streams.items()
        }
        states, results = tree.step(states, batches(tree, given), until)
        assert results.schema == tree.output_schema
        found = plain(results)
        times = [row[TS] for row in found if TS in row]
        assert times == sorted(times)
        assert all(begin <= ts < until for ts in times)
        states = tree.load(tree.dump(states))
        pairs = zip(tree.operators, states, strict=True)
        yield sum(operator.size(state).tuples for operator, state in pairs), found
        begin = until


def batches(tree: OperatorTree, streams: Streams) -> tuple[pa.RecordBatch, ...]:
    """Return the events as the leaves of a tree take them."""
    found = []
    for leaf in tree.leaves:
        name = leaf.scan.stream
        whole = pa.RecordBatch.from_pylist(streams[name], schema=CATALOG[name].arrow)
        found.append(whole.select(leaf.schema.names))
    return tuple(found)


def plain(batch: pa.RecordBatch) -> list[Row]:
    """Return rows with times as microseconds."""
    for place, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type) or pa.types.is_duration(field.type):
            batch = batch.set_column(place, field.name, batch.column(place).view(pa.int64()))
    found: list[Row] = batch.to_pylist()
    return found


def in_other_order(choose: random.Random, streams: Streams) -> Streams:
    """The same events; those of one instant have arrived in another order."""
    found = {}
    for name, rows in streams.items():
        mixed = sorted(choose.sample(rows, len(rows)), key=lambda row: row[TS])
        found[name] = [{**row, "_seq": seq} for seq, row in enumerate(mixed)]
    return found


def instants_of(choose: random.Random, streams: Streams) -> list[int]:
    """Instants at which, before which and after which something happens, or nothing."""
    times = [row[TS] + choose.choice([0, 0, 1]) for rows in streams.values() for row in rows]
    chosen = choose.sample(times, choose.randint(0, len(times)))
    last = max(times, default=0)
    return sorted({*chosen, *choose.choice([[], [last + 1], [last + 50]])})
