"""Each of many queries that come and go has the rows that it has alone: all kinds, any cutting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from eventide.engines.live.engine import LiveEngine, LiveState
from eventide.engines.live.sharing.engine import shared_of
from eventide.engines.live.sharing.many import ManyQueries, ManyStep
from eventide.engines.live.sharing.planned import ManyPlanner
from eventide.engines.live.sharing.run import TemplateRun
from eventide.lang.sql import plan_sql
from eventide.plan.sharing.rules import ALL_RULES, RULES_OF_SETS, WITHOUT_PARTS, SharingRules
from eventide.plan.tree import Plan
from eventide.schema import Schema
from tests.engines.live.sharing.rare_texts import KINDS as RARE_KINDS
from tests.engines.live.sharing.rare_texts import RARE, rare_events
from tests.engines.live.sharing.texts import (
    CATALOG,
    HYBRIDS,
    KINDS,
    PATTERNS,
    PERIODIC,
    SECOND,
    SELECTIONS,
    SEQUENCES,
    STANDING,
    WINDOWS,
    Draw,
    events,
)
from tests.exploring import EXPLORING

pytestmark = pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")
Bag = Counter[tuple[str, ...]]


@dataclass
class Alone:
    """The twin: a query that runs alone from its start, and its rows."""

    engine: LiveEngine
    state: LiveState
    rows: list[pa.RecordBatch] = field(default_factory=list)


class Compared:
    """Queries in one engine, and each of them in an engine of its own."""

    def __init__(
        self,
        lateness_us: int,
        rules: SharingRules = ALL_RULES,
        catalog: Mapping[str, Schema] = CATALOG,
        max_lag_us: int | None = None,
    ) -> None:
        self.catalog = catalog
        self.lateness_us = lateness_us
        self.max_lag_us = max_lag_us
        self.many = ManyQueries(catalog, lateness_us, max_lag_us)
        self.planner = ManyPlanner(lambda text, params: plan_sql(text, catalog, params), rules)
        self.alone: dict[int, Alone] = {}
        self.texts: list[str] = []
        self.following = dict.fromkeys(catalog, 0)
        self.found: dict[int, Bag] = {}
        self.gone: dict[int, Bag] = {}

    def add(self, texts: Sequence[str]) -> None:
        planned = self.planner.texts(texts, len(self.texts))
        for portion in planned.portions:
            self.many.add(portion, self.following)
        for number, plan in planned.lone.items():
            engine = self.engine_of(plan)
            self.many.add_lone(number, engine, engine.initial_state())
        for text in texts:
            engine = self.engine_of(plan_sql(text, self.catalog))
            number = len(self.texts)
            self.alone[number] = Alone(engine, engine.initial_state())
            self.found[number] = Counter()
            self.texts.append(text)

    def engine_of(self, plan: Plan) -> LiveEngine:
        return LiveEngine.of(plan, self.catalog, self.lateness_us, max_lag_us=self.max_lag_us)

    def drop(self, number: int) -> None:
        self.many.drop(np.array([number], np.int64))
        self.gone[number] = self.found[number].copy()
        del self.alone[number]

    def take(self, stream: str, rows: pa.RecordBatch) -> None:
        self.note(self.many.take({stream: rows}))
        self.following[stream] += rows.num_rows
        for each in self.alone.values():
            if stream in each.engine.streams:
                each.state, reported = each.engine.take(each.state, {stream: rows})
                each.rows.append(reported.rows)

    def advance(self, until_us: int, stream: str | None) -> None:
        self.note(self.many.advance(until_us, stream))
        for each in self.alone.values():
            if stream is None or stream in each.engine.streams:
                each.state, reported = each.engine.advance(each.state, until_us, stream)
                each.rows.append(reported.rows)

    def finish(self) -> None:
        self.note(self.many.finish())
        for each in self.alone.values():
            each.state, reported = each.engine.finish(each.state)
            each.rows.append(reported.rows)

    def note(self, step: ManyStep) -> None:
        assert not step.failed, {self.texts[each]: why for each, why in step.failed.items()}
        for each in step.rows:
            for number in np.unique(each.numbers):
                self.found[int(number)] += bag([each.rows.filter(pa.array(each.numbers == number))])

    def dump_and_load(self) -> None:
        for shared in self.many.shared:
            shared.load(shared.dump())

    def check(self) -> None:
        for number, each in self.alone.items():
            assert self.found[number] == bag(each.rows), self.texts[number]
        for number, rows in self.gone.items():
            assert self.found[number] == rows, f"rows after it left: {self.texts[number]}"


def bag(rows: Iterable[pa.RecordBatch]) -> Bag:
    return Counter(tuple(map(repr, row.items())) for batch in rows for row in batch.to_pylist())


def some_rules(random: Random) -> SharingRules:
    """Return all rules, or any subset of them."""
    if random.random() < 0.5:
        return RULES_OF_SETS
    return SharingRules(**{each.name: random.random() < 0.5 for each in fields(SharingRules)})


def run(
    random: Random, kinds: Sequence[Draw], disorder: float, rules: SharingRules | None = None
) -> Compared:
    """Let queries come and go while events flow, with any rules."""
    compared = Compared(random.choice([0, 0, 2 * SECOND]), rules or some_rules(random))
    now_us, following = 0, dict.fromkeys(CATALOG, 0)
    for _ in range(random.randrange(6, 14)):
        compared.add([random.choice(kinds)(random) for _ in range(random.choice([0, 1, 4, 12]))])
        if compared.alone and random.random() < 0.4:
            compared.drop(random.choice(list(compared.alone)))
        stream, count = random.choice(["cars", "cars", "photos"]), random.choice([0, 1, 5, 30])
        rows, now_us = events(random, stream, count, now_us, following[stream], disorder)
        following[stream] += count
        compared.take(stream, rows)
        if random.random() < 0.3:
            compared.dump_and_load()
    compared.finish()
    return compared


SEEDS = range(200 if EXPLORING else 3)


@pytest.mark.parametrize("disorder", [0.0, 0.1])
@pytest.mark.parametrize(
    "kinds",
    [SELECTIONS, WINDOWS, PATTERNS, SEQUENCES, HYBRIDS, STANDING, PERIODIC, KINDS],
    ids=["s", "w", "p", "q", "h", "st", "r", "all"],
)
@pytest.mark.parametrize("seed", SEEDS)
def test_queries_answer_as_if_they_ran_alone(
    seed: int, kinds: Sequence[Draw], disorder: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventide.engines.live.sharing.packed.FEWEST", (1024, 1, 4)[seed % 3])
    run(Random(seed), kinds, disorder).check()


@pytest.mark.parametrize("disorder", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(400 if EXPLORING else 4))
def test_rare_queries_answer_as_if_they_ran_alone(seed: int, disorder: float) -> None:
    random = Random(seed)
    lateness_us, max_lag_us = random.choice([0, 0, 2 * SECOND]), random.choice([None, 4 * SECOND])
    compared = Compared(lateness_us, some_rules(random), RARE, max_lag_us)
    now_us, following = 0, dict.fromkeys(RARE, 0)
    kinds = random.sample(RARE_KINDS, 5)
    for _ in range(random.randrange(4, 10)):
        compared.add([random.choice(kinds)(random) for _ in range(random.choice([0, 1, 4, 12]))])
        if compared.alone and random.random() < 0.4:
            compared.drop(random.choice(list(compared.alone)))
        stream, count = random.choice(["cars", "cars", "photos"]), random.choice([0, 1, 5, 30])
        rows, now_us = rare_events(random, stream, count, now_us, following[stream], disorder)
        following[stream] += count
        compared.take(stream, rows)
        if random.random() < 0.2:
            compared.advance(now_us, random.choice([None, "cars", "silent"]))
        if random.random() < 0.3:
            compared.dump_and_load()
    compared.finish()
    compared.check()


def test_queries_that_begin_while_events_flow_soon_run_with_the_others() -> None:
    random, compared, now_us = Random(1), Compared(0), 0
    for step in range(12):
        compared.add([SELECTIONS[0](random), WINDOWS[0](random)])
        rows, now_us = events(random, "cars", 10, now_us + SECOND, 10 * step, 0)
        compared.take("cars", rows)
    assert [len(each.states) for each in compared.many.shared] == [1]


def test_a_query_that_left_is_forgotten() -> None:
    random, compared = Random(2), Compared(0)
    compared.add([WINDOWS[0](random) for _ in range(20)])
    rows, _ = events(random, "cars", 50, 0, 0, 0)
    compared.take("cars", rows)
    for number in range(20):
        compared.drop(number)
    assert not compared.many.shared


def test_what_queries_that_left_remember_is_freed_while_others_go_on() -> None:
    random, compared = Random(3), Compared(0, WITHOUT_PARTS)
    compared.add([WINDOWS[0](random) for _ in range(20)])
    rows, _ = events(random, "cars", 50, 0, 0, 0)
    compared.take("cars", rows)
    (shared,) = compared.many.shared
    before = sum(size.tuples for _, size in shared.sizes())
    for number in range(19):
        compared.drop(number)
    shared.forget_gone()
    assert sum(size.tuples for _, size in shared.sizes()) < before / 4
    compared.finish()
    compared.check()


@pytest.mark.parametrize("kinds", [WINDOWS, PATTERNS, SEQUENCES, HYBRIDS], ids=[*"wpqh"])
@pytest.mark.parametrize("seed", range(20 if EXPLORING else 2))
def test_a_query_goes_on_by_itself_and_joins_again(seed: int, kinds: Sequence[Draw]) -> None:
    random, compared, now_us = Random(seed), Compared(0), 0
    compared.add([random.choice(kinds)(random) for _ in range(8)])
    for step in range(6):
        rows, now_us = events(random, "cars", 12, now_us, 12 * step, 0)
        compared.take("cars", rows)
        for shared in compared.many.shared:
            number = int(random.choice(shared.numbers.tolist()))
            shared.join(shared.apart(number))
    compared.finish()
    compared.check()


def test_windows_that_begin_while_events_flow_are_merged_from_the_same_slices() -> None:
    random, compared, now_us = Random(4), Compared(0), 0
    text = "SELECT car, COUNT(*) AS n FROM cars GROUP BY car, TUMBLE(ts, INTERVAL '{}' SECOND)"
    for step in range(10):
        compared.add([text.format(step + 2)])
        rows, now_us = events(random, "cars", 8, now_us + SECOND, 8 * step, 0)
        compared.take("cars", rows)
    (shared,) = compared.many.shared
    assert len(shared.states) == 1
    compared.finish()
    compared.check()


SKIPPING = """SELECT * FROM cars MATCH_RECOGNIZE (PARTITION BY car ORDER BY ts
    MEASURES COUNT(*) AS n AFTER MATCH SKIP TO LAST B PATTERN (PERMUTE(A, B))
    DEFINE A AS speed > {}, B AS speed <= {})"""


def test_a_match_that_cannot_skip_ends_its_own_query_alone() -> None:
    compared = Compared(0)
    compared.add([SKIPPING.format(0, -1), SKIPPING.format(50, 10)])
    columns = {
        "ts": pa.array([0, SECOND], pa.timestamp("us")),
        "_seq": [0, 1],
        "car": ["a", "a"],
        "speed": [5.0, 70.0],
        "lane": [1, 1],
    }
    rows = pa.RecordBatch.from_pydict(columns)
    step = compared.many.take({"cars": rows})
    step = compared.many.finish()
    assert list(step.failed) == [1]
    assert len(compared.many) == 1


def test_queries_with_other_conditions_have_the_same_template() -> None:
    compared = Compared(0, catalog=RARE)
    compared.add([f"SELECT car, 1 AS l FROM cars WHERE lane = {n}" for n in range(3)])
    compared.add(["SELECT car, 2 AS l FROM cars WHERE fee > 1.2 AND speed < 7"])
    compared.add(["SELECT car, 3 AS l FROM cars"])
    rows, _ = rare_events(Random(0), "cars", 50, 0, 0, 0)
    compared.take("cars", rows)
    compared.finish()
    compared.check()
    (shared,) = compared.many.shared
    assert len(shared.engine.shared.templates) == 1


@pytest.mark.parametrize(
    "kinds", [SELECTIONS, WINDOWS, PATTERNS, SEQUENCES, HYBRIDS], ids=[*"swpqh"]
)
def test_what_has_left_takes_no_room(
    kinds: Sequence[Draw], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventide.engines.live.sharing.engine.MANY_GONE", 4)
    random, compared, now_us = Random(5), Compared(0), 0
    compared.add([random.choice(kinds)(random) for _ in range(5)])
    for step in range(30):
        compared.add([random.choice(kinds)(random) for _ in range(3)])
        rows, now_us = events(random, "cars", 8, now_us, 8 * step, 0)
        compared.take("cars", rows)
        for number in list(compared.alone)[5:]:
            compared.drop(number)
        for shared in compared.many.shared:
            runs = [run for state in shared.states for run in state.operators.runs]  # type: ignore[attr-defined]
            assert sum(run.rows for run in runs) < 5 + 3 + 2 * 8
            assert sum(len(run.known.portions) for run in runs) < 5 + 3 + 2 * 8
            assert len(shared.engine.shared.templates) < 5 + 3 + 2 * 8
    compared.finish()
    compared.check()


ABOVE = """SELECT car, window_end, SUM(speed) AS m FROM cars WHERE lane = {lane}
    GROUP BY car, TUMBLE(ts, INTERVAL '2' SECOND) HAVING SUM(speed) {above}"""


def runs_of(compared: Compared) -> list[TemplateRun]:
    (shared,) = compared.many.shared
    return [run for state in shared.states for run in shared_of(state).runs]


def test_a_part_that_queries_of_several_templates_have_runs_once() -> None:
    random, compared = Random(6), Compared(0)
    compared.add([ABOVE.format(lane=1, above=f"> {least}") for least in range(30)])
    compared.add([ABOVE.format(lane=1, above=f"< {most} OR car = 'a'") for most in range(30)])
    rows, now_us = events(random, "cars", 50, 0, 0, 0)
    compared.take("cars", rows)
    compared.dump_and_load()
    rows, _ = events(random, "cars", 50, now_us, 50, 0)
    compared.take("cars", rows)
    part, *above = runs_of(compared)
    assert part.rows == 2  # those of each `add`
    assert part.tree.template.plan.row.keys() >= {"car", "m"}
    assert all(run.tree.template.parts == (part.tree.template,) for run in above)
    compared.finish()
    compared.check()


@pytest.mark.parametrize(("sizes", "parts"), [((3, 4, 5, 5, 6), 0), ((3, 3, 3, 5, 5), 1)])
def test_events_are_reduced_once_for_windows_whether_some_are_equal_or_not(
    sizes: tuple[int, ...], parts: int
) -> None:
    random, compared = Random(8), Compared(0)
    text = "SELECT COUNT(*) AS n FROM cars GROUP BY TUMBLE(ts, INTERVAL '{}' SECOND)"
    compared.add([text.format(size) for size in sizes])
    rows, _ = events(random, "cars", 50, 0, 0, 0)
    compared.take("cars", rows)
    assert sum(run.windows is not None for run in runs_of(compared)) == 1
    assert sum(bool(run.tree.template.parts) for run in runs_of(compared)) == parts
    compared.finish()
    compared.check()


def test_a_part_goes_with_the_last_query_that_has_it() -> None:
    random, compared = Random(7), Compared(0)
    compared.add([ABOVE.format(lane=lane, above=f"> {n}") for lane in (1, 2) for n in range(3)])
    rows, now_us = events(random, "cars", 50, 0, 0, 0)
    compared.take("cars", rows)
    for number in range(3):
        compared.drop(number)
        (shared,) = compared.many.shared
        (state,) = shared.states
        assert len(shared_of(state).numbers.parts.all) == (2 if number < 2 else 1)
    shared.forget_gone()
    rows, _ = events(random, "cars", 50, now_us, 50, 0)
    compared.take("cars", rows)
    compared.finish()
    compared.check()


def test_all_queries_that_have_a_part_fail_with_it() -> None:
    compared = Compared(0)
    texts = [
        "SELECT car, m FROM (SELECT car, SUM(lane) AS m FROM cars "
        f"GROUP BY car, TUMBLE(ts, INTERVAL '2' SECOND)) WHERE m > {n}"
        for n in range(3)
    ]
    compared.add([*texts, "SELECT car FROM cars"])
    columns = {
        "ts": pa.array([0, SECOND], pa.timestamp("us")),
        "_seq": [0, 1],
        "car": ["a", "a"],
        "speed": [5.0, 70.0],
        "lane": [2**62, 2**62],
    }
    steps = [compared.many.take({"cars": pa.RecordBatch.from_pydict(columns)})]
    steps.append(compared.many.finish())
    assert sorted(number for step in steps for number in step.failed) == [0, 1, 2]
    assert len(compared.many) == 1


def test_standing_queries_of_a_template_run_as_one() -> None:
    random, compared, now_us = Random(8), Compared(0, RULES_OF_SETS), 0
    for step in range(3):
        compared.add([kind(random) for kind in STANDING[:3] for _ in range(4)])
        rows, now_us = events(random, "cars", 20, now_us, 20 * step, 0)
        compared.take("cars", rows)
        compared.drop(random.choice(list(compared.alone)))
    assert not compared.many.lone
    compared.finish()
    compared.check()


def test_queries_with_a_part_that_leave_before_they_run_with_the_others() -> None:
    random, compared, now_us = Random(9), Compared(0), 0
    compared.add(["SELECT car FROM cars WHERE lane = 1"])
    for step in range(4):
        rows, now_us = events(random, "cars", 10, now_us, 10 * step, 0)
        compared.take("cars", rows)
        first = len(compared.texts)
        compared.add([ABOVE.format(lane=1, above=f"> {n}") for n in range(2)])
        compared.drop(first)
        compared.drop(first + 1)
    compared.finish()
    compared.check()
