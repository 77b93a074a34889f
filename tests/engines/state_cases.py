"""Everything that has a state, after some events, and how it goes on from there."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from eventide.engines.buckets import to_bytes
from eventide.engines.build import build_tree
from eventide.engines.live.engine import LiveEngine
from eventide.engines.live.sharing.engine import SharedEngine, SharedQueries, shared_of
from eventide.engines.live.sharing.planned import ManyPlanner
from eventide.engines.spark.stream import BucketEvents, Going, StreamProcessor
from eventide.instants import END_OF_TIME_US, START_OF_TIME_US
from eventide.lang.sql import plan_sql
from eventide.operators import key_layers
from eventide.operators.standing.answer.report import Reporter
from eventide.operators.stateful import Stateful
from eventide.plan.sharing.rules import SharingRules
from eventide.plan.standing.choose import choose_plan
from eventide.plan.standing.execution import Execution
from eventide.plan.standing.nodes import Standing
from eventide.schema import SEQ, Schema
from tests.engines.patterns.match_queries import PATTERNS
from tests.engines.scenarios import COUNTED, QUERIES, SCHEMA, SECOND, cut, drive, shuffled
from tests.engines.situations.temporal_queries import TEMPORAL
from tests.engines.standing import queries as asked
from tests.engines.standing.queries import CATALOG, events_of, versions_of
from tests.operators.xml.test_join_documents import random_documents, random_join
from tests.operators.xml.test_join_streams import operator_of as joined_by
from tests.operators.xml.test_join_streams import rows_in as documents_of

CARS = {"cars": SCHEMA}
LATENESS_US = 20 * SECOND
TEXTS = {
    **{f"window {name}": query.text for name, query in QUERIES.items()},
    "window count": COUNTED.text,
    "window ranks": "SELECT car, place FROM (SELECT car, RANK() OVER (PARTITION BY window_end "
    "ORDER BY speed) AS place FROM TUMBLE(cars, ts, INTERVAL '10' SECOND)) WHERE place < 9",
    **{f"pattern {name}": query.text for name, query in PATTERNS.items()},
    **{f"situations {name}": query.text for name, query in TEMPORAL.items()},
    "sequence pair": "SELECT * FROM FILTER{speed > 3} cars "
    "NEXT{$1.car = $2.car AND $2.speed < $1.speed AND DUR <= 2 minutes} cars",
    "sequence chain": "SELECT car, n, last FROM (SELECT car, speed, 1 AS n, car AS last FROM cars) "
    "FOLD{$2.speed > $.speed AND contains($2.car, $.car), $.n < 9, $.n + 1 AS n, $2.car AS last} "
    "(SELECT car, speed FROM cars)",
    "sequence instants": "SELECT * FROM AT INSTANT{COUNT(*) AS n, SUM(speed) AS s, car} "
    "(cars NEXT{$1.car = $2.car AND DUR <= 9 seconds} cars)",
}
QUESTIONS = (
    asked.FILTER, asked.UNION, asked.JOIN, asked.EQUAL_JOIN, asked.JOIN_3, asked.BAND,
    asked.TIME_BAND, asked.RELATION_JOIN, asked.AS_OF, asked.AS_OF.sliding(2), asked.SYSTEM_TIME,
    asked.DISTINCT,
    asked.DISTINCT_ROWS, asked.DISTINCT_JOIN, asked.EXCEPT_ALL, asked.INTERSECT, asked.NOT_EXISTS,
    asked.EXISTS, asked.GROUP, asked.HOLISTIC, asked.TOP_K, asked.GROUP_JOIN, asked.GROUP_ROWS,
    asked.EXTREMES_UNION, asked.EXTREMES_ROWS, asked.TOP, asked.TOP_BY_KEY, asked.TOP_GROUPS,
    asked.LEFT,
    asked.GROUP.sliding(2), asked.DECAYED.sliding(2), asked.DECAYED_JOIN.sliding(2),
    asked.FILTER.sliding(2), asked.JOIN.internally("x"), *asked.OUTPUT_WINDOWS,
    asked.JOIN.reporting("DSTREAM"), asked.DISTINCT.reporting("ISTREAM"),
    asked.GROUP.reporting("RSTREAM"), asked.JOIN.sliding(3).reporting("RSTREAM RESTORE"),
    *(window for window in asked.WINDOWS if not window.name.endswith("_join")),
)  # fmt: skip
STANDING = {
    **{question.name: question.text for question in QUESTIONS},
    "sketches": "SELECT g, APPROX_COUNT_DISTINCT(v) AS n, APPROX_TOP_K(k, 2) AS best, SUM(v) AS s "
    "FROM a [RANGE 8 SECONDS SLIDE 2 SECONDS] GROUP BY g",
    "frequent values": "SELECT g, FREQUENT(k, 0.2, 2), COUNT(v) AS n "
    "FROM a [RANGE 8 SECONDS SLIDE 2 SECONDS] GROUP BY g",
    "many values": "SELECT g, MEDIAN(f) AS m, TOP_K(k, 3) AS best, APPROX_QUANTILE(f, 0.5) AS q, "
    "MIN(f) AS low, COUNT(DISTINCT k) AS n FROM a [RANGE 10 MINUTES] GROUP BY g",
    "many values sliding": "SELECT g, SUM(f) AS s, MIN(f) AS low, MAX(v) AS high "
    "FROM a [RANGE 10 MINUTES SLIDE 2 SECONDS] GROUP BY g",
    "texts in order": "SELECT k, v FROM a [RANGE 10 MINUTES] ORDER BY k, v DESC LIMIT 4",
    "derived": "SELECT m.n, b.v FROM (SELECT k, COUNT(*) AS n FROM a GROUP BY k, "
    "TUMBLE(ts, INTERVAL '3' SECOND)) [RANGE 20 SECONDS] AS m JOIN b [RANGE 9 SECONDS] AS b "
    "ON m.k = b.k",
    "kept rows": "SELECT g, MODE(k) AS m, LAST(v) AS last, SUM(DISTINCT f) AS s, "
    "ARG_MAX(k, v) AS best FROM a [RANGE 8 SECONDS] GROUP BY g",
}
LATE = {
    "tumbling": "SELECT car, COUNT(*) AS n, AVG(speed) AS mean FROM cars "
    "GROUP BY car, TUMBLE(ts, INTERVAL '10' SECOND)",
    "hopping": "SELECT COUNT(*) AS n, ARRAY_AGG(speed) AS speeds FROM cars WHERE speed > 20 "
    "GROUP BY HOP(ts, INTERVAL '5' SECOND, INTERVAL '20' SECOND)",
    "sessions": "SELECT car, COUNT(*) AS n, SUM(speed) AS total FROM cars "
    "GROUP BY car, SESSION(ts, INTERVAL '15' SECOND)",
    "listed sessions": "SELECT car, FIRST(speed) AS first, ARRAY_AGG(speed) AS speeds FROM cars "
    "GROUP BY car, SESSION(ts, INTERVAL '15' SECOND)",
}
"""Windows that take late events."""
SHARED = (
    *LATE.values(),
    "SELECT car, COUNT(*) AS n, AVG(speed) AS mean FROM cars "
    "GROUP BY car, TUMBLE(ts, INTERVAL '15' SECOND)",
    *(f"SELECT car, speed FROM cars WHERE speed > {least}" for least in (10, 20)),
    "SELECT car, AVG(speed) AS mean FROM cars [RANGE 20 SECONDS SLIDE 5 SECONDS] GROUP BY car",
    "SELECT car, AVG(speed) AS mean FROM cars [RANGE 9 SECONDS SLIDE 3 SECONDS] "
    "WHERE speed > 5 GROUP BY car",
)
"""Queries that run as one."""
ALL_TIME = "SELECT car, SUM(speed) AS total, ARRAY_AGG(speed) AS speeds FROM cars GROUP BY car"
EXECUTED: tuple[tuple[str, Execution], ...] = tuple(
    (name, execution)
    for name in ("filter", "join", "distinct", "except_all", "group", "holistic", "top", "tumble")
    for execution in ("negative", "direct")
)


@dataclass(frozen=True)
class Level:
    """A part of what has a state: whose it is, the part's own, and the whole with another one."""

    subject: Stateful[Any]
    state: Any
    put_back: Callable[[Any], Any]


@dataclass(frozen=True)
class Case:
    """What has a state, two states of it, its parts, and what comes of going on."""

    name: str
    subject: Stateful[Any]
    earlier: Any
    state: Any
    levels: Callable[[Any], Iterator[Level]]
    go_on: Callable[[Any], object]


def plain(rows: pa.RecordBatch) -> list[tuple[Any, ...]]:
    """Return rows, times as numbers: those of a wrong state may lie in no year of Python."""
    columns = [
        column.view(pa.int64()) if pa.types.is_temporal(column.type) else column
        for column in rows.columns
    ]
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def replaced(values: tuple[Any, ...], place: int, value: object) -> tuple[Any, ...]:
    return (*values[:place], value, *values[place + 1 :])


def case_names() -> list[str]:
    """All cases, by what they are made of."""
    live = [f"live {name}" for name in TEXTS]
    standing = [f"standing {name}" for name in STANDING]
    executed = [f"standing {name} {execution}" for name, execution in EXECUTED]
    spark = ["spark window tumbling", "spark standing join"]
    late = [f"late {name}" for name in LATE]
    others = ["history all time", "many queries", "joined documents"]
    return [*live, *late, *standing, *executed, *spark, *others]


@contextmanager
def layered() -> Iterator[None]:
    """Let what is held by key be in layers from the first key on, as that of many keys is."""
    with patch.object(key_layers, "FEW", 0), patch.object(key_layers, "FOR_EACH_EVENT", 0):
        yield


@cache
def case_of(name: str, in_layers: bool = False) -> Case:
    """Return a case by its name."""
    if in_layers:
        with layered():
            return made(name)
    return made(name)


def made(name: str) -> Case:
    kind, _, rest = name.partition(" ")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "live":
            return live_case(name, live_engine(TEXTS[rest]))
        if kind == "late":
            return live_case(name, late_engine(LATE[rest]))
        if kind == "many":
            return shared_case(name)
        if kind == "history":
            return history_case(name, ALL_TIME)
        if kind == "joined":
            return documents_case(name)
        if name == "spark window tumbling":
            return spark_case(name, TEXTS["window tumbling"])
        if name == "spark standing join":
            return spark_standing_case(name, STANDING["join"])
        text, _, execution = rest.rpartition(" ")
        if (text, execution) in EXECUTED:
            return standing_case(name, STANDING[text], execution)  # type: ignore[arg-type]
        return standing_case(name, STANDING[rest], "aware")


def car_batches() -> list[pa.RecordBatch]:
    events = shuffled(drive(150, ["a", "b", "c", None], 1), 12, 2)
    return [
        pa.RecordBatch.from_pylist(list(batch), schema=SCHEMA.arrow) for batch in cut(events, 4)
    ]


def live_engine(text: str) -> LiveEngine:
    return LiveEngine.of(plan_sql(text, CARS), CARS, LATENESS_US)


def late_engine(text: str) -> LiveEngine:
    return LiveEngine.of(plan_sql(text, CARS), CARS, SECOND, late="window")


def live_case(name: str, engine: LiveEngine) -> Case:
    one, two, *rest = car_batches()
    earlier, _ = engine.push(engine.initial_state(), one)
    state, _ = engine.push(earlier, two)

    def levels(held: Any) -> Iterator[Level]:  # noqa: ANN401
        yield Level(engine.tree, held.operators, lambda part: replace(held, operators=part))
        for place, operator in enumerate(engine.tree.operators):

            def put(part: object, place: int = place) -> object:
                return replace(held, operators=replaced(held.operators, place, part))

            yield Level(operator, held.operators[place], put)  # type: ignore[arg-type]

    def go_on(held: Any) -> object:  # noqa: ANN401
        told = []
        for batch in rest:
            held, arrival = engine.push(held, batch)
            told.append(arrival.rows)
        held, arrival = engine.finish(engine.load(engine.dump(held)))
        return [plain(rows) for rows in (*told, arrival.rows)]

    return Case(name, engine, earlier, state, levels, go_on)


def history_case(name: str, text: str) -> Case:
    """A tree that only history runs: its rows leave when time is over."""
    tree = build_tree(plan_sql(text, CARS))
    batches = [rows.select(tree.leaves[0].schema.names) for rows in car_batches()]
    one, two, *rest = batches

    def taken(held: Any, rows: pa.RecordBatch, until_us: int) -> tuple[Any, pa.RecordBatch]:  # noqa: ANN401
        return tree.step(held, (rows,), until_us)

    earlier, _ = taken(tree.initial_state(), one, START_OF_TIME_US)
    state, _ = taken(earlier, two, START_OF_TIME_US)

    def levels(held: Any) -> Iterator[Level]:  # noqa: ANN401
        for place, operator in enumerate(tree.operators):

            def put(part: object, place: int = place) -> object:
                return replaced(held, place, part)

            yield Level(operator, held[place], put)  # type: ignore[arg-type]

    def go_on(held: Any) -> object:  # noqa: ANN401
        for batch in rest:
            held, _ = taken(held, batch, START_OF_TIME_US)
        _, rows = taken(tree.load(tree.dump(held)), rest[-1].slice(0, 0), END_OF_TIME_US)
        return plain(rows)

    return Case(name, tree, earlier, state, levels, go_on)


def shared_case(name: str) -> Case:
    """Queries that run as one; a state that is read is of queries that the engine knows."""
    engine = SharedEngine.over(CARS, CARS, LATENESS_US)
    rules = SharingRules(share_refreshes=True)
    planner = ManyPlanner(lambda text, params: plan_sql(text, CARS, params), rules)
    queries = SharedQueries(engine)
    for portion in planner.texts(SHARED, 0).portions:
        queries.add(portion)
    (begun,) = queries.states
    engine.shared.know([shared_of(begun)])
    one, two, *rest = car_batches()
    earlier, _ = engine.push(begun, one)
    # States of many queries belong to the step they are given to.
    kept = engine.dump(earlier)
    state, _ = engine.push(engine.load(kept), two)

    def levels(held: Any) -> Iterator[Level]:  # noqa: ANN401
        yield Level(engine.shared, held.operators, lambda part: replace(held, operators=part))
        for run in held.operators.runs:
            for holder, tree in (
                (run, run.tree.tree),
                (run.windows, run.windows and run.windows.tree),
            ):
                for place, operator in enumerate(tree.operators if tree else ()):

                    def put(part: object, place: int = place, holder: Any = holder) -> object:  # noqa: ANN401
                        holder.states = replaced(holder.states, place, part)
                        return held

                    yield Level(operator, holder.states[place], put)

    def go_on(held: Any) -> object:  # noqa: ANN401
        told: list[Any] = []
        for batch in rest:
            held, arrival = engine.push(held, batch)
            told += arrival.rows
        _, arrival = engine.finish(engine.load(engine.dump(held)))
        return [plain(each.rows) for each in (*told, *arrival.rows)]

    return Case(name, engine, engine.load(kept), state, levels, go_on)


def documents_case(name: str) -> Case:
    """A join of documents, and of their nodes, which is a part of it."""
    choose = random.Random(7)
    operator = joined_by(random_join(choose))
    documents = random_documents(choose, 24)
    steps = [
        (tuple(documents_of(batch, stream) for stream in operator.streams), batch[-1].ts + 1)
        for batch in (documents[:8], documents[8:16], documents[16:])
    ]
    one, two, three = steps
    earlier, _ = operator.step(operator.initial_state(), *one)
    # A state belongs to the step that it is given to.
    kept = operator.dump(earlier)
    state, _ = operator.step(operator.load(kept), *two)

    def levels(held: Any) -> Iterator[Level]:  # noqa: ANN401
        yield Level(operator.joined, held.nodes, lambda part: replace(held, nodes=part))

    def go_on(held: Any) -> object:  # noqa: ANN401
        _, rows = operator.step(operator.load(operator.dump(held)), *three)
        return plain(rows)

    return Case(name, operator, operator.load(kept), state, levels, go_on)


def arrivals(name: str) -> dict[str, list[dict[str, Any]]]:
    choose = random.Random(7)
    streams = {each: events_of(choose, 60, 0) for each in "abcd"}
    if "many values" in name or "texts" in name:
        streams["a"] = [
            {"ts": place * SECOND // 2, SEQ: place, "k": f"key {choose.randrange(40)}",
             "g": choose.choice((1, 1, 1, 2)), "v": choose.randrange(1000), "f": choose.random()}
            for place in range(700)
        ]  # fmt: skip
    return {**streams, "r": versions_of(choose)}


def standing_halves(
    name: str, streams: tuple[str, ...], catalog: dict[str, Schema]
) -> list[dict[str, pa.RecordBatch]]:
    """Return the events of streams in three pieces of time."""
    events = arrivals(name)
    end = max(event["ts"] for stream in streams for event in events[stream])
    borders = (-100 * SECOND, end // 3, 2 * end // 3, end + 1)
    return [
        {
            stream: pa.RecordBatch.from_pylist(
                [event for event in events[stream] if start <= event["ts"] < stop],
                schema=catalog[stream].arrow,
            )
            for stream in streams
        }
        for start, stop in pairwise(borders)
    ]


def standing_engine(text: str, execution: Execution) -> LiveEngine:
    plan = plan_sql(text, CATALOG)
    assert isinstance(plan, Standing)
    return LiveEngine.of(choose_plan(plan).plan, CATALOG, SECOND, execution=execution)


def standing_case(name: str, text: str, execution: Execution) -> Case:
    engine = standing_engine(text, execution)
    one, two, three = standing_halves(name, engine.streams, dict(CATALOG))
    earlier, _ = engine.take(engine.initial_state(), one)
    # States of standing queries belong to the step they are given to.
    kept = engine.dump(earlier)
    state, _ = engine.take(engine.load(kept), two)

    def levels(held: Any) -> Iterator[Level]:  # noqa: ANN401
        tree, below = engine.tree, held.operators
        yield Level(tree, below, lambda part: replace(held, operators=part))
        for place, operator in enumerate(tree.operators):

            def put(part: object, place: int = place) -> object:
                return replace(held, operators=replaced(below, place, part))

            yield Level(operator, below[place], put)  # type: ignore[arg-type]
        for view, field in answers_of(tree.answer):

            def put_answer(part: object, field: str = field) -> object:
                report = replace(below[-1], **{field: part})
                return replace(held, operators=(*below[:-1], report))

            yield Level(view, getattr(below[-1], field), put_answer)

    def go_on(held: Any) -> object:  # noqa: ANN401
        held, first = engine.take(held, three)
        held, last = engine.finish(engine.load(engine.dump(held)))
        told = [plain(first.rows), plain(last.rows)]
        if engine.tree.answer.keeps_answer:
            told.append(sorted(plain(engine.current(held)), key=str))
        return told

    return Case(name, engine, engine.load(kept), state, levels, go_on)


def answers_of(reporter: Reporter) -> list[tuple[Stateful[Any], str]]:
    parts = (
        (reporter._edge_view, "edge"),
        (reporter._answer_view, "answer"),
        (reporter._expiring_rows, "expiring"),
    )
    return [(part, field) for part, field in parts if part is not None]


def spark_case(name: str, text: str) -> Case:
    processor = StreamProcessor(plan_sql(text, CARS), CARS, Going(LATENESS_US), 8, frozenset())
    (feed,) = processor.engine.feeds

    def arrived(rows: pa.RecordBatch) -> BucketEvents:
        block = to_bytes(rows.select(feed.schema.names))
        newest = int(rows.column("ts").cast(pa.int64()).to_numpy().max())
        return BucketEvents({0: [block]}, {0: newest}, {})

    one, two, *rest = car_batches()
    earlier, _, _ = processor.push(processor.initial_state(), arrived(one))
    state, _, _ = processor.push(earlier, arrived(two))

    def go_on(held: Any) -> object:  # noqa: ANN401
        told = []
        for batch in rest:
            held, results, _ = processor.push(held, arrived(batch))
            told += [plain(rows) for rows in results]
        return told

    return Case(name, processor, earlier, state, lambda _: iter(()), go_on)


def spark_standing_case(name: str, text: str) -> Case:
    plan = plan_sql(text, CATALOG)
    assert isinstance(plan, Standing)
    processor = StreamProcessor(plan, CATALOG, Going(SECOND), 8, frozenset())
    feeds = processor.engine.feeds
    pieces = []
    for piece in standing_halves(name, processor.engine.streams, dict(CATALOG)):
        rows = [piece[feed.stream].select(feed.schema.names) for feed in feeds]
        newest = {
            leaf: int(each.column("ts").cast(pa.int64()).to_numpy().max())
            for leaf, each in enumerate(rows)
        }
        blocks = {leaf: [to_bytes(each)] for leaf, each in enumerate(rows)}
        pieces.append(BucketEvents(blocks, newest, {}))
    earlier, _, _ = processor.push(processor.initial_state(), pieces[0])
    kept = processor.dump(earlier)
    state, _, _ = processor.push(processor.load(kept), pieces[1])

    def go_on(held: Any) -> object:  # noqa: ANN401
        _, results, _ = processor.push(held, pieces[2])
        return [plain(rows) for rows in results]

    return Case(name, processor, processor.load(kept), state, lambda _: iter(()), go_on)
