"""Standing queries straight from their meaning: at each instant, ask DuckDB over window contents.

A query is written once, with its windows left open: `SELECT x.k FROM {x} WHERE x.v > 1`. With
windows filled in it is the text for Eventide; with tables of the window contents at an instant
filled in, DuckDB gives the answer at that instant. Parts that only one of them reads:

    /*, x._id*/   the events a row is made of: read when rows have to be told apart
    /*! … */      always read by DuckDB, never by Eventide

`{now}` in parts for DuckDB is the instant of the answer.
"""

from __future__ import annotations

import atexit
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from itertools import pairwise
from typing import Any

import duckdb

from tests.naive.standing.windows import SECOND, Window, micros
from tests.naive.windows import Event, in_order

Row = tuple[Any, ...]
Bag = Counter[Row]
Streams = Mapping[str, list[Event]]
SQL_TYPES = {"ts": "TIMESTAMP", "_seq": "BIGINT", "k": "VARCHAR", "g": "BIGINT", "v": "BIGINT"}
SQL_TYPES |= {"f": "DOUBLE", "w": "BIGINT", "deleted": "BOOLEAN", "_id": "BIGINT"}


@dataclass(frozen=True)
class Question:
    """A standing query; `sql` says it to DuckDB, where that needs other words."""

    name: str
    select: str
    windows: Mapping[str, Window]
    report: str = ""
    output: str = ""
    sql: str = ""

    @property
    def text(self) -> str:
        """What Eventide is asked."""
        select = re.sub(r"/\*.*?\*/", "", self.select)
        tables = {
            alias: f"{window.stream} [{window.text}] {alias}"
            if window.text
            else f"{window.stream} {alias}"
            for alias, window in self.windows.items()
        }
        select = select.format(**tables)
        return f"{self.report} ({select}) {self.output}".strip() if self.report else select

    @property
    def strict(self) -> bool:
        """Whether rows with equal values are not told apart."""
        return "/*," not in (self.sql or self.select)

    @property
    def slide_us(self) -> int | None:
        slides = [window.length("SLIDE") for window in self.windows.values()]
        return next((slide for slide in slides if slide), None)

    @property
    def restore(self) -> bool:
        return "RESTORE" in self.report

    def reporting(self, report: str, output: str = "") -> Question:
        """The same query with another report."""
        suffix = "_".join(re.findall(r"\w+", f"{report} {output}".lower()))
        return replace(self, name=f"{self.name}__{suffix}", report=report, output=output)

    def sliding(self, seconds: int) -> Question:
        """The same query, refreshed every so many seconds."""
        windows = {
            alias: replace(window, text=f"{window.text} SLIDE {seconds} SECONDS")
            if window.text and number == 0
            else window
            for number, (alias, window) in enumerate(self.windows.items())
        }
        return replace(self, name=f"{self.name}__slide_{seconds}", windows=windows)

    def internally(self, *aliases: str) -> Question:
        """The same query with some windows internal."""
        windows = {
            alias: replace(window, text=f"{window.text} INTERNAL") if alias in aliases else window
            for alias, window in self.windows.items()
        }
        return replace(self, name=f"{self.name}__internal_{''.join(aliases)}", windows=windows)


@cache
def connection() -> duckdb.DuckDBPyConnection:
    found = duckdb.connect(config={"threads": 1})
    # Its optimizer loses rows of a LEFT JOIN of `v IS NULL` that stand alone, if asked for those.
    found.execute("PRAGMA disable_optimizer")
    return found


# A connection that outlives the interpreter makes DuckDB complain of leaks.
atexit.register(connection.cache_clear)


@cache
def ask(sql: str) -> tuple[Row, ...]:
    rows = connection().execute(sql).fetchall()
    return tuple(tuple(map(plain, row)) for row in rows)


def plain(value: object) -> Any:  # noqa: ANN401
    """A value that can be compared: times in microseconds, floats without their last digits."""
    match value:
        case float():
            return "nan" if math.isnan(value) else float(f"{value:.10g}") + 0.0
        case datetime():
            return micros(value)
        case list():
            return tuple(map(plain, value))
        case dict():
            return tuple((name, plain(part)) for name, part in value.items())
    return value


def literal(column: str, value: object) -> str:
    if value is None:
        text = "NULL"
    elif column == "ts":
        return f"make_timestamp({value}::BIGINT)"
    else:
        text = f"'{value}'" if isinstance(value, str | float) else str(value)
    return f"{text}::{SQL_TYPES[column]}"


def table(alias: str, columns: Iterable[str], events: list[Event]) -> str:
    """A common table expression with these events."""
    names = tuple(columns)
    rows = [f"({', '.join(literal(name, event[name]) for name in names)})" for event in events]
    nobody = ", ".join(literal(name, None) for name in names)
    body = f"VALUES {', '.join(rows)}" if rows else f"SELECT {nobody} WHERE false"
    return f"w_{alias}({', '.join(names)}) AS ({body})"


@dataclass
class Truth:
    """What a query has to say over these events. Each stream's events have ts, seq and values."""

    question: Question
    streams: Streams
    states: dict[int, Bag] = field(default_factory=dict)
    answers: dict[int, Bag] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.events = {
            alias: [
                {**event, "_id": 1000 * number + event["_seq"]}
                for event in in_order(self.streams[window.stream])
            ]
            for number, (alias, window) in enumerate(self.question.windows.items())
        }

    def held(self, alias: str, now: int) -> list[Event]:
        return self.question.windows[alias].holds(self.events[alias], now)

    def names(self) -> list[str]:
        """The names of the columns of the answer."""
        found = [name for name, *_ in connection().execute(self.sql(0)).description]
        return found[: len(found) - self.parts]

    def state(self, now: int) -> Bag:
        """The rows of the answer at an instant, with what they are made of."""
        if now not in self.states:
            self.states[now] = Counter(ask(self.sql(now)))
        return self.states[now]

    def sql(self, now: int) -> str:
        """The query over what the windows hold at an instant."""
        tables = [
            table(alias, COLUMNS[window.stream], self.held(alias, now))
            for alias, window in self.question.windows.items()
        ]
        select = self.question.sql or self.question.select
        select = re.sub(r"/\*!?(.*?)\*/", r"\1", select).replace("QUANTILE(", "quantile_cont(")
        tables_of = {name: f"w_{name} {name}" for name in self.question.windows}
        select = select.format(**tables_of, now=literal("ts", now))
        return f"WITH {', '.join(tables)} {select}"

    def values(self, row: Row) -> Row:
        return row[: len(row) - self.parts]

    @property
    def parts(self) -> int:
        """How many columns at the end of a row say what it is made of."""
        said = re.search(r"/\*,(.*?)\*/", self.question.sql or self.question.select)
        return said[1].count(",") + 1 if said else 0

    def without_parts(self, bag: Bag) -> Bag:
        found: Bag = Counter()
        for row, count in bag.items():
            found[self.values(row)] += count
        return found

    def instants(self, until: int) -> list[int]:
        """The instants before `until` at which something can change."""
        windows = self.question.windows
        found = [window.instants(self.events[alias]) for alias, window in windows.items()]
        return sorted(instant for instant in set().union(*found) if instant < until)

    def refreshes(self, until: int) -> list[int]:
        """The instants before `until` at which somebody looks."""
        slide, instants = self.question.slide_us, self.instants(until)
        if slide is None or not instants:
            return instants
        return list(range(-(-instants[0] // slide) * slide, until, slide))

    def moves(self, instants: list[int]) -> list[tuple[int, Bag, Bag]]:
        """(instant, what came, what went) at each of these, one after the other."""
        states = [Counter(), *map(self.state, instants)]
        return [
            (instant, after - before, before - after)
            for instant, (before, after) in zip(instants, pairwise(states), strict=True)
        ]

    def births(self, now: int) -> list[tuple[int, Bag]]:
        """All that ever came, with the instant at which that was seen."""
        instants = self.refreshes(now + 1)
        return [(instant, came) for instant, came, _ in self.moves(instants) if came]

    def lifetimes(self, until: int) -> Bag:
        """(birth, death, values) of all results; those that nothing ends have no death."""
        born, found = dict[Row, int](), Counter[Row]()
        for instant, came, went in self.moves(self.refreshes(until)):
            for row in went:
                found[born.pop(row), instant, *self.values(row)] += 1
            born |= dict.fromkeys(came, instant)
        return found + Counter((at, None, *self.values(row)) for row, at in born.items())

    def answer(self, now: int) -> Bag:
        """The answer at an instant; not that of an output window of rows, which may have ties."""
        if now not in self.answers:
            self.answers[now] = self.worked_out(now)
        return self.answers[now]

    def worked_out(self, now: int) -> Bag:
        question = self.question
        if found := re.search(r"RANGE (\d+) SECONDS", question.output):
            size = int(found[1]) * SECOND
            recent = [came for at, came in self.births(now) if now < at + size]
            return self.without_parts(sum(recent, Counter()))
        seen = now if question.slide_us is None else now // question.slide_us * question.slide_us
        if not any(window.internal for window in question.windows.values()):
            return self.without_parts(self.state(seen))
        ever = sum((came for _, came in self.births(now)), Counter[Row]())
        external = [alias for alias, window in question.windows.items() if not window.internal]
        alive = {event["_id"] for alias in external for event in self.held(alias, seen)}
        numbers = {list(question.windows).index(alias) for alias in external}
        return self.without_parts(
            Counter(
                {
                    row: count
                    for row, count in ever.items()
                    if not external
                    or all(part in alive for part in row[-self.parts :] if part // 1000 in numbers)
                }
            )
        )

    def last_births(self, now: int, count: int) -> tuple[Bag, Bag, int]:
        """(rows surely among the last ones born, those of which some are, how many of them)."""
        surely: Bag = Counter()
        for _, came in reversed(self.births(now)):
            rows = self.without_parts(came)
            if surely.total() + rows.total() >= count:
                return surely, rows, count - surely.total()
            surely += rows
        return surely, Counter(), 0

    def reports(self, until: int) -> Bag:
        """What ISTREAM, DSTREAM or RSTREAM say of instants before `until`: rows behind `at`."""
        report = self.question.report.split()[0]
        if self.question.restore:
            return self.restored(until)
        said: Bag = Counter()
        for instant, came, went in self.moves(self.refreshes(until)):
            whole = self.state(instant) if came or went or self.question.slide_us else Counter()
            bag = {"ISTREAM": came, "DSTREAM": went, "RSTREAM": whole}[report]
            said += stamped(instant, self.without_parts(bag))
        return said

    def restored(self, until: int) -> Bag:
        """The reports at refreshes, with what came and went between two of them."""
        slide = self.question.slide_us
        assert slide is not None
        moves = self.moves(self.instants(until))
        said: Bag = Counter()
        for refresh in self.refreshes(until):
            since = [came for at, came, _ in moves if refresh - slide < at <= refresh]
            came = sum(since, Counter[Row]())
            if self.question.report.startswith("ISTREAM"):
                said += stamped(refresh, self.without_parts(came))
                continue
            alive = self.state(refresh)
            gone = self.without_parts(
                Counter({row: n for row, n in came.items() if row not in alive})
            )
            said += stamped(refresh, self.without_parts(alive), live=True)
            said += stamped(refresh, gone, live=False)
        return said


def stamped(at: int, rows: Bag, live: bool | None = None) -> Bag:
    head: Row = (at,) if live is None else (at, live)
    return Counter({head + row: count for row, count in rows.items()})


def accumulated(reports: Iterable[Mapping[str, Any]], now: int) -> Bag:
    """The answer at an instant, from rows with `at`, `exp` and maybe `sign`."""
    living: Bag = Counter()
    for report in reports:
        exp = report["exp"]
        if report["at"] <= now and (exp is None or now < exp):
            row = tuple(
                value for name, value in report.items() if name not in ("at", "exp", "sign")
            )
            living[(exp, row)] += report.get("sign", 1)
    assert all(count >= 0 for count in living.values()), "something went that had not come"
    answer: Bag = Counter()
    for (_, row), count in living.items():
        answer[row] += count
    return +answer


COLUMNS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys("abcd", ("ts", "_seq", "k", "g", "v", "f", "_id")),
    "r": ("ts", "_seq", "k", "w", "deleted", "_id"),
}
"""The columns of the streams that questions are about."""
