"""The first or last events that meet a condition: tasks look for them, Spark puts them in order."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from eventide.engines.spark.history import over_store
from eventide.plan.expressions import Column, Named
from eventide.plan.nodes import EndRows, Project, Scan, rebuild_sources
from eventide.plan.tree import Plan
from eventide.schema import INT64, SEQ, TIMESTAMP, TS
from eventide.store import Snapshot

HIDDEN = {"eventide_ts": Column(TS, TIMESTAMP), "eventide_seq": Column(SEQ, INT64)}


def over_ends(
    spark: SparkSession, node: EndRows, source: Snapshot, zoneless: Collection[str]
) -> DataFrame:
    """Return the first or last rows of a stored stream in order of time."""
    rows = node.source
    assert isinstance(rows, Project)
    hidden = tuple(Named(name, column) for name, column in HIDDEN.items())
    below = numbered(rows.source)
    frame = over_store(
        spark, replace(rows, source=below, items=(*rows.items, *hidden)), source, zoneless
    )
    order = [frame[name].desc() if node.last else frame[name].asc() for name in HIDDEN]
    return frame.orderBy(*order).offset(node.offset).limit(node.count).drop(*HIDDEN)


def numbered(plan: Plan) -> Plan:
    """Return a plan over one scan that also reads the numbers of events."""
    if isinstance(plan, Scan):
        others = tuple(column for column in plan.columns if column[0] != SEQ)
        return replace(plan, columns=(*others, (SEQ, INT64)))
    return rebuild_sources(plan, numbered)
