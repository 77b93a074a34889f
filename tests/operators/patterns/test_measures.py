"""Measures whose names could collide."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eventide.engines.build import build_tree
from eventide.instants import END_OF_TIME_US
from eventide.lang.sql import plan_sql
from eventide.schema import Schema

NAMES = ("classifier()", "classifier", "classifier'")


@pytest.mark.parametrize("rows", ["ONE ROW PER MATCH", "ALL ROWS PER MATCH"])
@pytest.mark.parametrize("name", NAMES)
def test_a_column_may_be_called_like_the_classifier(name: str, rows: str) -> None:
    schema = Schema.of({"x": "int64", **dict.fromkeys(NAMES, "string")})
    text = f"""SELECT joined, least FROM s MATCH_RECOGNIZE (
        MEASURES FINAL LAST(CLASSIFIER() || "{name}") AS joined,
            FINAL MIN(CLASSIFIER() || "{name}") AS least
        {rows} PATTERN (A B) DEFINE B AS B.x > A.x)"""
    tree = build_tree(plan_sql(text, {"s": schema}))
    events = [
        {"ts": place, "_seq": place, "x": place, **{each: f" {each} {place}" for each in NAMES}}
        for place in range(2)
    ]
    batch = pa.RecordBatch.from_pylist(events, schema=schema.arrow)
    batch = batch.select(tree.input_schema.names)
    _, results = tree.step(tree.initial_state(), (batch,), END_OF_TIME_US)
    found = results.select(["joined", "least"]).to_pylist()
    assert found[0] == {"joined": f"B {name} 1", "least": f"A {name} 0"}
    assert len(found) == (1 if rows.startswith("ONE") else 2)
