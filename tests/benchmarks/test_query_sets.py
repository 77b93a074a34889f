"""The benchmark of whole sets of queries: it measures what it says, and renders."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest
from benchmarks.report import Machine
from benchmarks.sharing.sets import cayuga, deploying, ratios, report, rules, rumor, running, usual
from benchmarks.sharing.sets.ratios import Ratio
from benchmarks.sharing.sets.report import Case, Found, Measured, cases, sets_section
from benchmarks.sharing.sets.rules import detection_rules
from benchmarks.sharing.sets.running import QuerySet, Speed, alone, check_set, speed
from benchmarks.sharing.sets.siddhi import QUERIES, as_bytes, siddhi_app

pytestmark = pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")
SETS = [
    *(usual.SELECTIONS, usual.SEQUENCES, usual.windows(keyed=True, batch=500)),
    *(cayuga.template(name, domain=2) for name in ("static", *cayuga.TEMPLATES)),
    *(cayuga.news(name) for name in cayuga.NEWS_TEXTS),
    *(rumor.sequences(name) for name in rumor.TEXTS),
]


@pytest.fixture(autouse=True)
def _few_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "ROUNDS", 1)
    monkeypatch.setattr(running, "BATCHES", 1)
    monkeypatch.setattr(running, "ALONE_BATCHES", 1)


@pytest.mark.parametrize("queries", SETS, ids=lambda each: each.name)
def test_queries_of_a_set_answer_as_they_do_alone(queries: QuerySet) -> None:
    check_set(queries, 5, batches=2)


def test_row_patterns_and_rules_have_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "EVENTS", 3_000)
    assert check_set(usual.patterns(2), 5, batches=2)
    assert check_set(detection_rules(5), 5, batches=3)


def test_a_set_is_measured() -> None:
    found = speed(usual.SELECTIONS, 20)
    assert found.events_s > 0
    assert found.rows > 0
    assert found.octets > 0
    assert alone(usual.SELECTIONS, 20, some=1) > 0


def test_conditions_come_again_as_in_the_document() -> None:
    levels = cayuga.prefixes(cayuga.constants(100_000))
    # 48, 71 and 96 thousand.
    assert 40_000 < levels[0] < 56_000
    assert levels[0] < levels[1] < levels[2] <= 100_000


def test_what_comes_and_goes_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deploying, "PORTIONS", 4)
    assert deploying.of_template(20) > 0
    assert deploying.of_texts(20) > 0
    found = deploying.churn(usual.SELECTIONS, 50, 8)
    assert found.changes_s > 0
    assert found.events_s > 0
    assert set(deploying.row_octets(50)) == {"static", *cayuga.TEMPLATES}


def test_siddhi_is_asked_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.sharing.sets.siddhi.MOST_BATCHES", 2)
    for queries in (usual.SELECTIONS, usual.SEQUENCES):
        assert queries.name in QUERIES
        assert siddhi_app(queries, 3).count("insert into found") == 3
        assert len(as_bytes(queries)) == 2 * 1_000 * 24


def test_all_ratios_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def quickly(*_: object, **__: object) -> Speed:
        return Speed(100, 2e6, 17.0, 0.1, 50.0)

    monkeypatch.setattr(running, "speed", quickly)
    speeds = {name: quickly() for name in cayuga.TEMPLATES}
    found = [each.name for each in ratios.ratios(4_000, speeds)]
    expected = ["R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8"]
    assert found == [*expected, "R10", "R11", "R12", "R13", "R14"]


def some() -> Iterator[Measured]:
    for case in cases(2_000):
        yield Measured(case, Speed(case.count, 2e6, 0.5, 0.1, 60.0), 1e3)


def test_the_report_renders() -> None:
    ratio = Ratio("R1", "b", "c", "d")
    found = Found(list(some()), [("a", "1", "2", "3", "4", "5")], [ratio])
    figures = found.all_figures()
    assert len(figures) == len(found.sets) - 4 + 4
    page = sets_section(found, figures, Machine.here())
    assert "| selections | 1,000 | 2,000 | 0.5 | 0.10 | 60 | 1 |" in page
    assert "| R1 | b | c | d |" in page
    assert page.count("- **windows") == 4


def test_a_case_is_checked_and_measured() -> None:
    case = Case(usual.SELECTIONS, 10, 1.0)
    (found,) = islice(report.measured([case]), 1)
    assert found.speed.queries == 10
