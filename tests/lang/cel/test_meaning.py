"""A text means what the event algebra says: random texts, over events that have lengths."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings

import eventide as ev
from eventide.schema import START_TS, TS
from tests.naive.algebra.events import bag
from tests.naive.algebra.plans import SCHEMA
from tests.naive.algebra.texts import ATTRIBUTES, WRITTEN, Written
from tests.naive.algebra.trees import events
from tests.operators.algebra.drive import plain


@settings(deadline=None)
@given(WRITTEN)
def test_random_texts(case: Written) -> None:
    tables = {
        name: pa.Table.from_pylist(rows, schema=SCHEMA.arrow).select([TS, START_TS, *ATTRIBUTES])
        for name, rows in case.streams.items()
    }
    found = ev.cel(case.text, **tables).to_arrow()
    rows = [row for batch in found.to_batches() for row in plain(batch)]
    assert bag(events(rows)) == bag(case.found), case.text
    times = [row[TS] for row in rows]
    assert times == sorted(times)
