"""Parts of one stream inside each other are one projection of one selection of it."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eventide as ev
from eventide.lang.sql import plan_sql
from eventide.lang.sql.statement import read_cel
from eventide.plan.nodes import Filter, Project, Scan
from eventide.plan.passes import optimise
from eventide.plan.tree import Plan
from eventide.schema import START_TS, TS, Schema
from tests.naive.algebra.events import bag
from tests.naive.algebra.plans import SCHEMA, streams
from tests.naive.algebra.texts import ATTRIBUTES, Part, Writer, bags_of
from tests.naive.algebra.trees import events
from tests.operators.algebra.drive import plain

OF_TEXTS = Schema.of({"start_ts": "timestamp", "k": "string", "n": "int64", "w": "string"})


def chain(choose: random.Random, length: int) -> Part:
    """Selections, projections and computations of one stream, one around the other."""
    writer = Writer(choose)
    part = writer.leaf()
    for _ in range(length):
        part = writer.changed(part)
    return part


def shape(plan: Plan) -> str:
    """The nodes of a plan over one stream, from the top."""
    names = {Project: "π", Filter: "σ", Scan: "S"}
    said = names[type(plan)]
    return said + "".join(map(shape, plan.children))


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 6))
def test_a_chain_means_what_its_parts_mean(seed: int, length: int) -> None:
    choose = random.Random(seed)
    part, given_ = chain(choose, length), streams(choose, 12)
    tables = {
        name: pa.Table.from_pylist(rows, schema=SCHEMA.arrow).select([TS, START_TS, *ATTRIBUTES])
        for name, rows in given_.items()
    }
    found = ev.cel(part.text, **tables).to_arrow()
    rows = [row for batch in found.to_batches() for row in plain(batch)]
    assert bag(events(rows)) == bag(part.meaning(bags_of(given_))), part.text


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("FILTER{b > 1} (SELECT n AS b FROM FILTER{n < 9} s)", "πσS"),
        ("SELECT b FROM FILTER{k = 'p'} (SELECT n + 1 AS b, k FROM FILTER{n < 9} s)", "πσS"),
        ("FILTER{a = 'p'} (SELECT b AS a FROM (SELECT a AS b FROM (SELECT k AS a FROM s)))", "πσS"),
        ("SELECT w FROM (SELECT * FROM s)", "πS"),
        # What is computed from computed values is not written out again and again.
        ("SELECT b + b AS c FROM (SELECT n + n AS b FROM FILTER{n < 9} s)", "ππσS"),
    ],
)
def test_a_chain_is_one_selection_and_one_projection(text: str, normal: str) -> None:
    plan = optimise(plan_sql(read_cel(text), {"s": OF_TEXTS}))
    assert shape(plan) == normal
