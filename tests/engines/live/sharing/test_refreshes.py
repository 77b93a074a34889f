"""Periodic queries from shared synopses: each refresh is the query asked again at that instant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eventide.engines.live.sharing.engine import shared_of
from eventide.engines.live.sharing.many import ManyQueries, ManyStep
from eventide.engines.live.sharing.pace import PeriodPace
from eventide.engines.live.sharing.planned import ManyPlanner
from eventide.engines.live.sharing.turns import RefreshTurns
from eventide.engines.live.sharing.windows import WindowsRun
from eventide.lang.sql import plan_sql
from eventide.plan.sharing.rules import RULES_OF_SETS
from tests.engines.live.sharing.texts import CATALOG, SECOND, events
from tests.exploring import EXPLORING
from tests.naive.sharing.refreshes import PeriodicQuery
from tests.naive.windows import Event, aggregate

Counts = Callable[[Event], bool]
CONDITIONS: tuple[tuple[str, Counts], ...] = (
    ("", lambda _: True),
    ("WHERE car = 'a'", lambda event: event["car"] == "a"),
    ("WHERE car IN ('a', 'c')", lambda event: event["car"] in ("a", "c")),
    ("WHERE car = 'c' OR car = 'b'", lambda event: event["car"] in ("c", "b")),
    ("WHERE lane > 1", lambda event: event["lane"] is not None and event["lane"] > 1),
    (
        "WHERE lane < 1 OR speed > 40",
        lambda event: (
            (event["lane"] is not None and event["lane"] < 1)
            or (event["speed"] is not None and event["speed"] > 40)
        ),
    ),
)


@dataclass(frozen=True)
class Drawn:
    """A periodic query as a text, and as its twin."""

    text: str
    size: int
    slide: int
    ask: Callable[[Sequence[Event]], list[tuple[Any, ...]]]
    whole: bool

    def twin(self, since: int) -> PeriodicQuery:
        return PeriodicQuery(self.size, self.slide, since, self.ask)


def drawn(random: Random) -> Drawn:
    size, slide = random.choice([(4, 2), (5, 2), (7, 3), (3, 3), (20, 1)])
    where, counts = random.choice(CONDITIONS)
    key = random.choice(["car", "lane", ""])
    function, most = random.choice(["avg", "max", "count", "sum"]), random.randrange(3)
    whole = random.random() < 0.4
    item = f"{function.upper()}(speed) AS m"
    text = (
        f"SELECT {key + ', ' if key else ''}{item} FROM cars "
        f"[RANGE {size} SECONDS SLIDE {slide} SECONDS] {where} "
        f"{'GROUP BY ' + key if key else ''} HAVING COUNT(*) > {most}"
    )

    def ask(inside: Sequence[Event]) -> list[tuple[Any, ...]]:
        groups: dict[Any, list[Event]] = {}
        for event in filter(counts, inside):
            groups.setdefault(event[key] if key else None, []).append(event)
        return [
            ((name,) if key else ()) + (aggregate(function, [each["speed"] for each in own]),)
            for name, own in groups.items()
            if len(own) > most
        ]

    return Drawn(f"RSTREAM ({text})" if whole else text, size * SECOND, slide * SECOND, ask, whole)


class Running:
    """Periodic queries that come and go, and their twins."""

    def __init__(self, turns: RefreshTurns | None = None) -> None:
        self.many = ManyQueries(CATALOG, turns=turns)
        self.planner = ManyPlanner(
            lambda text, params: plan_sql(text, CATALOG, params), RULES_OF_SETS
        )
        self.twins: dict[int, tuple[Drawn, PeriodicQuery]] = {}
        self.count = self.following = 0
        self.rows = 0

    def add(self, queries: Sequence[Drawn]) -> None:
        planned = self.planner.texts([each.text for each in queries], self.count)
        assert not planned.lone
        for portion in planned.portions:
            self.many.add(portion, {"cars": self.following})
        for each in queries:
            self.twins[self.count] = each, each.twin(self.following)
            self.count += 1

    def drop(self, number: int) -> None:
        self.many.drop(np.array([number], np.int64))
        del self.twins[number]

    def take(self, rows: pa.RecordBatch) -> None:
        columns = [rows.column("ts").view(pa.int64()), *rows.columns[1:]]
        plain = pa.RecordBatch.from_arrays(columns, rows.schema.names).to_pylist()
        self.following += rows.num_rows
        stretch = self.many.turns.stretch
        step = self.many.take({"cars": rows})
        clock = plain[-1]["ts"] if plain else 0
        self.check(step, plain, clock, stretch)

    def finish(self, now_us: int) -> None:
        self.check(self.many.finish(), [], now_us + 1)

    def check(self, step: ManyStep, events: list[Event], until: int, stretch: int = 1) -> None:
        found = Counter[tuple[Any, ...]]()
        for each in step.rows:
            for number, row in zip(each.numbers.tolist(), each.rows.to_pylist(), strict=True):
                at = pa.scalar(row.pop("at"), pa.timestamp("us")).value
                sign, _ = row.pop("sign", 1), row.pop("exp", None)
                found[number, at, sign, tuple(row.values())] += 1
        expected = Counter[tuple[Any, ...]]()
        for number, (query, twin) in self.twins.items():
            whole, changes = twin.take(events, until, stretch)
            expected.update((number, *each) for each in (whole if query.whole else changes))
        assert found == expected
        self.rows += len(found)


class RandomClock:
    """A wall clock that goes on by chance whenever it is looked at."""

    def __init__(self, random: Random) -> None:
        self.random, self.us = random, 0

    def now_us(self) -> int:
        self.us += self.random.choice([0, 0, SECOND // 10, SECOND, 20 * SECOND])
        return self.us


def stretching(random: Random) -> RefreshTurns:
    return RefreshTurns(RandomClock(random).now_us)


@pytest.mark.parametrize("seed", range(300 if EXPLORING else 4))
def test_stretched_periods_leave_out_what_their_factor_says(seed: int) -> None:
    random = Random(seed)
    running, now_us = Running(stretching(random)), 0
    for _ in range(random.randrange(6, 14)):
        running.many.turns.pace = PeriodPace(random.choice([1, 1, 2, 4]))
        changing = [each for each in (drawn(random) for _ in range(8)) if not each.whole]
        running.add(changing[: random.choice([0, 1, 4])])
        if running.twins and random.random() < 0.4:
            running.drop(random.choice(list(running.twins)))
        count = random.choice([0, 1, 5, 30])
        rows, now_us = events(random, "cars", count, now_us, running.following, 0.0)
        running.take(rows)
        if random.random() < 0.3:
            for shared in running.many.shared:
                shared.load(shared.dump())
    assert running.rows or EXPLORING


def test_refreshes_that_wait_for_their_turn_are_answered_once() -> None:
    assert sum(map(how_many_waited, range(300 if EXPLORING else 6)))


def how_many_waited(seed: int) -> int:
    """Check queries for a seed; return how many refreshes waited for their turn."""
    random = Random(seed)
    turns = stretching(random)
    turns.goes_before = lambda: random.random() < 0.5
    running, now_us, waited = Running(turns), 0, 0
    answered: dict[int, list[int]] = {}
    every: list[Event] = []
    stretches = random.random() < 0.5
    added: dict[int, tuple[Drawn, int]] = {}

    def check(step: ManyStep) -> None:
        for rows in step.rows:
            found: dict[tuple[int, int], Counter[tuple[Any, ...]]] = {}
            for number, row in zip(rows.numbers.tolist(), rows.rows.to_pylist(), strict=True):
                at = pa.scalar(row.pop("at"), pa.timestamp("us")).value
                found.setdefault((number, at), Counter())[tuple(row.values())] += 1
            for number, at in sorted(found):
                query, since = added[number]
                own = answered.setdefault(number, [])
                assert not own or own[-1] < at
                own.append(at)
                inside = [
                    each
                    for each in every
                    if at - query.size < each["ts"] <= at and each["_seq"] >= since
                ]
                assert found[number, at] == Counter(query.ask(inside))

    for _ in range(random.randrange(6, 14)):
        # A factor of its own for each step, or none.
        turns.pace = PeriodPace(random.choice([1, 2, 4]) if stretches else 1)
        for each in [each for each in (drawn(random) for _ in range(6)) if each.whole]:
            planned = running.planner.texts([each.text], running.count)
            for portion in planned.portions:
                running.many.add(portion, {"cars": running.following})
            added[running.count] = each, running.following
            running.count += 1
        rows, now_us = events(
            random, "cars", random.choice([1, 5, 30]), now_us, running.following, 0.0
        )
        columns = [rows.column("ts").view(pa.int64()), *rows.columns[1:]]
        every += pa.RecordBatch.from_arrays(columns, rows.schema.names).to_pylist()
        running.following += rows.num_rows
        check(running.many.take({"cars": rows}))
        waited += running.many.waiting
        if random.random() < 0.3:
            for shared in running.many.shared:
                shared.load(shared.dump())
        if random.random() < 0.3:
            check(running.many.refresh())
    check(running.many.finish())
    assert not running.many.waiting
    if stretches:
        return waited
    for number, (query, since) in added.items():
        ats = range(0, now_us + 1, query.slide)
        own = [each for each in every if each["_seq"] >= since]
        filled = [
            at
            for at in ats
            if query.ask([each for each in own if at - query.size < each["ts"] <= at])
        ]
        assert answered.get(number, []) == filled
    return waited


@pytest.mark.parametrize("seed", range(200 if EXPLORING else 5))
def test_how_many_refreshes_are_left_out_is_counted(seed: int) -> None:
    random = Random(seed)
    turns = stretching(random)
    running = Running(turns)
    slides = [1, 2, 3, 7]
    texts = [
        f"RSTREAM (SELECT COUNT(*) AS n FROM cars [RANGE 1 HOUR SLIDE {each} SECONDS])"
        for each in slides
    ]
    for portion in running.planner.texts(texts, 0).portions:
        running.many.add(portion, {"cars": 0})
    answered: list[list[int]] = [[] for _ in slides]

    def note(step: ManyStep) -> None:
        for each in step.rows:
            for number, at in zip(
                each.numbers.tolist(),
                each.rows.column("at").view(pa.int64()).to_pylist(),
                strict=True,
            ):
                answered[number].append(at)

    first = now = random.randrange(1, 20)
    for _ in range(40):
        turns.pace = PeriodPace(random.choice([1, 2, 4]))
        note(running.many.take({"cars": seconds(running.following, now)}))
        running.following += 1
        now += random.randrange(1, 6)
    while running.many.waiting:
        note(running.many.refresh())
    (windows,) = windows_of(running)
    following = windows.operator.due_of(windows.state)
    expected = 0
    for number, (slide, own) in enumerate(zip(slides, answered, strict=True)):
        every = range(-(-first // slide) * slide, following[number] // SECOND, slide)
        assert {at // SECOND for at in own} <= set(every)
        expected += len(every) - len(own)
    assert expected
    assert windows.delays.left_out == expected


def seconds(first_seq: int, *ts: float) -> pa.RecordBatch:
    """Return an event of car a at each of some seconds."""
    count = len(ts)
    columns = {
        "ts": pa.array([int(each * SECOND) for each in ts], pa.timestamp("us")),
        "_seq": pa.array(range(first_seq, first_seq + count)),
        "car": pa.array(["a"] * count),
        "speed": pa.array([1.0] * count),
        "lane": pa.array([1] * count),
    }
    names = CATALOG["cars"].arrow.names
    return pa.RecordBatch.from_pydict({name: columns[name] for name in names})


@pytest.mark.parametrize("seed", range(300 if EXPLORING else 4))
def test_each_refresh_is_the_query_asked_at_that_instant(seed: int) -> None:
    random, running, now_us = Random(seed), Running(), 0
    for _ in range(random.randrange(6, 14)):
        running.add([drawn(random) for _ in range(random.choice([0, 1, 4, 12]))])
        if running.twins and random.random() < 0.4:
            running.drop(random.choice(list(running.twins)))
        count = random.choice([0, 1, 5, 30])
        rows, now_us = events(random, "cars", count, now_us, running.following, 0.0)
        running.take(rows)
        if random.random() < 0.3:
            for shared in running.many.shared:
                shared.load(shared.dump())
    running.finish(now_us)
    assert running.rows or EXPLORING


def windows_of(running: Running) -> list[WindowsRun]:
    """Return the shared windows of the queries that began first."""
    (shared,) = running.many.shared
    runs = shared_of(shared.states[0]).runs
    return [run.windows for run in runs if run.windows is not None]


def texts(conditions: Sequence[str], size: int = 60) -> list[str]:
    return [
        f"RSTREAM (SELECT SUM(speed) AS s FROM cars [RANGE {size} SECONDS SLIDE 2 SECONDS] {each})"
        for each in conditions
    ]


def asked(running: Running, conditions: Sequence[str], size: int = 60) -> None:
    planned = running.planner.texts(texts(conditions, size), running.count)
    for portion in planned.portions:
        running.many.add(portion, {"cars": running.following})
    running.count += len(conditions)


def test_queries_over_sets_of_cars_read_the_synopses_of_their_cars() -> None:
    running = Running()
    asked(
        running, ["WHERE car IN ('a', 'b')", "WHERE car IN ('b', 'c')", "WHERE car IN ('c', 'a')"]
    )
    asked(running, ["WHERE car = 'a'", "WHERE car = 'b'", "WHERE car = 'c'"], size=8)
    tables = [run.table for run in windows_of(running)]
    assert [len(table.synopses) for table in tables] == [3]


def test_parts_that_no_other_query_has_are_not_kept_apart() -> None:
    running = Running()
    asked(running, ["WHERE car IN ('a', 'b')"] * 3)
    tables = [run.table for run in windows_of(running)]
    assert [len(table.synopses) for table in tables] == [1]


def test_a_synopsis_goes_with_the_last_query_that_reads_it() -> None:
    running, random = Running(), Random(0)
    asked(running, ["WHERE car = 'a'", "WHERE car = 'b'", "WHERE car = 'b'"])
    rows, now_us = events(random, "cars", 100, 0, 0, 0.0)
    running.many.take({"cars": rows})
    (windows,) = windows_of(running)
    running.many.drop(np.array([1], np.int64))
    assert len(windows.table.synopses) == 2
    running.many.drop(np.array([2], np.int64))
    assert len(windows.table.synopses) == 1
    rows, _ = events(random, "cars", 2000, now_us, 100, 0.0)
    running.many.take({"cars": rows})
    (state,) = windows.states
    cells = state.slices.cells[: state.slices.log.end]
    assert set(state.known.synopsis_of[cells].tolist()) == {0}


def test_how_late_refreshes_are_is_counted() -> None:
    running = Running()
    asked(running, [""], size=4)
    (windows,) = windows_of(running)

    def take(*ts: float) -> None:
        running.many.take({"cars": seconds(running.following, *ts)})
        running.following += len(ts)

    take(1, 2.5)
    assert (windows.delays.rows, windows.delays.most_us, windows.delays.overdue) == (
        1,
        SECOND // 2,
        0,
    )
    take(6.5)
    assert (windows.delays.rows, windows.delays.most_us, windows.delays.overdue) == (
        3,
        5 * SECOND // 2,
        1,
    )
