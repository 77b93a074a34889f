"""The buckets of many queries give together what the queries give in one place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random

import pyarrow as pa
import pytest

from eventide.engines.buckets import from_bytes
from eventide.engines.history.sharing.many import steps_in_order
from eventide.engines.live.sharing.distribution import shares_of
from eventide.engines.live.sharing.many import ManyStep
from eventide.engines.live.sharing.planned import ManyPlanner
from eventide.engines.spark.sharing.spread import ManySpread
from eventide.ingest.ordering import in_order
from eventide.lang.sql import plan_sql
from eventide.plan.sharing.rules import WITHOUT_PARTS
from tests.engines.live.sharing.texts import CATALOG, KINDS, STANDING, events
from tests.exploring import EXPLORING

Bag = Counter[tuple[object, ...]]


def bag(steps: Iterable[ManyStep]) -> Bag:
    found: Bag = Counter()
    for step in steps:
        assert not step.failed
        for each in step.rows:
            rows = map(repr, each.rows.to_pylist())
            found.update(zip(each.numbers.tolist(), rows, strict=True))
    return found


@pytest.mark.parametrize("seed", range(100 if EXPLORING else 4))
def test_buckets_give_together_what_one_place_gives(seed: int) -> None:
    random = Random(seed)
    kinds = [each for each in KINDS if each not in STANDING]
    texts = [random.choice(kinds)(random) for _ in range(20)]
    planner = ManyPlanner(lambda text, params: plan_sql(text, CATALOG, params), WITHOUT_PARTS)
    portions = planner.texts(texts, 0).portions
    came: dict[str, list[pa.RecordBatch]] = {}
    for stream in CATALOG:
        rows, _ = events(random, stream, 80, 0, 0, 0.1)
        came[stream] = [in_order(rows)]
    spread = ManySpread.of(shares_of(portions), 3, 2)
    routes = spread.routes(CATALOG)
    packed: dict[int, dict[str, list[bytes]]] = {}
    for number, stream in enumerate(routes.streams):
        for rows in came[stream]:
            for block in routes.packed(rows.select(routes.columns([number])), number):
                for bucket, payload in zip(*map(pa.Array.to_pylist, block.columns), strict=True):
                    packed.setdefault(bucket, {}).setdefault(stream, []).append(payload)
    assert max(packed) < routes.buckets == sum(spread.sizes)
    found: Bag = Counter()
    for bucket, payloads in packed.items():
        here = spread.portions_of(bucket)
        read = frozenset[str]().union(*(each.template.streams for each in here))
        schemas = {name: each for name, each in routes.schemas.items() if name in read}
        batches = {name: from_bytes(payloads.get(name, [])) for name in schemas}
        found += bag(steps_in_order(here, schemas, batches))
    assert found == bag(steps_in_order(portions, CATALOG, came))


def test_late_events_are_counted_once() -> None:
    texts = [
        "SELECT car, COUNT(*) AS n FROM cars GROUP BY car, TUMBLE(ts, INTERVAL '1' SECOND)",
        "SELECT COUNT(*) AS n FROM cars GROUP BY TUMBLE(ts, INTERVAL '1' SECOND)",
        "SELECT * FROM FILTER{speed > 5}(cars) NEXT{DUR <= 5s}(photos)",
    ]
    planner = ManyPlanner(lambda text, params: plan_sql(text, CATALOG, params), WITHOUT_PARTS)
    spread = ManySpread.of(shares_of(planner.texts(texts, 0).portions), 2, 8)
    assert spread.sizes == (2, 2)
    counted = [sorted(spread.counted(bucket)) for bucket in range(4)]
    assert counted == [["cars"], ["cars"], ["photos"], []]
