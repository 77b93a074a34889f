"""The cases: templates of one query each, and double tops in five formulations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

import duckdb
import pyarrow as pa

import eventide as ev
from benchmarks.algebra.data import closes, uniform_events
from benchmarks.algebra.templates import QUERIES, TEMPLATES, queries_of
from benchmarks.algebra.tops import FOLDED, MATCHED, RESUBSCRIBED, SELF_JOINED, WINDOWED
from benchmarks.guard import MismatchError
from benchmarks.race import ROUNDS, Finding, at_least, race

MANY = 1_000_000
"""Events of the templates."""
WANTED = 2e6
"""Events a second of a single query."""
_ROWS = ["name", "a", "b", "c", "d", "e"]


@dataclass(frozen=True)
class AlgebraSetting:
    """The events of all cases."""

    events: int

    @cached_property
    def uniform(self) -> pa.Table:
        """Events of the templates."""
        return uniform_events(self.events)

    @cached_property
    def closes(self) -> pa.Table:
        """Closes of firms: as many as in the document, or fewer."""
        return closes(days=max(60, min(4_667, self.events // 24)))


@dataclass(frozen=True, slots=True)
class AlgebraCase:
    """Something to measure."""

    name: str
    asked: str
    run: Callable[[AlgebraSetting], list[Finding]]
    spark: bool = False


def run_templates(setting: AlgebraSetting) -> list[Finding]:
    """Time each query of each template by itself; the slowest one of a template counts."""
    events = setting.uniform
    ways = {
        f"{name} {number}": partial(ask, text, events)
        for name in TEMPLATES
        for number, text in enumerate(queries_of(name))
    }
    for work in ways.values():
        work()
    seconds = race(ways)
    count = events.num_rows
    return [
        Finding(name, slowest, "2 M events/s", count / WANTED, at_least(1), events=count)
        for name in TEMPLATES
        for slowest in [max(seconds[f"{name} {number}"] for number in range(QUERIES))]
    ]


def ask(text: str, events: pa.Table) -> pa.Table:
    """Answer a query of a template."""
    return ev.cel(text, s=events).to_arrow()


def run_tops(setting: AlgebraSetting) -> list[Finding]:
    """Time the formulations of double tops; all give the same rows."""
    table = setting.closes
    connection = duckdb.connect()
    connection.register("closes", table)

    def by_duckdb(text: str) -> pa.Table:
        return connection.sql(text).to_arrow_table()

    ways: Mapping[str, Callable[[], pa.Table]] = {
        "FOLD": lambda: ev.cel(FOLDED, closes=table).to_arrow(),
        "resubscription": lambda: ev.cel(RESUBSCRIBED, closes=table).to_arrow(),
        "MATCH_RECOGNIZE": lambda: ev.sql(MATCHED, closes=table).to_arrow(),
        "DuckDB, windows": partial(by_duckdb, WINDOWED),
        "DuckDB, self-join": partial(by_duckdb, SELF_JOINED),
    }
    answers = {name: rows_of(ask()) for name, ask in ways.items()}
    for name, rows in answers.items():
        if rows != answers["FOLD"] or not rows:
            message = f"{name} found {len(rows)} double tops, FOLD {len(answers['FOLD'])}"
            raise MismatchError(message)
    seconds = race(ways, 2 * ROUNDS + 1)
    targets = {"DuckDB, self-join": at_least(4)}
    return [
        Finding("FOLD", seconds["FOLD"], name, spent, targets.get(name), table.num_rows)
        for name, spent in seconds.items()
        if name != "FOLD"
    ]


def rows_of(table: pa.Table) -> list[tuple[object, ...]]:
    """Return rows in an order of their own."""
    return sorted(zip(*(table.column(name).to_pylist() for name in _ROWS), strict=True))


ALGEBRA_CASES = (
    AlgebraCase(
        "templates",
        f"single queries of each template of the document, the slowest of {QUERIES} with other "
        "constants: three events that follow each other, with conditions on each (Stat), with a "
        "parameter (Dyn), within 20 events (Filter), iterated (NonDeterministic), with sums (Agg)",
        run_templates,
    ),
    AlgebraCase(
        "double tops",
        "a low, a high, a low, a high and a fall below the first low, in daily closes of 24 firms",
        run_tops,
    ),
)
