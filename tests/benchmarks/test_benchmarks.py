"""The benchmarks' answers are right and their report renders. Time is never asserted."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.cases import QUESTIONS, Case, Duel, Question
from benchmarks.data import CARS, MANY_CARS, Traffic
from benchmarks.errands import all_cases
from benchmarks.guard import MismatchError, as_bag, check_answers, difference_of
from benchmarks.index.windows import (
    EACH,
    SLIDES,
    Slide,
    WindowSetting,
    window_findings,
    windows_section,
)
from benchmarks.measure import measure
from benchmarks.patterns.cases import QUESTIONS as PATTERN_QUESTIONS
from benchmarks.patterns.cases import PatternCase, against, by_hand, new_texts
from benchmarks.patterns.data import STREAM, kept, ticks
from benchmarks.patterns.rivals import FLINK, AbsentError, Rival, Task, ask, last_line
from benchmarks.patterns.setting import PatternSetting, PatternSizes
from benchmarks.patterns.setting import Question as PatternQuestion
from benchmarks.promises import figures_of
from benchmarks.race import Finding, at_least, at_most, check_close, check_same
from benchmarks.report import (
    Machine,
    as_table,
    patterns_section,
    queries_section,
    store_section,
)
from benchmarks.sensors import COLUMNS, as_they_arrive, exponential, in_bursts, sensor_chunks
from benchmarks.setting import Setting
from benchmarks.store.cases import StoreCase
from benchmarks.store.paper import all_store_cases
from benchmarks.store.setting import Sizes, StoreSetting
from benchmarks.ways import Way

from benchmarks import __main__ as command
from eventide.lang.sql import plan_sql
from eventide.schema import Schema
from tests.engines.engines import to_table
from tests.engines.scenarios import SCENARIOS

pytestmark = pytest.mark.usefixtures("uncollected")

EVENTS = 20_000
STORE_EVENTS = 30_000
EMBEDDED = [case for case in all_cases() if not case.spark]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], Setting]:
    keys = {(case.traffic, case.over(EVENTS)) for case in EMBEDDED}
    return {
        (traffic.name, count): Setting(traffic.events(count), tmp_path_factory.mktemp("setting"))
        for traffic, count in keys
    }


@pytest.mark.parametrize("case", EMBEDDED, ids=lambda case: case.name)
def test_everybody_gives_the_same_answer(
    case: Case, settings: dict[tuple[str, int], Setting]
) -> None:
    check_answers(case, settings[case.traffic.name, case.over(EVENTS)])


@pytest.mark.parametrize("scenario", ["mixed", "one_key"])
@pytest.mark.parametrize(
    "question", [q for q in QUESTIONS if q.name != "filter"], ids=lambda question: question.name
)
def test_everybody_agrees_on_what_the_engines_agree_on(
    question: Question, scenario: str, tmp_path: Path
) -> None:
    # Nulls, ties, gaps, times before 1970, all out of order. Not Polars: its running sums keep
    # about nine digits once a value of 1e9 has passed through them.
    events = to_table(SCENARIOS[scenario]().events()).drop_columns(["_seq"])
    check_answers(replace(question, polars={}).embedded(), Setting(events, tmp_path))


def test_the_report_renders(settings: dict[tuple[str, int], Setting]) -> None:
    case = next(case for case in EMBEDDED if case.name == "tumbling average")
    outcomes = measure(case, settings[case.traffic.name, EVENTS])
    assert as_table(outcomes).row_count == len(case.duels)
    page = queries_section(outcomes, EVENTS, Machine.here())
    assert page.count("| tumbling average |") == len(case.duels)
    assert "higher is better" in page
    assert f"{EVENTS:,}" in page
    found, *others = figures_of(outcomes)
    assert (found.rival, str(found.target)) == ("DuckDB, Arrow", "≥ 1")
    assert found.met is outcomes[0].met
    assert {each.rival for each in others} == {"Polars", "Polars dynamic"}


def test_a_wrong_answer_stops_the_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    right, wrong = pa.table({"n": [1.0, 2.0]}), pa.table({"n": [2.0, 1.0 + 1e-8]})
    duel = Duel(
        Way("right", lambda _: None, lambda _: right), Way("wrong", lambda _: None, lambda _: wrong)
    )
    case = Case("sums", "", CARS, (duel,))
    monkeypatch.setattr(command, "all_cases", lambda: [case])
    assert command.main(["--events", "10"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "sums: wrong and right differ: sorted row 0, column n: {'n': 1.00000001}" in said


@pytest.mark.parametrize(
    ("found", "difference"),
    [
        ({"car": ["b", "a"], "n": [2.0, 1.0 + 1e-12]}, ""),  # order and the last bits are free
        ({"car": ["a", "b"], "n": [1.0, None]}, "column n"),
        ({"car": ["a", None], "n": [1.0, 2.0]}, "column car"),
        ({"car": ["a"], "n": [1.0]}, "1 rows, not 2"),
        ({"car": ["a", "b"], "m": [1.0, 2.0]}, "columns ['car', 'm']"),
    ],
)
def test_what_counts_as_a_difference(found: dict[str, list[object]], difference: str) -> None:
    expected = pa.table({"car": ["a", "b"], "n": [1.0, 2.0]})
    said = difference_of(as_bag(expected), as_bag(pa.table(found)))
    assert difference in said
    assert bool(said) == bool(difference)


@pytest.mark.parametrize("traffic", [CARS, MANY_CARS], ids=lambda traffic: traffic.name)
def test_events_are_the_same_in_every_run(traffic: Traffic) -> None:
    events = traffic.events(EVENTS)
    assert events.equals(traffic.events(EVENTS))
    assert events.column("ts").to_pylist() == sorted(events.column("ts").to_pylist())
    assert len(events.column("car").unique()) == traffic.cars * (1 if traffic is CARS else 1 / 500)


@pytest.fixture(scope="module")
def store_setting(tmp_path_factory: pytest.TempPathFactory) -> StoreSetting:
    return StoreSetting(Sizes(STORE_EVENTS), tmp_path_factory.mktemp("store"))


@pytest.mark.parametrize("case", all_store_cases(), ids=lambda case: case.name)
def test_the_store_answers_like_its_rivals(case: StoreCase, store_setting: StoreSetting) -> None:
    # A case checks everything itself before it times anything.
    findings = case.run(store_setting)
    assert findings
    page = store_section(findings, [case], STORE_EVENTS, Machine.here())
    assert all(as_line in page for as_line in (case.asked, findings[0].eventide))
    assert as_table(findings).row_count == len(findings)


@pytest.mark.parametrize(
    ("finding", "ratio", "met"),
    [
        (Finding("fast", 2.0, "slow", 6.0, at_least(3)), 3.0, True),
        (Finding("slow", 6.0, "fast", 2.0, at_least(1)), 1 / 3, False),
        (Finding("large", 6.0, "small", 4.0, at_most(1.5)), 1.5, True),
        (Finding("late", 0.2, target=at_most(0.1)), None, False),
        (Finding("fast", 2.0, "slow", 6.0), 3.0, None),
    ],
)
def test_what_meets_a_target(finding: Finding, ratio: float | None, met: bool | None) -> None:
    assert finding.ratio == (None if ratio is None else pytest.approx(ratio))
    assert finding.met is met


def test_rows_that_differ_are_not_timed() -> None:
    first, second = sensor_chunks(200, 100)
    same = [first.to_batches()[0].slice(0, 30), first.to_batches()[0].slice(30)]
    check_same("split", same, [first])
    for found in ([], [*same, *second.to_batches()], second.to_batches()):
        with pytest.raises(MismatchError, match="rows"):
            check_same("different", found, [first])
    with pytest.raises(MismatchError, match="avg is"):
        check_close("answers", {"avg": 1.0}, {"avg": 2.0})


def test_sensors_are_the_same_in_every_run_and_late_ones_only_move() -> None:
    events = pa.concat_tables(sensor_chunks(30_000, 10_000))
    assert events.column_names == list(COLUMNS)
    assert events.equals(pa.concat_tables(sensor_chunks(30_000, 10_000)))
    ts = events.column("ts").to_pylist()
    assert ts == sorted(set(ts))
    for arrived in (as_they_arrive(events, 0.1, exponential), in_bursts(events, 0.1)):
        found = arrived.column("ts").to_pylist()
        late = sum(later < earlier for earlier, later in pairwise(found))
        assert late > 0
        assert arrived.sort_by("ts").equals(events.combine_chunks())


@pytest.mark.parametrize(
    "question", [*PATTERN_QUESTIONS, *new_texts()], ids=lambda question: question.name
)
def test_patterns_have_plans(question: PatternQuestion) -> None:
    catalog = {STREAM: Schema.from_arrow(ticks(1).schema)}
    assert plan_sql(question.text, catalog)


def test_ticks_are_the_same_in_every_run_and_kept(tmp_path: Path) -> None:
    events = ticks(5_000)
    assert events.equals(ticks(5_000))
    assert pq.read_table(kept(tmp_path, 5_000)).equals(events)
    assert len(events.column("k").unique()) == 100
    for name in ("ts", "price"):
        assert len(events.column(name).unique()) == 5_000


def test_a_pattern_by_hand() -> None:
    prices = [5.0, 4.0, 3.0, 4.0, 3.0, 2.0, 1.0, 2.0, 2.0, 1.0]
    events = pd.DataFrame({"ts": range(10), "k": "a", "price": prices})
    # The second match cannot begin at the first's last row; the last has no end.
    found = by_hand(events)[["t0", "t1", "p0", "low", "p1"]]
    assert found.to_numpy().tolist() == [[0, 3, 5, 3, 4], [4, 7, 3, 1, 2]]


def test_a_rival_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    rival = Rival("nobody", ("--no-index", "no-such-package-anywhere"), "nothing.py", repeats=1)
    with pytest.raises(AbsentError, match="no-such-package-anywhere"):
        ask(rival, Task("", STREAM, {}, 1, ()), tmp_path)
    setting = PatternSetting(PatternSizes(1_000), tmp_path, tmp_path)
    question = PATTERN_QUESTIONS[0]
    setting.answers[FLINK.name, question.name] = AbsentError("PyFlink: no network")
    ours = {1_000: (Finding("Arrow", 1.0), 7)}
    [finding] = against(setting, FLINK, question, ours, at_least(10))
    assert (finding.rival, finding.met) == ("none: PyFlink: no network", None)
    case = PatternCase("dip", "a price falls", lambda _: [finding])
    page = patterns_section([finding], [case], 1_000, {"PyFlink": "0"}, Machine.here())
    assert all(said in page for said in ("no network", "a price falls", "PyFlink 0"))


def test_what_a_failed_process_said() -> None:
    assert last_line("x.Y\nCaused by: a.BException: why | how\n\tat here") == (
        "Caused by: a.BException: why / how"
    )
    assert last_line("") == "it ended without a word"


def test_windows_are_the_same_from_the_index(tmp_path: Path) -> None:
    setting = WindowSetting(tmp_path / "db", STORE_EVENTS)
    slides = [Slide(10_000_000), Slide(900_000_000, least=50)]
    findings = [each for found in window_findings(setting, slides, rounds=1) for each in found]
    assert [each.case for each in findings] == ["every 10 s"] * 2 + ["every 15 min"] * 3
    assert findings[-1].rival == EACH
    section = windows_section(findings, STORE_EVENTS, Machine.here())
    assert "| every 15 min | index |" in section
    assert [str(slide) for slide in SLIDES][:2] == ["every 10 ms, 6 h", "every 100 ms, 2 d"]
    setting.close()
    assert not (tmp_path / "db").exists()
