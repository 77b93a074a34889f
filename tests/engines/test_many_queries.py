"""Many queries together have the rows that each has alone over history, on all engines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import eventide as ev
from tests.engines.live.sharing.texts import (
    ALIKE,
    CATALOG,
    KINDS,
    PERIODIC,
    SECOND,
    STANDING,
    Draw,
    events,
)
from tests.exploring import EXPLORING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")
LATENESS = 3 * SECOND
"""No event comes later than that."""
Bag = Counter[tuple[str, ...]]
Arrivals = list[tuple[str, pa.RecordBatch]]
Way = Callable[[dict[str, str], Arrivals, ev.Database], dict[str, Bag]]


def arrivals(random: Random) -> Arrivals:
    """Events of both streams, some tied, some late, with nulls."""
    now_us, following, found = 0, dict.fromkeys(CATALOG, 0), []
    for place in range(8):
        stream = "photos" if place % 3 == 2 else "cars"
        rows, now_us = events(random, stream, 25, now_us, following[stream], 0.1)
        following[stream] += 25
        found.append((stream, rows))
    return found


def drawn(random: Random, kinds: Iterable[Draw], each: int) -> dict[str, str]:
    texts = [kind(random) for kind in kinds for _ in range(each)]
    return {f"query {place}": text for place, text in enumerate(texts)}


def empty(folder: Path) -> ev.Database:
    db = ev.open(folder)
    for name, schema in CATALOG.items():
        db.create_stream(name, schema.to_json())
    return db


def stored(folder: Path, came: Arrivals) -> ev.Database:
    db = empty(folder)
    for stream, rows in came:
        db.stream(stream).append(rows.drop_columns(["_seq"]))
    return db


def bag(table: pa.Table) -> Bag:
    """The rows, whatever the label of their times."""
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            times = table.column(place).cast(pa.int64())
            table = table.set_column(place, field.name, times)
    return Counter(tuple(map(repr, row.items())) for row in table.to_pylist())


def by_query(tables: Iterable[pa.Table]) -> dict[str, Bag]:
    """The rows of each query, from tables in which a column says which query a row is of."""
    found: dict[str, Bag] = {}
    for table in tables:
        for name in table.column("query").unique().to_pylist():
            own = table.filter(pc.equal(table.column("query"), name))
            found[name] = found.get(name, Counter()) + bag(own.drop_columns(["query"]))
    return found


def alone(texts: dict[str, str], db: ev.Database) -> dict[str, Bag]:
    rows = {name: bag(db.sql(text).to_arrow()) for name, text in texts.items()}
    return {name: each for name, each in rows.items() if each}


def over_history(texts: dict[str, str], _: Arrivals, db: ev.Database) -> dict[str, Bag]:
    found = db.sql_many(texts)
    assert [name for name, _ in found] == list(texts)
    tables = by_query(each.to_arrow() for each in found.tables())
    assert tables == {name: bag(rows.to_arrow()) for name, rows in found if len(rows)}
    return tables


def live(texts: dict[str, str], came: Arrivals, db: ev.Database) -> dict[str, Bag]:
    found: list[pa.Table] = []
    with empty(db.path / "live") as other:
        running = other.subscribe_many(
            texts, on_result=lambda rows: found.append(rows.to_arrow()), lateness=f"{LATENESS} us"
        )
        for stream, rows in came:
            other.stream(stream).append(rows.drop_columns(["_seq"]))
        running.finish()
    return by_query(found)


WITHOUT_END = ALIKE[:-1]
"""Those that run live too."""
CASES: dict[str, tuple[Way, tuple[Draw, ...]]] = {
    "history": (over_history, ALIKE),
    "history, all kinds": (over_history, KINDS),
    "live": (live, WITHOUT_END),
    "live, all kinds": (live, tuple(each for each in KINDS if each not in (*STANDING, *PERIODIC))),
}


def spark_batch(
    texts: dict[str, str], came: Arrivals, db: ev.Database, session: SparkSession
) -> dict[str, Bag]:
    """One stream is a DataFrame, the other one is stored."""
    path = db.path / "cars.parquet"
    pq.write_table(pa.Table.from_batches([rows for name, rows in came if name == "cars"]), path)
    cars = session.read.parquet(str(path)).repartition(3)
    return by_query([ev.spark(session, db.path).sql_many(texts, cars=cars).toArrow()])


@pytest.mark.spark
def test_each_query_has_the_same_rows_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    random = Random(0)
    came, texts = arrivals(random), drawn(random, ALIKE, 3)
    with stored(tmp_path, came) as db:
        assert spark_batch(texts, came, db, spark) == alone(texts, db)


@pytest.mark.parametrize("seed", range(50 if EXPLORING else 1))
@pytest.mark.parametrize("case", CASES)
def test_each_query_has_the_rows_that_it_has_alone(seed: int, case: str, tmp_path: Path) -> None:
    random = Random(seed)
    run, kinds = CASES[case]
    came, texts = arrivals(random), drawn(random, kinds, 3)
    with stored(tmp_path, came) as db:
        assert run(texts, came, db) == alone(texts, db)
