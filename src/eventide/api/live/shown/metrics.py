"""The numbers of live queries: as rows of SQL, as dictionaries, and as text for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from textwrap import shorten
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from eventide.schema import (
    FLOAT64,
    INT64,
    MIN_TS_US,
    STRING,
    TIMESTAMP,
    TS,
    Attribute,
    DataType,
    Schema,
)
from eventide.store import TableSource

if TYPE_CHECKING:
    from eventide.api.live.subscription import Subscription

Value = int | float | str | None


@dataclass(frozen=True, slots=True)
class Metric:
    """A number of a live query, as Prometheus knows it."""

    key: str
    """Its key in the dictionary of a query."""
    name: str
    kind: Literal["counter", "gauge"]
    meaning: str


METRICS = (
    Metric("events_in", "events_in_total", "counter", "Events that the query has taken."),
    Metric("rows_out", "rows_out_total", "counter", "Rows of its answer."),
    Metric("late", "late_events_total", "counter", "Events that came too late for the query."),
    Metric("steps", "steps_total", "counter", "Steps that the query has taken."),
    Metric("step_seconds", "step_seconds_total", "counter", "Seconds that its steps took."),
    Metric("state_rows", "state_rows", "gauge", "Rows that the query remembers."),
    Metric("state_bytes", "state_bytes", "gauge", "Bytes of what the query remembers."),
    Metric("waiting_rows", "waiting_rows", "gauge", "Rows that wait to be handed over."),
    Metric("handed_rows", "handed_rows_total", "counter", "Rows that a receiver has taken."),
    Metric("retried", "retries_total", "counter", "Calls of a receiver that were repeated."),
    Metric("stretch", "period_stretch", "gauge", "Factor by which periods are stretched."),
    Metric(
        "refreshes_left_out",
        "refreshes_left_out_total",
        "counter",
        "Refreshes that stretched periods have left out.",
    ),
    Metric("refreshes_waiting", "refreshes_waiting", "gauge", "Queries with a refresh that waits."),
    Metric(
        "refreshes_overdue",
        "refresh_rows_overdue_total",
        "counter",
        "Rows of refreshes that came after the next one was due.",
    ),
    Metric(
        "refreshes_behind_us",
        "refreshes_behind_microseconds",
        "gauge",
        "How far event time had gone on, at most, when a refresh was computed.",
    ),
    Metric("dead_rows", "dead_rows_total", "counter", "Rows that went to the dead letters."),
)


@dataclass(frozen=True, slots=True)
class RefreshNumbers:
    """How the refreshes of periodic queries are on time."""

    stretch: int
    left_out: int
    waiting: int
    overdue: int
    behind_us: int


TEXT_SHOWN = 120
"""So many letters of a query's text are in its label."""
STATUSES = ("running", "paused", "failed", "finished")

QUERIES = "eventide.queries"
"""The table of live queries in SQL."""
COLUMNS: Mapping[str, DataType] = {
    "id": INT64,
    "name": STRING,
    "status": STRING,
    "text": STRING,
    "since": TIMESTAMP,
    "events_in": INT64,
    "rows_out": INT64,
    "late": INT64,
    "step_seconds": FLOAT64,
    "state_rows": INT64,
    "state_bytes": INT64,
    "waiting_rows": INT64,
    "stretch": INT64,
    "failure": STRING,
}
SCHEMA = Schema(
    tuple(Attribute(name, kind) for name, kind in COLUMNS.items()), stored=False, timed=False
)


def numbers_of(query: Subscription) -> dict[str, Value]:
    """Return what is known of a live query: what it is, how it stands, its counters.

    `since` is the instant at which it began, in microseconds since 1970. A query that an interrupt
    cut short has no size.
    """
    counters, queue, failure = query.counters, query.queue, query.failure
    whole = failure is None or isinstance(failure, Exception)
    sizes = [size for _, size in query.sizes()] if whole else None
    refreshes = query.refreshes if whole else None
    return {
        "id": query.id,
        "name": query.name,
        "status": query.status,
        "text": query.text,
        "since": counters.since_us,
        "events_in": counters.events,
        "rows_out": counters.rows,
        "late": query.late_count,
        "steps": counters.steps,
        "step_seconds": query.step_seconds,
        "state_rows": None if sizes is None else sum(size.tuples for size in sizes),
        "state_bytes": None if sizes is None else sum(size.bytes for size in sizes),
        "waiting_rows": 0 if queue is None else queue.waiting_rows,
        "handed_rows": 0 if queue is None else queue.handed_rows,
        "retried": 0 if queue is None else queue.retried,
        "dead_rows": 0 if queue is None else queue.given_up_rows,
        "stretch": None if refreshes is None else refreshes.stretch,
        "refreshes_left_out": None if refreshes is None else refreshes.left_out,
        "refreshes_waiting": None if refreshes is None else refreshes.waiting,
        "refreshes_overdue": None if refreshes is None else refreshes.overdue,
        "refreshes_behind_us": None if refreshes is None else refreshes.behind_us,
        "failure": None if failure is None else f"{type(failure).__name__}: {failure}",
    }


def queries_source(queries: Iterable[Subscription]) -> TableSource:
    """Return the table of live queries, in the order in which they began."""
    found = [numbers_of(query) for query in queries]
    columns = {
        name: pa.array([each[name] for each in found], kind.arrow) for name, kind in COLUMNS.items()
    }
    # Rows without times are numbered from the earliest time on.
    order = pa.array(range(MIN_TS_US, MIN_TS_US + len(found)), pa.timestamp("us"))
    return TableSource(QUERIES, SCHEMA, pa.table({TS: order, **columns}))


def metrics_text(queries: Iterable[Mapping[str, Value]]) -> str:
    """Return the numbers of live queries in the text form that Prometheus scrapes.

    >>> shown = {"id": 1, "name": "fast", "text": "SELECT 1", "status": "running", "events_in": 5}
    >>> print("".join(metrics_text([shown]).splitlines(keepends=True)[:4]), end="")
    # HELP eventide_queries Live queries, by status.
    # TYPE eventide_queries gauge
    eventide_queries{status="running"} 1
    eventide_queries{status="paused"} 0
    """
    known = list(queries)
    lines = [
        "# HELP eventide_queries Live queries, by status.",
        "# TYPE eventide_queries gauge",
    ]
    for status in STATUSES:
        count = sum(query["status"] == status for query in known)
        lines.append(f"eventide_queries{labels({'status': status})} {count}")
    lines += [
        "# HELP eventide_query_info A live query: what it is, and how it stands.",
        "# TYPE eventide_query_info gauge",
    ]
    for query in known:
        text = shorten(str(query["text"]), TEXT_SHOWN, placeholder=" …")
        described = {**which(query), "status": str(query["status"]), "text": text}
        lines.append(f"eventide_query_info{labels(described)} 1")
    for metric in METRICS:
        lines += family(metric, known)
    return "\n".join(lines) + "\n"


def family(metric: Metric, queries: Iterable[Mapping[str, Value]]) -> Iterator[str]:
    """Yield the lines of one metric: what it is, then a line for each query."""
    name = f"eventide_query_{metric.name}"
    yield f"# HELP {name} {metric.meaning}"
    yield f"# TYPE {name} {metric.kind}"
    for query in queries:
        value = query.get(metric.key)
        if value is not None:
            yield f"{name}{labels(which(query))} {value}"


def which(query: Mapping[str, Value]) -> dict[str, str]:
    """Return the labels that tell one query from another."""
    return {"id": str(query["id"]), "name": str(query["name"] or "")}


def labels(named: Mapping[str, str]) -> str:
    r"""Return labels as Prometheus reads them.

    >>> labels({"name": 'a "b" \\ c'})
    '{name="a \\"b\\" \\\\ c"}'
    """
    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in named.items()) + "}"


def escaped(value: str) -> str:
    """Return the value of a label: no backslash, quote or line end stands as it is."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
