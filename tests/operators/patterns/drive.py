"""Drives the general match search over one partition, as the operator would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.kernels.compiled import frozen
from eventide.kernels.patterns.search import Found, search, searchable
from eventide.kernels.patterns.tables import Partitions, Rows, Rules
from eventide.operators.patterns.conditions import Conditions
from eventide.plan.patterns.nodes import MatchRecognize
from tests.naive.patterns.rows import Taken, View, value_in

Row = dict[str, Any]
Path = tuple[tuple[int, str], ...]
Matched = tuple[int, int | None, Path]
"""Start row, number or None if timed out, and (row, variable) of what was taken."""

STRATEGIES = {"contiguous": 0, "skip_till_next": 1, "skip_till_any": 2}
SKIPS = {"past last row": 0, "next row": 1, "first": 2, "last": 3}


def masks_of(node: MatchRecognize, conditions: Conditions, rows: list[Row]) -> Any:  # noqa: ANN401
    """Compute row by row what each row's own values say."""
    masks = np.zeros(len(rows), np.uint64)
    for row in range(len(rows)):
        for variable, condition in enumerate(conditions.local):
            path = (Taken(row, node.variables[variable]),)
            view = View(node, rows, path, path, None)
            if condition is None or value_in(condition, view) is True:
                masks[row] |= np.uint64(1 << variable)
    return frozen(masks)


def batch_of(node: MatchRecognize, rows: Sequence[Row]) -> pa.RecordBatch:
    kinds = node.source.row.items()
    arrays = [pa.array([row[name] for row in rows], kind.arrow) for name, kind in kinds]
    return pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in kinds])


def rules_of(node: MatchRecognize, **changes: Any) -> Rules:  # noqa: ANN401
    sets = {name: 1 << number for number, name in enumerate(node.variables)}
    for name, members in node.subsets:
        sets[name] = sum(sets[each] for each in members)
    rules = Rules(
        strategy=STRATEGIES[node.strategy],
        within_us=-1 if node.within_us is None else node.within_us,
        skip_to=SKIPS[node.skip.to],
        skip_set=sets.get(node.skip.variable or "", 0),
        timeouts=node.timeout_rows,
    )
    return rules._replace(**changes)


def partition(
    rows: int, *, begin: int = 0, known: int | None = None, seen: int = 0, number: int = 0
) -> Partitions:
    def one(value: int) -> Any:  # noqa: ANN401
        return frozen(np.array([value], np.int64))

    return Partitions(
        frozen(np.array([0, rows], np.int64)),
        one(begin),
        one(rows if known is None else known),
        frozen(np.array([True])),
        one(seen),
        one(number),
    )


def look(
    conditions: Conditions,
    rows: list[Row],
    parts: Partitions | None = None,
    **changes: Any,  # noqa: ANN401
) -> Found:
    """Search one partition."""
    node = conditions.node
    ts = frozen(np.array([row["ts"] for row in rows], np.int64))
    return search(
        searchable(conditions.steps),
        conditions.code,
        conditions.tables(batch_of(node, rows)),
        Rows(ts, masks_of(node, conditions, rows)),
        partition(len(rows)) if parts is None else parts,
        rules_of(node, **changes),
    )


def listed(found: Found, conditions: Conditions) -> list[Matched]:
    """Return what was found in the form the oracle has it."""
    names = [conditions.automaton.variables[node] for node in conditions.steps.node_variable[1:]]
    matched: list[Matched] = []
    for each in range(len(found.start)):
        taken = slice(found.first[each], found.first[each + 1])
        path = zip(found.row[taken].tolist(), found.node[taken].tolist(), strict=True)
        number = None if found.timed_out[each] else int(found.number[each])
        steps = tuple((row, names[node - 1]) for row, node in path)
        matched.append((int(found.start[each]), number, steps))
    return matched


def in_pieces(conditions: Conditions, rows: list[Row], cuts: Sequence[int]) -> list[Matched]:
    """Search while rows still come, `cuts` saying how many there are at each call."""
    begin = seen = number = 0
    last_watermark = -(2**62)
    matched: list[Matched] = []
    for cut in [*sorted(cuts), None]:
        ended = cut is None
        there = rows[:cut]
        known = len(there) if ended else max(seen, len(there) - conditions.reach_ahead)
        watermark = 2**61 if len(there) == len(rows) else rows[len(there)]["ts"]
        parts = partition(len(there), begin=begin, known=known, seen=seen, number=number)
        found = look(
            conditions,
            there,
            parts,
            ended=ended,
            watermark_us=watermark,
            last_watermark_us=last_watermark,
        )
        assert found.status == 0
        matched += listed(found, conditions)
        begin, number = int(found.next[0]), int(found.numbers[0])
        seen, last_watermark = known, watermark
    return matched
