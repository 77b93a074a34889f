"""How long queries take to come and go, and what a query takes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from statistics import mean

import numpy as np

from benchmarks.measure import collector_off
from benchmarks.sharing.sets import cayuga, usual
from benchmarks.sharing.sets.running import Asked, QuerySet, Running, rows_in, single_texts

DEPLOYED = 10_000
HELD, CHANGED, PORTIONS = 100_000, 1_000, 100


def with_constants(queries: QuerySet, count: int) -> list[str]:
    """Return texts with constants in them instead of parameters."""
    texts = []
    for text, values in single_texts(queries.asked(count)):
        written = text
        for name, value in (values or {}).items():
            shown = f"{value:.6f}" if isinstance(value, float) else f"{value}"
            written = written.replace(f"${name}", shown)
        texts.append(written)
    return texts


def deploying_s(queries: QuerySet, count: int) -> float:
    """Return the seconds until the first event has gone through so many queries.

    Kernels have been compiled by a smaller set of the same shape.
    """
    for some in (count // 10, count):
        arrived = next(queries.events())
        few = {name: rows.slice(0, 1) for name, rows in arrived.items()}
        with collector_off():
            began = time.process_time()
            Running(queries, some).take(few)
            seconds = time.process_time() - began
    return seconds


def of_template(count: int) -> float:
    """Return the seconds to deploy row patterns that are rows of one template."""
    return deploying_s(usual.PATTERNS, count)


def of_texts(count: int) -> float:
    """Return the seconds to deploy row patterns that are texts with different constants."""

    def asked(number: int) -> list[Asked]:
        return [(written[:number], None)]

    written = with_constants(usual.PATTERNS, count)
    return deploying_s(replace(usual.PATTERNS, asked=asked), count)


@dataclass(frozen=True, slots=True)
class Churn:
    """Seconds of queries that come and go, each by itself, and events a second beside them."""

    changes_s: float
    events_s: float
    quiet_events_s: float


def churn(queries: QuerySet, held: int, changed: int) -> Churn:
    """Let queries come, and as many go, between batches of events."""
    running = Running(queries, held)
    texts = with_constants(queries, changed)
    quiet = [batch_s(running) for _ in range(PORTIONS // 2)]
    changes, busy = 0.0, []
    each = changed // PORTIONS
    with collector_off():
        for portion in range(PORTIONS):
            began = time.process_time()
            for place in range(portion * each, (portion + 1) * each):
                come_and_go(running, texts[place : place + 1], held + place, place)
            changes += time.process_time() - began
            busy.append(batch_s(running))
    return Churn(changes, 1 / mean(busy), 1 / mean(quiet[1:]))


def come_and_go(running: Running, texts: Sequence[str], number: int, gone: int) -> None:
    """Let a query come, and one go."""
    for portion in running.planner.texts(texts, number).portions:
        running.many.add(portion)
    running.many.drop(np.array([gone]))


def batch_s(running: Running) -> float:
    """Return the seconds of an event, from one batch."""
    (arrived,) = islice(running.arriving, 1)
    began = time.process_time()
    running.take(arrived)
    return (time.process_time() - began) / rows_in(arrived)


def row_octets(count: int) -> dict[str, float]:
    """Return what a query of each template takes beside what its operators remember."""
    found = {}
    for name in ("static", *cayuga.TEMPLATES):
        running = Running(cayuga.template(name), count)
        few = {stream: rows.slice(0, 1) for stream, rows in next(running.arriving).items()}
        running.take(few)
        sizes = running.many.sizes()
        kept = sum(size.bytes for what, size in sizes if what in {"queries", "constants"})
        kept += sum(size.bytes for what, size in sizes if what.endswith(", conditions"))
        found[name] = kept / count
    return found
