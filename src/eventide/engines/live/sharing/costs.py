"""What each of many queries costs: its share of the time and memory of what it shares.

    time      what the index took, and the steps of its template, by the rows that it took of all
    memory    its conditions and constants, as many bytes as those of others; what operators keep,
              which does not say whose it is, by the rows that it took

What a part costs is divided evenly among those that read its rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from eventide.engines.live.sharing.engine import shared_of
from eventide.engines.live.sharing.many import ManyQueries
from eventide.engines.live.sharing.run import TemplateRun
from eventide.engines.live.sharing.tree.states import SharedStates
from eventide.kernels.compiled import Floats, Int32s, Int64s
from eventide.plan.sharing.part_rows import PARTS_FROM


@dataclass(frozen=True, slots=True)
class QueryCosts:
    """The costs of queries, by number."""

    numbers: Int64s
    rows_in: Int64s
    rows_out: Int64s
    seconds: Floats
    nbytes: Floats


def costs_of(many: ManyQueries) -> QueryCosts:
    """Return what each query costs, in order of their numbers."""
    states = (state for shared in many.shared for state in shared.states)
    found = [*map(costs_in, map(shared_of, states)), *lone_costs(many)]
    columns = [
        np.concatenate([np.empty(0), *(getattr(each, name) for each in found)])
        for name in ("numbers", "rows_in", "rows_out", "seconds", "nbytes")
    ]
    order = np.argsort(columns[0], kind="stable")
    numbers, rows_in, rows_out = (each[order].astype(np.int64) for each in columns[:3])
    return QueryCosts(numbers, rows_in, rows_out, columns[3][order], columns[4][order])


def costs_in(states: SharedStates) -> QueryCosts:
    """Return what the queries of a state cost."""
    here = states.numbers.with_parts
    places, rows = states.numbers.of(here)
    rows_in, rows_out = (np.zeros(len(here), np.int64) for _ in range(2))
    seconds, nbytes = np.zeros(len(here)), np.zeros(len(here))
    conditions = sum(len(each) for each in states.indexes.values())
    of_condition = sum(each.nbytes for each in states.indexes.values()) / max(conditions, 1)
    taken = sum(int(run.counts.taken.sum()) for run in states.runs)
    for place, run in enumerate(states.runs):
        own = np.flatnonzero(places == place)
        rows_in[own], rows_out[own] = run.counts.taken[rows[own]], run.counts.given[rows[own]]
        kept = sum(size.bytes for _, size in run.sizes)
        seconds[own] = run.done.seconds * shares(run, rows[own])
        seconds[own] += states.finding_seconds * rows_in[own] / max(taken, 1)
        nbytes[own] = kept * shares(run, rows[own]) + run.nbytes / max(run.rows, 1)
        nbytes[own] += of_condition * len(run.tree.numbered)
    for place, run in enumerate(states.runs):
        own = np.flatnonzero(places == place)
        parts = np.searchsorted(here, run.parts_of(rows[own]))
        readers = np.array([states.readers[number] for number in here[parts].tolist()], np.int64)
        if len(parts):
            seconds[own] += seconds[parts] / readers
            nbytes[own] += nbytes[parts] / readers
    queries = here < PARTS_FROM
    return QueryCosts(
        here[queries], rows_in[queries], rows_out[queries], seconds[queries], nbytes[queries]
    )


def shares(run: TemplateRun, places: Int64s | Int32s) -> Floats:
    """Return the shares of queries in what a template does: by rows, or if there are none alike."""
    own, whole = run.counts.taken[places], int(run.counts.taken.sum())
    return own / whole if whole else np.full(len(own), 1 / max(run.rows, 1))


def lone_costs(many: ManyQueries) -> Iterator[QueryCosts]:
    """Yield the costs of queries that run by themselves."""
    for number, lone in many.lone.items():
        kept = sum(size.bytes for _, size in lone.engine.sizes(lone.state))
        yield QueryCosts(
            np.array([number]),
            np.array([lone.done.rows_in]),
            np.array([lone.done.rows_out]),
            np.array([lone.done.seconds]),
            np.array([float(kept)]),
        )
