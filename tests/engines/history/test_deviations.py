"""Variances and the like are the same to the last bit in every context, for any grouping."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import eventide as ev
from eventide.accumulators import Frames, Groups
from eventide.accumulators.moments import Covariance, Deviation
from eventide.kernels.compiled import frozen
from tests.engines.history.windows.test_exact_sums import MIXTURES
from tests.exploring import EXPLORING
from tests.naive import moments

HARD: dict[str, Any] = {
    "far from zero": lambda random, count: 1e8 + random.normal(0, 1, count),
    "very far from zero": lambda random, count: 1e15 + random.normal(0, 1, count),
    "nearly equal": lambda random, count: 1e6 + random.choice([0.0, 2.0**-30], count),
    "whole": lambda random, count: np.floor(random.uniform(0, 200, count)),
    "squares too large": lambda random, count: random.normal(0, 1, count) * 1e154,
    "products that cancel": lambda random, count: random.choice([1e153, -1e153, 9e153], count),
    **MIXTURES,
}
COUNT, LAST = 200, 40
SPREADS = ("stddev", "stddev_pop", "variance", "var_pop")
RELATIONS = ("covar_samp", "covar_pop", "corr", "regr_slope")
CALLS = [*(f"{each}(v)" for each in SPREADS), *(f"{each}(v, w)" for each in RELATIONS)]
EVERYTHING = {
    "tumble": "SELECT {} FROM s GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)",
    "session": "SELECT {} FROM s GROUP BY SESSION(ts, INTERVAL '1' MINUTE)",
    "rows": f"SELECT {{}} FROM s GROUP BY TUMBLE(ROWS, {COUNT})",
    "over": "SELECT {} FROM s WINDOW o AS (ORDER BY ts RANGE INTERVAL '1' HOUR PRECEDING)",
    "range": "SELECT {} FROM s [RANGE 1 HOUR]",
    "slide": "SELECT {} FROM s [RANGE 1 HOUR SLIDE 1 SECOND]",
    "all": "SELECT {} FROM s",
    "measures": "SELECT * FROM s MATCH_RECOGNIZE (ORDER BY ts MEASURES {} PATTERN (A+) "
    "DEFINE A AS true)",
}
THE_LAST = {
    "over": "SELECT {} FROM s WINDOW o AS "
    f"(ORDER BY ts RANGE INTERVAL '{(LAST - 1) * 250} ms' PRECEDING)",
    "rows": f"SELECT {{}} FROM s [ROWS {LAST}]",
    "range": f"SELECT {{}} FROM s [RANGE {LAST // 4} SECONDS]",
    "slide": f"SELECT {{}} FROM s [RANGE {LAST // 4} SECONDS SLIDE 1 SECOND]",
    "hop by count": f"SELECT {{}} FROM s GROUP BY HOP(ROWS, 8, {LAST})",
}
Values = list[float | None]


def values_of(mixture: str, seed: int) -> Values:
    random = np.random.default_rng(seed)
    found = HARD[mixture](random, COUNT)
    gone = random.random(COUNT) < 0.03
    return [None if each else float(value) for value, each in zip(found, gone, strict=True)]


def both(mixture: str, seed: int) -> tuple[Values, Values]:
    return values_of(mixture, seed), values_of(mixture, seed + 100)


def spelled(value: float | None) -> str:
    return repr(0.0 if value == 0 else value)


def expected(values: Values, others: Values) -> list[str]:
    answers = [moments.spread(each, values) for each in SPREADS]
    answers += [moments.relation(each, values, others) for each in RELATIONS]
    return [spelled(each) for each in answers]


def stored(folder: Path, values: Values, others: Values) -> ev.Database:
    db = ev.open(folder)
    stream = db.create_stream("s", {"v": "float64", "w": "float64"})
    # Four events a second, the last one when panes of a second end.
    after = np.arange(1, COUNT + 1) * np.timedelta64(250, "ms")
    times = np.datetime64("2026-01-01T00:00:00", "us") + after
    rows = pa.table({"ts": times, "v": values, "w": others})
    for first in (0, 50, 110):
        stream.append(rows.slice(first, {0: 50, 50: 60, 110: 90}[first]))
    return db


def last_row(db: ev.Database, query: str) -> list[str]:
    over = " OVER o" if "WINDOW" in query else ""
    listed = ", ".join(f"{call}{over} AS a{place}" for place, call in enumerate(CALLS))
    row = db.sql(query.format(listed)).to_arrow().to_pylist()[-1]
    return [spelled(row[f"a{place}"]) for place in range(len(CALLS))]


AT_ONCE = [(mixture, 1_000_000) for mixture in [*HARD][:3]]
"""Read in one go, sums are grouped least: what any grouping needs is in few rows at a time."""


@pytest.mark.parametrize(("mixture", "rows"), [*((mixture, 7) for mixture in HARD), *AT_ONCE])
def test_every_context_has_the_same_bits(tmp_path: Path, mixture: str, rows: int) -> None:
    values, others = both(mixture, 1)
    db = stored(tmp_path / "db", values, others)
    whole, last = expected(values, others), expected(values[-LAST:], others[-LAST:])
    with patch("eventide.store.reading.scan.SCAN_ROWS", rows):
        for context, query in EVERYTHING.items():
            assert last_row(db, query) == whole, context
        for context, query in THE_LAST.items():
            assert last_row(db, query) == last, context


@pytest.mark.parametrize("mixture", HARD)
def test_conditions_have_the_same_bits(tmp_path: Path, mixture: str) -> None:
    values, others = both(mixture, 2)
    db = stored(tmp_path / "db", values, others)
    answers = zip(CALLS, expected(values, others), strict=True)
    holds = [
        f"{call} IS NULL" if answer == "None" else f"{call} = CAST('{answer}' AS double)"
        for call, answer in answers
    ]
    query = (
        "SELECT n FROM s MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(*) AS n "
        f"PATTERN (A* B) DEFINE B AS COUNT(*) = {COUNT} AND {{}})"
    )
    for each in holds:
        assert db.sql(query.format(each)).rows() == [{"n": COUNT}], each


ACCUMULATORS: list[tuple[Deviation | Covariance, int]] = [
    *((Deviation(function=each), 1) for each in ("stddev", "var_pop")),
    *((Covariance(function=each), 2) for each in ("covar_samp", "corr", "regr_slope")),
]


@pytest.mark.parametrize("seed", range(4 if EXPLORING else 2))
@pytest.mark.parametrize("mixture", HARD)
def test_any_grouping_has_the_same_bits(mixture: str, seed: int) -> None:
    drawn, random = both(mixture, seed), np.random.default_rng(seed)
    for accumulator, arguments in ACCUMULATORS:
        columns = [pa.array(each, pa.float64()) for each in drawn[:arguments]]
        partials = accumulator.lift(*columns)
        whole = accumulator.finish(accumulator.by_group(partials, zeros(COUNT)))
        wanted = spelled(whole[0].as_py())
        if isinstance(accumulator, Deviation):
            assert wanted == spelled(moments.spread(accumulator.function, drawn[0]))
        else:
            assert wanted == spelled(moments.relation(accumulator.function, *drawn))
        order = pa.array(random.permutation(COUNT))
        partials = [each.take(order) for each in partials]
        while len(partials[0]) > 1:
            rows = len(partials[0])
            cuts = np.unique([0, rows, *random.integers(0, rows, rows // 3)])
            frames = Frames(frozen(cuts[:-1]), frozen(cuts[1:]))
            of_row = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
            if random.random() < 0.5:
                partials = accumulator.by_frame(partials, frames)
            else:
                partials = accumulator.by_group(partials, Groups(frozen(of_row), len(cuts) - 1))
        assert spelled(accumulator.finish(partials)[0].as_py()) == wanted


def zeros(rows: int) -> Groups:
    return Groups(frozen(np.zeros(rows, np.int64)), 1)


def test_far_from_zero_the_answer_is_that_of_mathematics() -> None:
    values, _ = both("far from zero", 3)
    found = moments.spread("variance", values)
    present = [value for value in values if value is not None]
    mean = sum(map(Fraction, present), Fraction(0)) / len(present)
    true = sum((Fraction(value) - mean) ** 2 for value in present) / (len(present) - 1)
    assert found == pytest.approx(float(true), rel=1e-12)
