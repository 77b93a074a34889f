"""The owner of a dumped state: the same meaning goes on, another is refused with both shown."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from eventide.engines.build import build_tree
from eventide.engines.live.engine import LiveEngine
from eventide.engines.spark.stream import Going, StreamProcessor
from eventide.errors import StateError
from eventide.lang.sql import plan_sql
from eventide.operators.envelope import MAGIC, VERSION, seal, unseal
from eventide.operators.state import join_parts, split_parts, write_rows
from eventide.operators.windows.frames import AggregateFrames
from eventide.plan.expressions import Column
from eventide.plan.meaning import digest_of
from eventide.plan.standing.nodes import Standing
from eventide.schema import Schema
from tests.engines.scenarios import as_bag
from tests.engines.state_cases import TEXTS, car_batches, layered, live_engine

SECOND = 1_000_000
CATALOG = {"cars": Schema.of({"car": "string", "lane": "int64", "speed": "float64"})}
TEXT = (
    "SELECT car, window_start, AVG(speed) AS mean FROM cars WHERE speed > 0 "
    "GROUP BY car, TUMBLE(ts, INTERVAL '10' SECOND)"
)
STANDING = "SELECT x.car, x.speed FROM cars [RANGE 4 SECONDS] x WHERE x.speed > 3"
SAME = (
    TEXT.replace(" FROM", "\n  FROM"),
    TEXT.lower().replace("'10' second", "'10' SECOND"),
    TEXT.replace("AVG(speed) AS mean FROM cars", "avg(C.SPEED) AS MEAN FROM cars C"),
    TEXT.replace("speed > 0", "speed > 0.0"),
)
OTHERS = (
    TEXT.replace("AVG", "MIN"),
    TEXT.replace("'10'", "'20'"),
    TEXT.replace("speed > 0", "speed > 1"),
    TEXT.replace("GROUP BY car", "GROUP BY lane").replace("SELECT car", "SELECT lane"),
    "SELECT car, speed FROM cars",
)


def live(
    text: str = TEXT, lateness_us: int = 5 * SECOND, catalog: dict[str, Schema] | None = None
) -> LiveEngine:
    known = catalog or CATALOG
    return LiveEngine.of(plan_sql(text, known), known, lateness_us)


def standing(
    text: str = STANDING, lateness_us: int = 0, max_lag_us: int | None = None
) -> LiveEngine:
    plan = plan_sql(text, CATALOG)
    assert isinstance(plan, Standing)
    return LiveEngine.of(plan, CATALOG, lateness_us, max_lag_us=max_lag_us)


def processor(
    text: str = STANDING, buckets: int = 8, unnumbered: frozenset[str] = frozenset()
) -> StreamProcessor:
    return StreamProcessor(plan_sql(text, CATALOG), CATALOG, Going(), buckets, unnumbered)


@pytest.mark.parametrize("text", SAME)
def test_the_same_meaning_goes_on(text: str) -> None:
    engine = live()
    dumped = engine.dump(engine.initial_state())
    assert live(text).load(dumped).operators == engine.load(dumped).operators
    tree = build_tree(plan_sql(TEXT, CATALOG))
    build_tree(plan_sql(text, CATALOG)).load(tree.dump(tree.initial_state()))


def test_columns_that_are_not_read_change_nothing() -> None:
    wider = {"cars": Schema.of({"car": "string", "speed": "float64", "colour": "string"})}
    live(catalog=wider).load(live().dump(live().initial_state()))


@pytest.mark.parametrize("text", OTHERS)
def test_the_state_of_another_query_is_refused_with_both_shown(text: str) -> None:
    dumped = live().dump(live().initial_state())
    with pytest.raises(StateError) as refused:
        live(text).load(dumped)
    said = str(refused.value)
    its, own = said.split("and this is")
    assert said.startswith("the state was written by another query\nit was written by\n  Project")
    assert "WindowAggregate by car, tumbling 10 s: avg(speed)" in its
    assert "Scan cars" in own
    assert "hint: go on with the query" in said


def test_another_lateness_is_refused() -> None:
    dumped = live().dump(live().initial_state())
    with pytest.raises(StateError, match=r"lateness: it was written with 5 s, and this has 10 s"):
        live(lateness_us=10 * SECOND).load(dumped)


def test_another_type_of_a_column_is_refused() -> None:
    typed = {"cars": Schema.of({"car": "string", "lane": "int64", "speed": "int64"})}
    with pytest.raises(StateError, match=r"speed double, and this has .*speed int64"):
        live(catalog=typed).load(live().dump(live().initial_state()))


def test_standing_queries_are_told_apart_too() -> None:
    dumped = standing().dump(standing().initial_state())
    standing(STANDING.replace("speed >", "SPEED >")).load(dumped)
    with pytest.raises(StateError, match=r"(?s)another query.*the last 4 s.*the last 5 s"):
        standing(STANDING.replace("4", "5")).load(dumped)
    with pytest.raises(StateError, match=r"lateness: it was written with 0 s, and this has 1 s"):
        standing(lateness_us=SECOND).load(dumped)
    with pytest.raises(StateError, match=r"max lag: it was written with none, and this has 9 s"):
        standing(max_lag_us=9 * SECOND).load(dumped)
    with pytest.raises(StateError, match="the state was written by another query"):
        live().load(dumped)


def test_buckets_of_a_stream_know_how_many_they_are() -> None:
    one = processor(TEXT)
    dumped = one.dump(one.initial_state())
    one.load(dumped)
    with pytest.raises(StateError, match="buckets: it was written with 8, and this has 4"):
        processor(TEXT, 4).load(dumped)
    with pytest.raises(StateError, match="numbered rows: it was written with cars, and this has"):
        processor(TEXT, unnumbered=frozenset({"cars"})).load(dumped)
    two = processor()
    dumped = two.dump(two.initial_state())
    with pytest.raises(StateError, match="buckets: it was written with 8, and this has 2"):
        processor(buckets=2).load(dumped)
    with pytest.raises(StateError, match="another query"):
        processor(STANDING.replace("> 3", "> 4")).load(dumped)


def test_a_state_of_another_version_is_refused() -> None:
    engine = live()
    dumped = engine.dump(engine.initial_state())
    assert dumped[:4] == MAGIC
    written = unseal(dumped)[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eventide.operators.envelope.VERSION", VERSION + 1)
        newer = seal(engine.owner, written)
    with pytest.raises(StateError, match=f"version {VERSION + 1}, and this release reads"):
        engine.load(newer)


@pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")
@pytest.mark.parametrize("name", TEXTS)
def test_whatever_is_dumped_is_read_back(name: str) -> None:
    """After every step and at the end, and though keys are held in layers."""
    engine = live_engine(TEXTS[name])
    pieces = [
        batch.slice(start, 9) for batch in car_batches() for start in range(0, batch.num_rows, 9)
    ]
    whole = state = engine.initial_state()
    told = []
    for piece in pieces:
        whole, expected = engine.push(whole, piece)
        with layered():
            state, found = engine.push(state, piece)
            state = engine.load(engine.dump(state))
        told.append((expected.rows, found.rows))
    ended, found = engine.finish(state)
    told.append((engine.finish(whole)[1].rows, found.rows))
    engine.load(engine.dump(ended))
    for expected_rows, found_rows in told:
        assert as_bag(found_rows.to_pylist()) == as_bag(expected_rows.to_pylist())
    assert any(rows.num_rows for rows, _ in told)


@pytest.mark.parametrize(
    ("times", "done", "wrong"),
    [
        ([5, 1, 6, 2, 7], 4, None),
        ([5, 1, 4, 2, 7], 4, "times of events of a key do not ascend"),
        ([5, 1, 6, 2, 8, 7], 4, "times of events that wait do not ascend"),
        ([5, 1, 6, 2, 4], 4, "times of events that wait do not ascend"),
    ],
)
def test_only_the_events_of_a_key_are_in_order(
    times: list[int], done: int, wrong: str | None
) -> None:
    engine = live_engine(TEXTS["window sliding"])
    (frames,) = (each for each in engine.tree.operators if isinstance(each, AggregateFrames))
    columns = {
        "ts": pa.array(times).view(pa.timestamp("us")),
        "car": pa.array(["a", "b"] * 3).slice(0, len(times)),
    }
    arrays = [
        columns[field.name] if field.name in columns else pa.nulls(len(times), field.type)
        for field in frames.source_schema
    ]
    rows = pa.RecordBatch.from_arrays(arrays, schema=frames.source_schema)
    written = write_rows("AggregateFrames", rows, {"done": done})
    if wrong is None:
        read = frames.read(written)
        assert (read.done.whole.rows, read.waiting) == (rows.slice(0, done), rows.slice(done))
    else:
        with pytest.raises(StateError, match=wrong):
            frames.read(written)


@pytest.mark.parametrize(
    ("watermark_us", "wrong"),
    [
        (-(2**63), None),
        (2**63 - 1, None),
        (2**63, "beyond 64 bits"),
        (-(2**63) - 1, "beyond 64 bits"),
        (2**63 - 2, "the newest time of .* is at"),
        (-(2**63) + 1, "the newest time of .* is at"),
    ],
)
def test_a_watermark_is_an_instant(watermark_us: int, wrong: str | None) -> None:
    engine = live()
    facts, _, operators = split_parts(engine.write(engine.initial_state()))
    nothing = pa.RecordBatch.from_pylist([], schema=engine.feed_schema(engine.stream))
    marks = {"newest_us": watermark_us, "advanced_us": watermark_us}
    written = join_parts([facts, write_rows("Arrivals", nothing, marks), operators])
    if wrong is None:
        (held,) = engine.read(written).feeds
        assert held.newest_us == held.advanced_us == watermark_us
    else:
        with pytest.raises(StateError, match=wrong):
            engine.read(written)


def test_names_are_told_apart_as_a_schema_does() -> None:
    """A stream may have two names that differ in more than case."""
    Schema.of({"straße": "int64", "strasse": "int64"})
    assert digest_of(Column("straße")) != digest_of(Column("strasse"))
    assert digest_of(Column("STRASSE")) == digest_of(Column("strasse"))
    one, other = (pa.schema([(name, pa.int64())]) for name in ("straße", "strasse"))
    assert digest_of(one) != digest_of(other)


@pytest.mark.parametrize("place", ["newest_us", "advanced_us", "clock_us"])
def test_marks_of_a_standing_query_are_instants(place: str) -> None:
    engine = standing()
    state = engine.initial_state()
    if place == "clock_us":
        state = replace(state, clock_us=2**63 - 2)
    else:
        (held,) = state.feeds
        marks = {"newest_us": held.newest_us, "advanced_us": held.advanced_us, place: 2**63 - 2}
        state = replace(state, feeds=(replace(held, **marks),))
    with pytest.raises(StateError, match=r"is at 9223372036854775806"):
        engine.load(engine.dump(state))
