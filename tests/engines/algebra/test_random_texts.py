"""Random texts in CEL on all engines: the results of the twin, however events arrive."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eventide as ev
from eventide.engines.live.engine import LiveEngine
from eventide.engines.standing.choice import best_plan
from eventide.lang.sql import plan_sql
from eventide.lang.sql.statement import read_cel
from eventide.schema import TS, Schema
from tests.engines import engines
from tests.engines.live.arriving import in_pieces, lived
from tests.naive.algebra.events import TooMuch, bag
from tests.naive.algebra.plans import Row, Streams
from tests.naive.algebra.texts import WRITTEN, Written, written
from tests.naive.algebra.trees import events

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = {"start_ts": "timestamp", "k": "string", "n": "int64", "w": "string"}
SCHEMAS = dict.fromkeys("st", Schema.of(KINDS))
BEHIND_US = 3
"""No event comes later than this."""

pytestmark = pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")


def arriving(choose: random.Random, streams: Streams) -> Streams:
    """The same events in the order in which they arrive: some are behind others."""
    found = {}
    for name, rows in streams.items():
        mixed = sorted(rows, key=lambda row: row[TS] + choose.uniform(0, BEHIND_US))
        found[name] = [{**row, "_seq": seq} for seq, row in enumerate(mixed)]
    return found


def live(text: str, lateness_us: int) -> LiveEngine:
    return LiveEngine.of(best_plan(plan_sql(read_cel(text), SCHEMAS), {}), SCHEMAS, lateness_us)


@settings(deadline=None)
@given(WRITTEN, st.integers(0, 2**32))
def test_live(case: Written, seed: int) -> None:
    """Dumped and loaded between steps; events of an instant may come in several of them."""
    choose = random.Random(seed)
    steps = in_pieces(arriving(choose, case.streams), choose)
    found = lived(live(case.text, BEHIND_US), steps, SCHEMAS)
    assert not found.late
    assert bag(events(found.rows)) == bag(case.found), case.text


@settings(deadline=None)
@given(WRITTEN, st.integers(0, 2**32))
def test_late_events(case: Written, seed: int) -> None:
    choose = random.Random(seed)
    streams = arriving(choose, case.streams)
    found = lived(live(case.text, 0), in_pieces(streams, choose), SCHEMAS)
    try:
        expected = case.answer(found.on_time(streams))
    except TooMuch:
        return
    assert bag(events(found.rows)) == bag(expected), case.text


def stored(path: Path, streams: Streams, choose: random.Random) -> ev.Database:
    db = ev.open(path)
    for name, rows in streams.items():
        stream, place = db.create_stream(name, KINDS), 0
        while place < len(rows):
            count = choose.choice([1, 4, 20])
            part = pa.Table.from_pylist(rows[place : place + count], schema=SCHEMAS[name].arrow)
            stream.append(part.drop_columns(["_seq"]))
            place += count
    return db


@settings(deadline=None, max_examples=6)
@given(WRITTEN, st.integers(0, 2**32))
def test_over_a_store(case: Written, seed: int) -> None:
    """Published as well, and read in SQL."""
    choose = random.Random(seed)
    with TemporaryDirectory() as path:
        db = stored(Path(path), arriving(choose, case.streams), choose)
        found: list[Row] = engines.plain(db.cel(case.text).to_arrow())
        assert bag(events(found)) == bag(case.found), case.text
        query = case.text if case.text.startswith(("SELECT", "FROM")) else f"FROM {case.text}"
        db.cel(f"{query} PUBLISH found")
        for asked in ("SELECT * FROM found", f"SELECT * FROM CEL ({case.text})"):
            again = engines.plain(db.sql(asked).to_arrow())
            assert bag(events(again)) == bag(case.found), asked
        db.close()


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(3))
def test_spark_batch(seed: int, tmp_path: Path, spark: SparkSession) -> None:
    case, choose = written(seed, 3), random.Random(seed)
    db = stored(tmp_path / "db", arriving(choose, case.streams), choose)
    found = engines.collected(ev.spark(spark, db.path).sql(f"SELECT * FROM CEL ({case.text})"))
    assert bag(events(found)) == bag(case.found), case.text
