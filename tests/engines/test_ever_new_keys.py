"""Live queries over keys that come and go: the state stays bounded, and so does a step.

These tests count keys, rows and bytes; how long a step takes is shown by the benchmarks.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import eventide as ev
from eventide.api.live import late as late_events
from eventide.api.live.late import LateEvents
from eventide.engines.live.engine import LiveEngine
from eventide.errors import UnboundedStateWarning
from eventide.lang.sql import plan_sql
from eventide.operators import key_layers
from eventide.operators.key_layers import KeyLayers, TakenKeys
from eventide.operators.patterns import arranged
from eventide.plan.bounds import unbounded_reasons
from eventide.schema import SEQ, TS, Schema
from tests.engines.scenarios import as_bag
from tests.exploring import EXPLORING

SECOND = 1_000_000
ATTRIBUTES = {"k": "string", "v": "float64"}

PATTERN = (
    "SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts {} WITHIN INTERVAL '5' SECOND {})"
)
BOUNDED = {
    "tumbling": "SELECT k, SUM(v) AS v FROM s GROUP BY k, TUMBLE(ts, INTERVAL '5' SECOND)",
    "hopping": """SELECT k, SUM(v) AS v FROM s
      GROUP BY k, HOP(ts, INTERVAL '2' SECOND, INTERVAL '6' SECOND)""",
    "range frame": """SELECT k, ts, SUM(v) OVER (PARTITION BY k ORDER BY ts
      RANGE BETWEEN INTERVAL '5' SECOND PRECEDING AND CURRENT ROW) AS v FROM s""",
    "pattern over windows": """SELECT * FROM (
        SELECT k, window_end AS ts, SUM(v) AS v FROM s
        GROUP BY k, TUMBLE(ts, INTERVAL '2' SECOND))
      MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.v AS v
        PATTERN (A B) WITHIN INTERVAL '9' SECOND DEFINE B AS v > 4)""",
    "sessions": "SELECT k, SUM(v) AS v FROM s GROUP BY k, SESSION(ts, INTERVAL '5' SECOND)",
    "single events": "SELECT k, SUM(v) AS v FROM s GROUP BY k, TUMBLE(ROWS, 1)",
    "rises": PATTERN.format(
        "MEASURES LAST(B.v) AS v", "PATTERN (A B+ C) DEFINE B AS v > PREV(v), C AS v < PREV(v)"
    ),
    "search": PATTERN.format(
        "MEASURES LAST(B.v) AS v", "PATTERN (A B+ C) DEFINE B AS v >= AVG(B.v), C AS v < AVG(B.v)"
    ),
    "next match": PATTERN.format(
        "MEASURES COUNT(*) AS n",
        "STRATEGY skip_till_next PATTERN (A NOT C B) DEFINE B AS v > A.v, C AS v = 3",
    ),
    "any match": PATTERN.format(
        "MEASURES B.v AS v",
        "STRATEGY skip_till_any PATTERN (A NOT C B NOT C) DEFINE B AS v > A.v, C AS v = 3",
    ),
    "timeouts": PATTERN.format(
        "MEASURES COUNT(*) AS n", "TIMEOUT ROWS PATTERN (A B) DEFINE A AS v > 1, B AS v > 6"
    ),
    "unmatched": PATTERN.format(
        "MEASURES COUNT(*) AS n ALL ROWS PER MATCH WITH UNMATCHED ROWS",
        "PATTERN (A B) DEFINE A AS v > 3, B AS v > A.v",
    ),
    "pattern": """SELECT * FROM s TPSTREAM (PARTITION BY k
      DEFINE a AS v > 3, b AS v > 6 GAP 3 SECONDS
      PATTERN a contains b; a overlaps b; a starts b WITHIN 5 SECONDS RETURN MAX(a.v) AS v)""",
    "confirmed": """SELECT * FROM s TPSTREAM (PARTITION BY k
      DEFINE a AS v > 3 AT LEAST 1 SECOND, b AS v > 6 GAP 3 SECONDS
      PATTERN a contains b; a overlaps b; a starts b WITHIN 5 SECONDS CONFIRM
      RETURN MAX(a.v) AS v)""",
    "situations": """SELECT * FROM s SITUATIONS (PARTITION BY k DEFINE a AS v > 3 GAP 3 SECONDS
      RETURN MAX(v) AS v)""",
}
KEEPING = {
    "count windows": ("SELECT k, SUM(v) AS v FROM s GROUP BY k, TUMBLE(ROWS, 4)", "counter"),
    "hopping counts": ("SELECT k, SUM(v) AS v FROM s GROUP BY k, HOP(ROWS, 1, 3)", "counter"),
    "rows frame": (
        """SELECT k, ts, SUM(v) OVER (PARTITION BY k ORDER BY ts
      ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS v FROM s""",
        "last 2 rows are kept",
    ),
    "numbered": (
        PATTERN.format("MEASURES MATCH_NUMBER() AS n", "PATTERN (A B) DEFINE B AS v > 4"),
        "for MATCH_NUMBER",
    ),
    "first rows": (
        PATTERN.format("MEASURES B.v AS v", "PATTERN (^ A B) DEFINE B AS v > 4"),
        r"for \^",
    ),
    "last rows": (
        PATTERN.format("MEASURES B.v AS v", "PATTERN (A B $) DEFINE B AS v > 4"),
        r"for \$",
    ),
    "falls from the first": (
        PATTERN.format("MEASURES B.v AS v", "PATTERN (A B) DEFINE A AS v > PREV(v)"),
        "last row is kept, which PREV looks at",
    ),
    "looks back in a measure": (
        PATTERN.format("MEASURES PREV(A.v, 2) AS v", "PATTERN (A B) DEFINE B AS v > 4"),
        "last 2 rows are kept, which PREV",
    ),
    "looks ahead": (
        PATTERN.format("MEASURES B.v AS v", "PATTERN (A B) DEFINE B AS v > NEXT(v)"),
        "last row is kept until NEXT",
    ),
    "limited": (
        """SELECT * FROM s TPSTREAM (PARTITION BY k DEFINE a AS v > 3, b AS v > 6 GAP 3 SECONDS
      PATTERN a contains b; a starts b; a equals b; b finishes a WITHIN 5 SECONDS LIMIT 2 PER KEY
      RETURN MAX(a.v) AS v)""",
        "for LIMIT",
    ),
}
SILENT = """SELECT * FROM s TPSTREAM (PARTITION BY k DEFINE a AS v > 3, b AS v > 6 GAP 3 SECONDS
  PATTERN a equals b WITHIN 5 SECONDS RETURN MAX(a.v) AS v)"""
STANDING = {
    "groups": "SELECT k, COUNT(*) AS n, MAX(v) AS v FROM s [RANGE 5 SECONDS] GROUP BY k",
    "distinct": "SELECT DISTINCT k FROM s [RANGE 5 SECONDS]",
    "join": """SELECT a.k, a.v FROM s [RANGE 5 SECONDS] AS a, s [RANGE 3 SECONDS] AS b
      WHERE a.k = b.k""",
    "sessions": "SELECT k, COUNT(*) AS n FROM s [PARTITION BY k SESSION 3 SECONDS] GROUP BY k",
    "exists": """SELECT k, v FROM s [RANGE 5 SECONDS] AS a
      WHERE NOT EXISTS (SELECT * FROM s [RANGE 2 SECONDS] AS b WHERE b.k = a.k AND b.v > 6)""",
    "texts": "SELECT COUNT(DISTINCT k) AS n, TOP_K(k, 3) AS k FROM s [RANGE 5 SECONDS]",
}


def fresh_events(step: int, count: int, first: int) -> pa.RecordBatch:
    """Return events of keys that never came before and never come again, three of each."""
    rng = np.random.default_rng(step)
    number = np.arange(3 * count)
    ts = step * SECOND + np.sort(rng.integers(0, SECOND, 3 * count))
    names = [f"key {step} {i}" for i in rng.permutation(3 * count) % count]
    values = rng.integers(0, 10, 3 * count).astype(float)
    columns = [pa.array(ts).view(pa.timestamp("us")), number + first, names, values]
    return pa.RecordBatch.from_arrays(list(map(pa.array, columns)), [TS, SEQ, "k", "v"])


def weights_of(state: Any) -> Iterator[int]:  # noqa: ANN401 - what operators remember
    """Yield how much operators hold in layers, in a state of any shape."""
    if isinstance(state, KeyLayers):
        yield state.weight
    elif isinstance(state, tuple):
        for each in state:
            yield from weights_of(each)
    else:
        for name in ("keys", "done", "operators"):
            yield from weights_of(getattr(state, name, ()))


@pytest.mark.parametrize("name", BOUNDED)
def test_keys_that_do_not_come_back_are_forgotten(name: str, tmp_path: Path) -> None:
    db = ev.open(tmp_path)
    db.create_stream("s", ATTRIBUTES)
    # A warning would be an error.
    query = db.subscribe(BOUNDED[name])
    sizes, held = [], []
    with patch.object(key_layers, "FEW", 256):
        for step in range(40):
            query.push(fresh_events(step, 100, 300 * step))
            sizes.append(len(query.engine.dump(query.state)))
            held.append(sum(weights_of(query.state)))
    assert max(sizes[25:]) <= 1.2 * max(sizes[10:25]) + 2000, sizes
    assert max(held[25:]) <= 1.5 * max(held[10:25]) + 300, held
    assert max(sizes[25:]) < 400_000


@pytest.mark.parametrize("name", STANDING)
def test_groups_and_joins_forget_keys(name: str, tmp_path: Path) -> None:
    db = ev.open(tmp_path)
    db.create_stream("s", ATTRIBUTES)
    query = db.subscribe(STANDING[name])
    sizes = []
    for step in range(40):
        query.push(fresh_events(step, 100, 300 * step))
        sizes.append(sum(size.bytes for _, size in query.sizes()))
    assert max(sizes[25:]) <= 1.2 * max(sizes[10:25]) + 2000, sizes


@pytest.mark.parametrize("name", KEEPING)
def test_what_is_kept_of_every_key_is_said_when_subscribing(name: str, tmp_path: Path) -> None:
    text, reason = KEEPING[name]
    db = ev.open(tmp_path)
    db.create_stream("s", ATTRIBUTES)
    with pytest.warns(
        UnboundedStateWarning, match=f"of every key that ever came .*{reason}"
    ) as told:
        query = db.subscribe(text)
    assert told[0].filename == __file__
    # It is true: what is held does grow, by something for each key, and it is not events.
    sizes = []
    for step in range(30):
        query.push(fresh_events(step, 50, 150 * step))
        sizes.append(len(query.engine.dump(query.state)))
    grown = (sizes[29] - sizes[14]) / (15 * 50)
    assert 4 < grown < 250
    # Without keys there is only one.
    alone = (
        text.replace("PARTITION BY k", "").replace("BY k, ", "BY ").replace("SELECT k, ", "SELECT ")
    )
    assert not list(unbounded_reasons(plan_sql(alone, {"s": Schema.of(ATTRIBUTES)})))


@pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")
@pytest.mark.parametrize("name", [*BOUNDED, *KEEPING])
def test_a_step_looks_at_the_keys_of_its_events(name: str, tmp_path: Path) -> None:
    text = BOUNDED.get(name) or KEEPING[name][0]
    db = ev.open(tmp_path)
    db.create_stream("s", ATTRIBUTES)
    query = db.subscribe(text)
    query.push(fresh_events(0, 4000, 0))
    query.push(fresh_events(1, 10, 20_000))
    looked_at: list[int] = []
    taken = KeyLayers.taken

    def told(self: KeyLayers[Any], *asked: Any) -> TakenKeys[Any]:  # noqa: ANN401
        found = taken(self, *asked)
        looked_at.append(found.part.weight)
        return found

    with patch.object(KeyLayers, "taken", told):
        for place in range(5):
            one = fresh_events(0, 4000, 30_000).slice(place, 1)
            later = pa.array([2 * SECOND + place]).view(pa.timestamp("us"))
            query.push(one.set_column(0, TS, later))
    if name not in ("tumbling", "hopping"):
        assert len(looked_at) >= 5
    assert sum(looked_at) < 200


@pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")
@pytest.mark.parametrize("name", [*BOUNDED, *KEEPING])
@pytest.mark.parametrize("seed", range(9 if EXPLORING else 1))
def test_layers_change_no_answer(name: str, seed: int) -> None:
    text = BOUNDED.get(name) or KEEPING[name][0]
    schema = Schema.of(ATTRIBUTES)
    engine = LiveEngine.of(plan_sql(text, {"s": schema}), {"s": schema}, SECOND // 2)
    rng = random.Random(seed)
    batches: list[pa.RecordBatch] = []
    clock = 0
    for _ in range(60):
        rows = []
        for _ in range(rng.choice([0, 1, 1, 2, 5, 30])):
            clock += rng.choice([0, 0, 1, 20, 300, 2500]) * 1000
            key = rng.choice(["a", "b", None, f"n{clock // SECOND}", f"m{rng.randrange(40)}"])
            rows.append((clock - rng.choice([0, 0, 200]) * 1000, key, float(rng.randrange(10))))
        columns = [list(each) for each in zip(*rows, strict=True)] or [[], [], []]
        ts, keys, values = columns
        seq = list(range(1000 * len(batches), 1000 * len(batches) + len(ts)))
        arrays = [pa.array(ts, pa.int64()).view(pa.timestamp("us")), pa.array(seq, pa.int64())]
        arrays += [pa.array(keys, pa.string()), pa.array(values, pa.float64())]
        batches.append(pa.RecordBatch.from_arrays(arrays, [TS, SEQ, "k", "v"]))

    def answer(
        few: int, reloads: int, *, idle: int = 256, many: int = 4096
    ) -> list[list[tuple[str, ...]]]:
        state, found = engine.initial_state(), []
        layers = patch.multiple(key_layers, FEW=few, FOR_EACH_EVENT=0)
        with layers, patch.multiple(arranged, IDLE_EVENTS=idle, MANY_EVENTS=many):
            for number, batch in enumerate(batches):
                state, arrival = engine.push(state, batch)
                found.append(as_bag(arrival.rows.to_pylist()))
                if reloads and number % reloads == reloads // 2:
                    state = engine.load(engine.dump(state))
            _, arrival = engine.finish(state)
        return [*found, as_bag(arrival.rows.to_pylist())]

    whole = answer(1_000_000, reloads=0)
    assert sum(map(len, whole)) > 3, "an empty answer shows nothing"
    for few, reloads in ((0, 0), (0, 1), (0, 7), (12, 7)):
        assert answer(few, reloads) == whole, (few, reloads)
    if "MATCH_RECOGNIZE" in text:
        # Keys of which nothing is known may stay; rows may be put in order in one step or two.
        for few, reloads in ((1_000_000, 0), (1_000_000, 7), (12, 7)):
            assert answer(few, reloads, idle=0) == whole, (few, reloads)
        assert answer(1_000_000, 7, many=0) == whole


def test_closed_situations_do_not_hide_that_a_key_falls_silent() -> None:
    schema = Schema.of(ATTRIBUTES)
    engine = LiveEngine.of(plan_sql(SILENT, {"s": schema}), {"s": schema}, 0)
    # Key a: over at 2, and at 6 no longer needed; from 4.5 on, until it has been silent for 3 s.
    first = [(1.0, "a", 9), (2.0, "a", 0), (4.5, "a", 9), (7.0, "b", 0)]
    batches: list[list[tuple[float, str, int]]] = [first, [(7.2, "c", 0)], [(8.0, "d", 0)]]
    with patch.object(key_layers, "FEW", 0), patch.object(key_layers, "FOR_EACH_EVENT", 0):
        state, found = engine.initial_state(), []
        for number, batch in enumerate(batches):
            ts = pa.array([round(at * SECOND) for at, _, _ in batch]).view(pa.timestamp("us"))
            seq = pa.array(range(9 * number, 9 * number + len(batch)), pa.int64())
            keys = pa.array([key for _, key, _ in batch])
            values = pa.array([float(value) for _, _, value in batch])
            rows = pa.RecordBatch.from_arrays([ts, seq, keys, values], [TS, SEQ, "k", "v"])
            state, arrival = engine.push(state, rows)
            found += [row["ts"].second for row in arrival.rows.to_pylist()]
    assert found == [2, 7]


def test_late_events_that_come_one_by_one_are_kept_together() -> None:
    lates = LateEvents()
    for number in range(5000):
        lates.add(fresh_events(0, 1, number).slice(0, 1))
    assert lates.count == lates.kept_rows == 5000
    assert len(lates.kept) == 5
    kept = pa.Table.from_batches(lates.kept).column(SEQ).to_pylist()
    assert kept == list(range(5000))
    with patch.object(late_events, "LATE_ROWS_KEPT", 2000):
        lates.add(fresh_events(0, 1, 5000).slice(0, 1))
    assert 2000 <= lates.kept_rows < 3001


@pytest.mark.parametrize("frame", ["RANGE BETWEEN INTERVAL '5' SECOND", "ROWS BETWEEN 2"])
@pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")
def test_frames_of_many_keys_are_read_back(frame: str) -> None:
    text = f"""SELECT k, ts, SUM(v) OVER (PARTITION BY k ORDER BY ts
      {frame} PRECEDING AND CURRENT ROW) AS v FROM s"""
    schema = Schema.of(ATTRIBUTES)
    engine = LiveEngine.of(plan_sql(text, {"s": schema}), {"s": schema}, 0)
    state = engine.initial_state()
    for step, count in enumerate((2000, 3, 3, 3)):
        # The keys of the first step come again.
        events = fresh_events(step, count, 10_000 * step)
        keys = [f"key 0 {i % 2000}" for i in range(events.num_rows)]
        state, _ = engine.push(state, events.set_column(2, "k", pa.array(keys)))
    again = engine.load(engine.dump(state))
    later = fresh_events(4, 3, 50_000).set_column(
        2, "k", pa.array([f"key 0 {i}" for i in range(9)])
    )
    found, wanted = (engine.push(each, later)[1].rows for each in (again, state))
    assert as_bag(found.to_pylist()) == as_bag(wanted.to_pylist())
    assert found.num_rows


def test_idle_keys_stay_while_they_are_few_and_are_not_written() -> None:
    """A key comes and goes in every step of many events: to know it again would take time."""
    text, schema = BOUNDED["rises"], Schema.of(ATTRIBUTES)
    engine = LiveEngine.of(plan_sql(text, {"s": schema}), {"s": schema}, 0)
    state, most = engine.initial_state(), 0
    for step in range(8):
        events = fresh_events(step, 100, 300 * step)
        state, _ = engine.push(state, events)
        (held,) = (each for each in state.operators if isinstance(each, KeyLayers))
        kept = held.whole.kept
        most = max(most, int((kept == 0).sum()))
        assert len(kept) <= 2 * events.num_rows
        (read,) = (
            each
            for each in engine.load(engine.dump(state)).operators
            if isinstance(each, KeyLayers)
        )
        assert read.whole.kept.tolist() == kept[kept > 0].tolist()
    assert most > 100
