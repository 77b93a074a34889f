"""Cases that are no query over history: live, append and scan, the first answer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.engines.scenarios import QUERIES

import eventide as ev
from benchmarks import ways
from benchmarks.cases import QUESTIONS, Case, Duel, Question
from benchmarks.cores import core_cases
from benchmarks.data import CARS
from benchmarks.setting import ARRIVING_ROWS, STREAM, Setting, append_all
from benchmarks.ways import Way
from eventide.api.live.query import live_query
from eventide.lang.sql import plan_sql

LATENESS = "5 s"
PROJECT = Path(__file__).parent.parent
COLUMNS = ("ts", "car", "speed", "accel")
LIVE = ("tumbling average", "hopping average", "sliding average", "filter")


def live(text: str) -> Way:
    """A live query that is pushed 10,000 events at a time and then finished."""

    def run(setting: Setting) -> pa.Table:
        catalog = {STREAM: setting.schema}
        query = live_query(plan_sql(text, catalog), catalog, None, LATENESS)
        results = [query.push(batch).to_arrow() for batch in setting.arrivals]
        return pa.concat_tables([*results, query.finish().to_arrow()])

    return ways.embedded("Eventide, live", run)


def live_case(question: Question) -> Case:
    """The question as a live query, against itself over history."""
    return Case(
        f"{question.name}, live",
        f"the same, pushed {ARRIVING_ROWS:,} events at a time; the rival is history",
        question.traffic,
        (Duel(live(question.eventide), ways.eventide_arrow(question.eventide)),),
    )


def append_small(setting: Setting) -> None:
    """Append in small, durable batches, with a live query over them."""
    database = ev.open(setting.new_path("small"))
    # The stream has to be there before a query over it.
    append_all(database, setting.schema, setting.events.slice(0, 0))
    query = database.subscribe(QUESTIONS[0].eventide, lateness=LATENESS)
    stream = database.stream(STREAM)
    for start in range(0, setting.count, ARRIVING_ROWS):
        stream.append(setting.events.slice(start, ARRIVING_ROWS))
    query.finish()


def append_large(setting: Setting) -> None:
    """Append a million events at a time; each is on the disk before the next."""
    append_all(ev.open(setting.new_path("large")), setting.schema, setting.events)


def write_parquet(setting: Setting) -> None:
    """Write a Parquet file, as fast as pyarrow does by itself."""
    pq.write_table(setting.events, setting.new_path("parquet"))


def scan_store(setting: Setting) -> pa.Table:
    """Read all events back in order of time."""
    snapshot = setting.database.stream(STREAM).snapshot()
    return pa.Table.from_batches(list(snapshot.scan(COLUMNS)))


def read_parquet(setting: Setting) -> pa.Table:
    """Read the Parquet file."""
    return pq.read_table(setting.parquet, columns=list(COLUMNS))


def new_text(run: Callable[[Setting, str], object]) -> Callable[[Setting], object]:
    """Return work whose query text was never seen before."""
    seconds = count(11)

    def work(setting: Setting) -> object:
        return run(setting, str(next(seconds)))

    return work


def first_answer_eventide(setting: Setting, seconds: str) -> pa.Table:
    """Ask Eventide for tumbling windows of an unheard-of size."""
    text = QUESTIONS[0].eventide.replace("'10'", f"'{seconds}'")
    return ev.sql(text, **{STREAM: setting.events}).to_arrow()


def first_answer_duckdb(setting: Setting, seconds: str) -> pa.Table:
    """Ask DuckDB for the same."""
    text = QUESTIONS[0].duckdb["DuckDB"].replace("10 seconds", f"{seconds} seconds")
    return ways.fetched(setting.duckdb_arrow, text)


SORTED = " ORDER BY mean DESC LIMIT 5"
RISES_AND_FALLS = """SELECT car, top FROM cars MATCH_RECOGNIZE (PARTITION BY car ORDER BY ts
    MEASURES B.speed AS top AFTER MATCH SKIP TO NEXT ROW PATTERN (A B C)
    DEFINE B AS speed > PREV(speed), C AS speed < PREV(speed))"""
# DuckDB has no row patterns; for three rows frames are enough.
RISES_AND_FALLS_BY_FRAMES = """SELECT car, speed AS top FROM (SELECT car, speed,
    lag(speed) OVER by_time AS a, lead(speed) OVER by_time AS c
    FROM cars WINDOW by_time AS (PARTITION BY car ORDER BY ts)) WHERE speed > a AND c < speed"""
SMALL_QUERIES = {
    "small filter": (QUESTIONS[3].eventide, QUESTIONS[3].duckdb["DuckDB"]),
    "small windows": (QUESTIONS[0].eventide, QUESTIONS[0].duckdb["DuckDB"]),
    "small windows, sorted": (
        QUESTIONS[0].eventide + SORTED,
        QUESTIONS[0].duckdb["DuckDB"] + SORTED,
    ),
    "small frame": (QUESTIONS[2].eventide, QUESTIONS[2].duckdb["DuckDB"]),
    "small frame, sorted": (
        QUESTIONS[2].eventide + SORTED,
        QUESTIONS[2].duckdb["DuckDB"] + SORTED,
    ),
    "small row pattern": (RISES_AND_FALLS, RISES_AND_FALLS_BY_FRAMES),
    "small row pattern, sorted": (
        RISES_AND_FALLS + " ORDER BY top DESC LIMIT 5",
        RISES_AND_FALLS_BY_FRAMES + " ORDER BY top DESC LIMIT 5",
    ),
}
"""What is asked again and again over few rows, in Eventide's words and DuckDB's."""
AGAIN = 50


def small_case(name: str, eventide: str, duckdb: str) -> Case:
    """Ask a small query many times, from its text to its rows."""

    def ask_eventide(setting: Setting) -> None:
        for _ in range(AGAIN):
            ev.sql(eventide, **{STREAM: setting.events}).to_arrow()

    def ask_duckdb(setting: Setting) -> None:
        for _ in range(AGAIN):
            ways.fetched(setting.duckdb_arrow, duckdb)

    duel = Duel(Way("Eventide, Arrow", ask_eventide), Way("DuckDB, Arrow", ask_duckdb), 1 / 2)
    asked = f"a query text seen before, over 1,000 events, {AGAIN} times"
    return Case(name, asked, CARS, (duel,), at_most=1_000, has_speed=False)


TINY = (
    "import pyarrow as pa\n"
    "cars = pa.table({'ts': pa.array([0, 1], pa.timestamp('us')), 'car': ['a', 'b'], "
    "'lane': [1, 2], 'speed': [50.0, 60.0]})\n"
)
"""Two events of the kind that the tests' queries are about."""


def fresh_process(name: str, script: str) -> Way:
    """A Python process that starts, imports, answers and ends."""
    command = [sys.executable, "-c", TINY + script]
    return Way(name, lambda _: subprocess.run(command, check=True, cwd=PROJECT))


def fresh_eventide(name: str, text: str) -> Way:
    """A query of the tests in a fresh process; machine code is on disk since the warm-up."""
    return fresh_process(
        f"Eventide, {name}", f"import eventide\neventide.sql({text!r}, cars=cars).to_arrow()"
    )


FRESH_DUCKDB = fresh_process(
    "DuckDB, tumbling",
    f"import duckdb\nduckdb.sql({QUESTIONS[0].duckdb['DuckDB']!r}).to_arrow_table()",
)

ERRANDS = (
    *(live_case(question) for question in QUESTIONS if question.name in LIVE),
    Case(
        "append, live",
        f"append {ARRIVING_ROWS:,} events at a time to the store, a standing query over them",
        CARS,
        (Duel(Way("Eventide, store", append_small), None),),
        at_most=1_000_000,
    ),
    Case(
        "append",
        "write all events, a million at a time; Eventide waits for the disk, Parquet does not",
        CARS,
        (Duel(Way("Eventide, store", append_large), Way("pyarrow, Parquet", write_parquet)),),
    ),
    Case(
        "scan",
        "read all events back, all columns; Eventide in order of time",
        CARS,
        (
            Duel(
                ways.embedded("Eventide, store", scan_store),
                ways.embedded("pyarrow, Parquet", read_parquet),
            ),
        ),
    ),
    Case(
        "first answer",
        "a query text never seen before, over 1,000 events, in a warm process",
        CARS,
        (
            Duel(
                Way("Eventide, Arrow", new_text(first_answer_eventide)),
                Way("DuckDB, Arrow", new_text(first_answer_duckdb)),
            ),
        ),
        at_most=1_000,
        has_speed=False,
    ),
    *(small_case(name, *texts) for name, texts in SMALL_QUERIES.items()),
    Case(
        "fresh process",
        "start Python, import, answer a query of the tests over two events, end",
        CARS,
        tuple(
            Duel(fresh_eventide(name, query.text), FRESH_DUCKDB if name == "tumbling" else None)
            for name, query in QUERIES.items()
        ),
        at_most=1_000,
        has_speed=False,
    ),
)


def all_cases() -> list[Case]:
    """Return every case: embedded ones, errands, and those on Spark, which start a JVM, last."""
    embedded = [*(question.embedded() for question in QUESTIONS), *core_cases()]
    return [*embedded, *ERRANDS, *(question.on_spark() for question in QUESTIONS)]
