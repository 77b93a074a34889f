"""Totals as partials, and as answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from eventide.kernels.compiled import Int64s
from eventide.kernels.store.answers import answer
from eventide.kernels.store.descent import COUNT
from eventide.store.reading.descent.table import table_of
from eventide.store.reading.descent.totals import Totals, totals_of
from eventide.store.reading.descent.words import ENDS, PLACES
from eventide.store.reading.proof import share_lost
from eventide.store.reading.question import AggregateQuestion
from eventide.store.snapshot import Snapshot

NULL = pa.py_buffer(b"\0")


def direct_partials(
    snapshot: Snapshot, question: AggregateQuestion, cuts: Sequence[int]
) -> pa.RecordBatch | None:
    """Return the partials of each period; None if they have to be found in another way."""
    if question.numbers is None:
        return None
    totals = totals_of(snapshot, question.numbers, cuts)
    if totals is None:
        return None
    return question.joined(int64_column(totals.rows), summaries(question, totals))


def summaries(question: AggregateQuestion, totals: Totals) -> pa.RecordBatch:
    """Return totals as summaries."""
    schema = question.layout.arrow
    arrays: list[pa.Array] = []
    for (_, columns), words in zip(question.layout.summaries, totals.words, strict=True):
        attribute = columns[0].removesuffix("count")
        bits = present(words)
        for name in columns:
            part = name.removeprefix(attribute)
            data = pa.py_buffer(np.ascontiguousarray(words[:, PLACES[part]]))
            buffers = [bits if part in ENDS else None, data]
            arrays.append(pa.Array.from_buffers(schema.types[len(arrays)], len(words), buffers))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def present(words: Int64s) -> pa.Buffer | None:
    """Return the validity of extremes; None if there are values everywhere."""
    counts = words[:, COUNT]
    return None if counts.all() else pa.array(counts > 0).buffers()[1]


def int64_column(values: Int64s) -> pa.Array:
    """Return numbers as a column."""
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])


def direct_answers(
    snapshot: Snapshot, question: AggregateQuestion, cuts: tuple[int, int]
) -> pa.RecordBatch | None:
    """Return the answers over one period; None if they have to be found in another way."""
    numbers, finishers = question.numbers, question.finishers
    if numbers is None or finishers is None:
        return None
    totals = totals_of(snapshot, numbers, cuts)
    if totals is None:
        return None
    additions = share_lost(snapshot, table_of(snapshot).entries)
    found: list[tuple[pa.Buffer, list[bool]]] = []
    for (_, kind), words, wanted in zip(numbers, totals.words, finishers.functions, strict=True):
        answers, valid = np.empty(len(wanted), np.int64), np.empty(len(wanted), np.bool_)
        if not answer(kind, words[0], wanted, additions, answers, valid):
            return None
        found.append((pa.py_buffer(answers), valid.tolist()))
    arrays = []
    for attribute, position, data_type in finishers.columns:
        if attribute < 0:
            arrays.append(int64_column(totals.rows))
            continue
        words_of_all, all_valid = found[attribute]
        bits = None if all_valid[position] else NULL
        data = words_of_all.slice(8 * position, 8)
        arrays.append(pa.Array.from_buffers(data_type, 1, [bits, data]))
    return pa.RecordBatch.from_arrays(arrays, schema=finishers.schema)
