"""Patterns through the index against replay: the way that is chosen, and other choices.

Every way answers from a snapshot of its own, as every query does, so that none profits from what
another has looked up; all answers have to be the same rows. The seconds of the chosen way are
those of choosing and of answering.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import median

import numpy as np
import pyarrow as pa

import eventide as ev
from benchmarks.guard import MismatchError, as_bag, difference_of
from benchmarks.index.data import SEED
from benchmarks.index.queries import Series
from benchmarks.measure import collector_off
from eventide.engines.build import build_tree
from eventide.engines.history.access import Access, Cost
from eventide.engines.history.choice import Ways, ways
from eventide.engines.history.patterns.estimate import estimates
from eventide.engines.history.patterns.question import PatternQuestion, pattern_question
from eventide.engines.history.patterns.ways import IntervalAccess
from eventide.engines.history.weights import DEFAULTS, Weights
from eventide.lang.sql import plan_sql
from eventide.plan.tree import Plan
from eventide.store.snapshot import Snapshot

ALL_CHOICES = 6
"""Of so many conditions every choice is measured, of more a sample."""
SAMPLE = 16
SHORT_SECONDS = 1.0
ROUNDS = 3
"""What is shorter is measured so often."""

WARM_UP_EVENTS = 50_000

Asked = tuple[bool, ...]
"""Which of the conditions the index is asked about."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A way to answer one query: what was expected of it, and what it took."""

    name: str
    asked: Asked
    estimate: Cost
    actual: Cost
    seconds: float


@dataclass(frozen=True, slots=True)
class Answered:
    """A query that was answered in several ways, always the same."""

    series: str
    rows: int
    replay: Trial
    planning: float
    chosen: Trial
    others: tuple[Trial, ...] = ()

    @property
    def seconds(self) -> float:
        """What the query took: to choose, and to answer."""
        return self.planning + self.chosen.seconds

    @property
    def ratio(self) -> float:
        """Replay's time over that."""
        return self.replay.seconds / self.seconds

    @property
    def trials(self) -> list[Trial]:
        """All that was measured, each way once."""
        return [self.chosen, *self.others, *([self.replay] if self.chosen.name != "replay" else [])]

    @property
    def over_best(self) -> float:
        """How much longer than the best way the chosen one took."""
        return self.chosen.seconds / min(each.seconds for each in self.trials)

    @property
    def rank(self) -> int:
        """The place of the chosen way among all that were measured."""
        return 1 + sum(each.seconds < self.chosen.seconds for each in self.trials)

    @property
    def planning_share(self) -> float | None:
        """Time spent on choosing over the time it has saved, if it has saved some."""
        saved = self.replay.seconds - self.chosen.seconds
        return self.planning / saved if saved > 0 and self.chosen.name != "replay" else None


class Asker:
    """One query over a stored stream, to be answered in many ways."""

    def __init__(self, database: ev.Database, stream: str, text: str, weights: Weights) -> None:
        self.stored = database.store.stream(stream)
        self.text = text
        self.weights = weights
        self.plan: Plan = plan_sql(text, database.catalog())
        self.schema = build_tree(self.plan).output_schema
        self.expected: pa.Table | None = None

    def warm_up(self, sample: pa.Table) -> None:
        """Answer over a few events, so that everything is compiled."""
        ev.sql(self.text, **{self.stored.name: sample})

    def snapshot(self) -> Snapshot:
        """Return what is stored, as every query does."""
        return self.stored.snapshot()

    def choose(self) -> Ways:
        """Return the ways to answer, the one that would be taken first."""
        return ways(self.plan, self.snapshot(), self.weights)

    def replay(self) -> Access:
        """Return the way that reads every event."""
        return next(each for each in self.choose().accesses if each.name == "replay")

    def planned(self) -> float:
        """Return the seconds that choosing takes, warm."""
        self.choose()
        seconds = []
        for _ in range(ROUNDS):
            snapshot = self.snapshot()
            start = time.perf_counter()
            ways(self.plan, snapshot, self.weights)
            seconds.append(time.perf_counter() - start)
        return median(seconds)

    def question(self) -> PatternQuestion | None:
        """Return what the index is asked, with the map made, or None if it cannot be."""
        question = pattern_question(self.plan, self.snapshot())
        if isinstance(question, str):
            return None
        assert question.kept is not None
        return question

    def measured(self, make: Callable[[], Access], asked: Asked = ()) -> Trial:
        """Check the rows of a way, and return its seconds: the median of some if it is short."""
        seconds: list[float] = []
        while not seconds or (seconds[0] < SHORT_SECONDS and len(seconds) < ROUNDS):
            access = make()
            with collector_off():
                start = time.perf_counter()
                rows, actual = access.run()
                seconds.append(time.perf_counter() - start)
            if len(seconds) == 1:
                self.check(access, rows)
        return Trial(access.name, asked, access.estimate, actual, median(seconds))

    def check(self, access: Access, rows: list[pa.RecordBatch]) -> None:
        """Refuse rows that are not those of the first way."""
        found = as_bag(pa.Table.from_batches(rows, self.schema))
        if self.expected is None:
            self.expected = found
        difference = difference_of(self.expected, found)
        if difference:
            message = f"{self.text}: {access.describe()}: {difference}"
            raise MismatchError(message)

    def chosen(self, replay: Trial) -> Trial:
        """Return what the way that is chosen takes; replay has been measured already."""
        best = self.choose().best
        if best.name == "replay":
            return replay
        asked = asked_by(best)
        return self.measured(lambda: self.choose().best, asked)

    def others(self, but: Asked) -> Iterator[Trial]:
        """Yield other choices of conditions, of all of them or of a sample."""
        question = self.question()
        if question is None:
            return
        conditions = question.shape.conditions
        choices = [each for each in choices_of(len(conditions)) if each != but]
        facts = question.facts(self.weights)
        found = estimates(facts, np.array(choices, np.bool_), self.weights)
        for number, asked in enumerate(choices):
            estimate = Cost(
                float(found.seconds[number]),
                round(float(found.rows[number])),
                round(float(found.units[number])),
                round(float(found.entries[number])),
                round(float(found.intervals[number])),
            )

            def made(asked: Asked = asked, estimate: Cost = estimate) -> IntervalAccess:
                fresh = self.question()
                assert fresh is not None
                own = (each for each, wanted in zip(conditions, asked, strict=True) if wanted)
                return IntervalAccess(fresh, tuple(own), estimate)

            yield self.measured(made, asked)


def asked_by(access: Access) -> Asked:
    """Return which conditions a way asks the index about."""
    if not isinstance(access, IntervalAccess):
        return ()
    return tuple(each in access.chosen for each in access.question.shape.conditions)


def choices_of(conditions: int) -> list[Asked]:
    """Return all choices of some conditions, or none, each, all, and some at random.

    >>> len(choices_of(6)), len(choices_of(8))
    (64, 16)
    """
    if conditions <= ALL_CHOICES:
        return list(product((False, True), repeat=conditions))
    single = [tuple(place == each for place in range(conditions)) for each in range(conditions)]
    found: list[Asked] = [(False,) * conditions, (True,) * conditions]
    found += single if conditions < SAMPLE - 2 else []
    random = np.random.default_rng((SEED, conditions))
    while len(found) < (SAMPLE if conditions < SAMPLE - 2 else 2):
        some = tuple(bool(each) for each in random.random(conditions) < random.uniform(0.2, 0.8))
        found += [some] if some not in found else []
    return found


def answered(
    series: Series, database: ev.Database, weights: Weights = DEFAULTS
) -> Iterator[Answered]:
    """Yield the queries of a series, each in the chosen way and by replay, some in all ways."""
    sample = next(series.dataset.chunks(WARM_UP_EVENTS))
    for number, text in enumerate(series.texts):
        asker = Asker(database, series.dataset.stream, text, weights)
        asker.warm_up(sample)
        replay = asker.measured(asker.replay)
        planning = asker.planned()
        chosen = asker.chosen(replay)
        others = tuple(asker.others(chosen.asked)) if number < series.compared else ()
        assert asker.expected is not None
        yield Answered(series.name, asker.expected.num_rows, replay, planning, chosen, others)


def errors_of(answers: Sequence[Answered], part: str) -> list[float]:
    """Return how far off estimates were, as a share of what it really was.

    `part` is of a cost, such as rows or blocks. Replay has nothing to be estimated.
    """
    trials = [each for answer in answers for each in answer.trials if each.name != "replay"]
    pairs = [(getattr(each.estimate, part), getattr(each.actual, part)) for each in trials]
    return [abs(expected - real) / real for expected, real in pairs if real]
