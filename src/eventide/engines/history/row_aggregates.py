"""Aggregates over periods from the rows of a stored stream: those that its index has not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from eventide.accumulators import Groups
from eventide.errors import SchemaError
from eventide.instants import TimeRange
from eventide.kernels.compiled import Int64s, frozen
from eventide.lang.sql import plan_sql
from eventide.operators.aggregate import accumulator_of, lift
from eventide.operators.columns import concat_batches
from eventide.plan.expressions import Aggregate, Column, columns_of
from eventide.plan.nodes import Project
from eventide.plan.windows.nodes import WindowAggregate
from eventide.schema import TS, Schema
from eventide.store.snapshot import Snapshot

STREAM = "events"


def aggregate_of(text: str, schema: Schema) -> Aggregate:
    """Return an aggregate as SQL has it, such as `quantile_cont(speed, 0.9)`."""
    # The text is only ever planned here, with one stream that is not there.
    query = f"SELECT {text} AS x FROM {STREAM} GROUP BY TUMBLE(ROWS, 1)"  # noqa: S608
    plan = plan_sql(query, {STREAM: schema})
    node = plan.source if isinstance(plan, Project) else plan
    plain = isinstance(plan, Project) and isinstance(plan.items[0].expression, Column)
    if not (plain and isinstance(node, WindowAggregate) and len(node.aggregates) == 1):
        message = f"{text!r} is not an aggregate"
        raise SchemaError(message, hint="write median(speed), or quantile_cont(speed, 0.9)")
    return node.aggregates[0].aggregate


def answers_from_rows(
    snapshot: Snapshot,
    wanted: Mapping[str, Aggregate],
    cuts: Sequence[int],
    groups: Int64s | None,
) -> pa.RecordBatch:
    """Return aggregates of the periods [cuts[i], cuts[i + 1]), one row each.

    With `groups`, which numbers the periods from 0, one row for each group of periods instead.
    """
    read = {TS, *(name for each in wanted.values() for name in columns_of(each))}
    names = [name for name in snapshot.schema.arrow.names if name in read]
    fields = pa.schema([(name, snapshot.schema.type_of(name).arrow) for name in names])
    batches = list(snapshot.scan(names, TimeRange(cuts[0], cuts[-1])))
    rows = concat_batches(batches, fields)
    ts = rows.column(TS).view(pa.int64()).to_numpy()
    owner = np.searchsorted(np.array(cuts, np.int64), ts, side="right") - 1
    count = len(cuts) - 1
    if groups is not None:
        owner, count = groups[owner], int(groups.max(initial=-1)) + 1
    by = Groups(frozen(owner.astype(np.int64)), count)
    columns = []
    for aggregate in wanted.values():
        accumulator = accumulator_of(aggregate)
        lifted = lift(aggregate, accumulator, rows)
        columns.append(accumulator.finish(accumulator.by_group(lifted, by)))
    return pa.RecordBatch.from_arrays(columns, list(wanted))
