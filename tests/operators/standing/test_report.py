from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import PlanError, StateError
from eventide.operators.changes import NEVER, Changes
from eventide.operators.standing.answer.report import Reporter
from eventide.plan.standing.edges import Edge, UpdatePattern
from eventide.plan.standing.execution import EXECUTIONS, Execution
from eventide.plan.standing.nodes import ANSWER_EXP, Report
from eventide.plan.standing.windows import RangeWindow, RowsWindow
from tests.naive.standing import report as naive
from tests.naive.standing.report import Result, Told

SCHEMA = pa.schema([("car", pa.string()), ("speed", pa.float64())])
END = 40
EDGES = {
    "monotonic": Edge(UpdatePattern.MONOTONIC, None, in_order=True),
    "weakest": Edge(UpdatePattern.WEAKEST, 6, in_order=True),
    "weak": Edge(UpdatePattern.WEAK, 12),
    "strict": Edge(UpdatePattern.STRICT, 12),
}
VALUES = [("a", 1.0), ("a", None), (None, 2.0)]


@pytest.fixture(autouse=True, scope="module")
def small_structures() -> Iterator[None]:
    """Structures are rebuilt and values forgotten after a few rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eventide.operators.standing.answer.keeping.SMALLEST", 2)
        patch.setattr("eventide.operators.standing.row_log._SLACK", 2)
        yield


@st.composite
def results_of(draw: st.DrawFn, pattern: str) -> list[Result]:
    """Rows in the order in which they come."""
    found = []
    moments = st.lists(st.integers(-3, 12), max_size=14)
    for born in sorted(draw(moments)):
        values = draw(st.sampled_from(VALUES))
        lasts = draw(st.integers(1, 12))
        match pattern:
            case "monotonic":
                exp = NEVER
            case "weakest":
                exp = born + 6
            case "weak":
                exp = born + lasts
            case _:
                exp = draw(st.sampled_from([born + lasts, NEVER]))
        died = exp
        if pattern == "strict" and draw(st.booleans()):
            died = min(exp, born + draw(st.integers(0, 6)))
        found.append(Result(values, born, died, exp))
    return found


def changes_of(
    results: list[Result], execution: Execution, seed: int, answer_exp: list[int] | None = None
) -> Changes:
    """Return the changes as a plan sends them, in any order that an instant allows."""
    chance = random.Random(seed)
    coming = [(each.born, 1.0 + number, 1, number) for number, each in enumerate(results)]
    going = []
    for number, each in enumerate(results):
        if each.died < each.exp or (execution == "negative" and each.exp != NEVER):
            # Expiry is before what comes; of what comes and goes at once, the coming is first.
            place = chance.uniform(0, 1 + len(results))
            if each.died == each.exp:
                place = 0.0
            elif each.died == each.born:
                place = 1.5 + number
            going.append((each.died, place, -1, number))
    events = sorted([*coming, *going])
    chosen = [results[number] for *_, number in events]
    columns = {
        name: [each.values[place] for each in chosen] for place, name in enumerate(SCHEMA.names)
    }
    schema = SCHEMA
    if answer_exp is not None:
        columns[ANSWER_EXP] = [answer_exp[number] for *_, number in events]
        schema = SCHEMA.append(pa.field(ANSWER_EXP, pa.int64()))
    return Changes(
        pa.RecordBatch.from_pydict(columns, schema=schema),
        np.array([at for at, *_ in events], np.int64),
        np.array([each.exp for each in chosen], np.int64),
        np.array([sign for _, _, sign, _ in events], np.int8),
        np.array([number * 0x9E3779B9 + 5 for *_, number in events], np.int64),
    )


def plain(batch: pa.RecordBatch) -> Told:
    """Return rows with times as numbers."""
    columns = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if pa.types.is_timestamp(column.type):
            numbers = column.cast(pa.int64())
            columns.append((numbers.fill_null(NEVER) if name == "exp" else numbers).to_pylist())
        else:
            columns.append(column.to_pylist())
    return list(zip(*columns, strict=True))


def ordered(rows: Told) -> Told:
    return sorted(rows, key=repr)


def drive(
    reporter: Reporter,
    changes: Changes,
    cuts: list[int],
    answers: list[Result] | None,
    reload: bool,
) -> Told:
    """Run over the steps; look at the answer after each."""
    state, told = reporter.initial_state(), []
    for until in [*cuts, END]:
        now = np.flatnonzero(changes.at < until)
        later = np.flatnonzero(changes.at >= until)
        state, batch = reporter.step(state, (changes.take(now),), until)
        changes = changes.take(later)
        assert batch.schema == reporter.output_schema
        told += plain(batch)
        if answers is not None:
            expected = naive.answer(answers, until - 1)
            assert ordered(plain(reporter.current(state))) == ordered(list(expected))
            assert reporter.size(state).tuples >= len(expected)
        if reload:
            state = reporter.load(reporter.dump(state))
    assert [row[0] for row in told] == sorted(row[0] for row in told)  # type: ignore[type-var]
    return told


CUTS = st.lists(st.integers(-5, 28), max_size=5).map(sorted)


def check(
    data: st.DataObject,
    pattern: str,
    expected: Callable[[list[Result], bool], Told],
    answers: Callable[[list[Result], bool], list[Result]] | None = None,
    **asked: Any,  # noqa: ANN401 - what a reporter is asked
) -> None:
    """Compare with the twin in all executions, whatever the steps."""
    results = data.draw(results_of(pattern))
    cuts, seed = data.draw(CUTS), data.draw(st.integers(0, 9))
    reload = data.draw(st.booleans())
    strict = pattern == "strict"
    rows = results if answers is None else answers(results, strict)
    for execution in EXECUTIONS:
        reporter = Reporter(SCHEMA, EDGES[pattern], execution=execution, **asked)
        changes = changes_of(results, execution, seed)
        told = drive(reporter, changes, cuts, rows, reload)
        assert ordered(told) == ordered(expected(results, strict)), execution


fast = settings(deadline=None, max_examples=25)
every_pattern = pytest.mark.parametrize("pattern", list(EDGES))


@every_pattern
@given(data=st.data())
@fast
def test_changes_of_the_answer(pattern: str, data: st.DataObject) -> None:
    check(data, pattern, lambda results, strict: naive.current(results, END, strict))


@pytest.mark.parametrize("report", ["istream", "dstream", "rstream"])
@every_pattern
@given(data=st.data())
@fast
def test_streams_of_the_answer(pattern: str, report: Report, data: st.DataObject) -> None:
    twins: Any = {
        "istream": lambda results, strict: naive.istream(results, END, strict),
        "dstream": lambda results, strict: naive.dstream(results, END, strict),
        "rstream": lambda results, strict: naive.rstream(results, END, strict, None),
    }
    check(data, pattern, twins[report], report=report)


@every_pattern
@given(data=st.data(), slide=st.integers(1, 7))
@fast
def test_the_answer_at_refreshes(pattern: str, data: st.DataObject, slide: int) -> None:
    def expected(results: list[Result], strict: bool) -> Told:
        return naive.rstream(results, END, strict, slide)

    check(data, pattern, expected, report="rstream", slide_us=slide)


@pytest.mark.parametrize("report", ["istream", "rstream"])
@every_pattern
@given(data=st.data(), slide=st.integers(1, 7))
@fast
def test_restored_results(pattern: str, report: Report, data: st.DataObject, slide: int) -> None:
    twin = naive.istream_restore if report == "istream" else naive.rstream_restore

    def expected(results: list[Result], strict: bool) -> Told:
        return twin(results, END, strict, slide)

    check(data, pattern, expected, report=report, slide_us=slide, restore=True)


@pytest.mark.parametrize("report", ["current", "istream", "dstream", "rstream"])
@every_pattern
@given(data=st.data())
@settings(deadline=None, max_examples=12)
def test_with_internal_windows_rows_only_come(
    pattern: str, report: Report, data: st.DataObject
) -> None:
    def answers(results: list[Result], strict: bool) -> list[Result]:
        return naive.for_ever(results, END, strict)

    def expected(results: list[Result], strict: bool) -> Told:
        rows = answers(results, strict)
        if report == "rstream":
            return naive.rstream(rows, END, False, None)
        twin: Any = getattr(naive, report)
        return list(twin(rows, END, False))

    check(data, pattern, expected, answers, report=report, all_internal=True)


@every_pattern
@given(data=st.data(), size=st.integers(1, 9))
@fast
def test_a_window_over_the_results_of_the_last_time(
    pattern: str, data: st.DataObject, size: int
) -> None:
    def answers(results: list[Result], strict: bool) -> list[Result]:
        return naive.last_range(results, END, strict, size)

    def expected(results: list[Result], strict: bool) -> Told:
        return naive.current(answers(results, strict), END, False)

    check(data, pattern, expected, answers, output_window=RangeWindow(size))


@every_pattern
@given(data=st.data(), count=st.integers(1, 5))
@fast
def test_a_window_over_the_last_results(pattern: str, data: st.DataObject, count: int) -> None:
    def answers(results: list[Result], strict: bool) -> list[Result]:
        return naive.last_rows(results, END, strict, count)

    def expected(results: list[Result], strict: bool) -> Told:
        return naive.current(answers(results, strict), END, True)

    check(data, pattern, expected, answers, output_window=RowsWindow(count))


@pytest.mark.parametrize("report", ["current", "dstream", "rstream"])
@given(data=st.data())
@settings(deadline=None, max_examples=12)
def test_rows_last_as_long_as_their_external_parts(report: Report, data: st.DataObject) -> None:
    results = data.draw(results_of("weak"))
    longer = data.draw(st.lists(st.integers(0, 9), min_size=14, max_size=14))
    answer_exp = [each.exp + more for each, more in zip(results, longer, strict=False)]
    lasting = [
        Result(each.values, each.born, exp, exp)
        for each, exp in zip(results, answer_exp, strict=True)
    ]
    cuts = data.draw(CUTS)
    for execution in EXECUTIONS:
        reporter = Reporter(SCHEMA, EDGES["weak"], report, answer_exp=True, execution=execution)
        changes = changes_of(results, execution, 0, answer_exp)
        told = drive(reporter, changes, cuts, lasting, reload=True)
        twin: Any = getattr(naive, report)
        more = (None,) if report == "rstream" else ()
        assert ordered(told) == ordered(twin(lasting, END, False, *more))


@given(results_of("strict"), CUTS)
@fast
def test_births_and_deaths_make_the_answer(results: list[Result], cuts: list[int]) -> None:
    told = {}
    streams: tuple[Report, ...] = ("istream", "dstream")
    for report in streams:
        reporter = Reporter(SCHEMA, EDGES["strict"], report)
        told[report] = drive(reporter, changes_of(results, "aware", 1), cuts, None, reload=False)
    left = [row[1:] for row in told["istream"]]
    for row in told["dstream"]:
        left.remove(row[1:])
    assert ordered(left) == ordered(list(naive.answer(results, END - 1)))


def test_a_row_that_is_renewed_changes_only_its_end() -> None:
    renewed = [Result(("a", 1.0), 0, 5, 9), Result(("a", 1.0), 5, 14, 14)]
    changes = changes_of(renewed, "aware", 0)
    told = drive(Reporter(SCHEMA, EDGES["strict"]), changes, [], renewed, reload=False)
    assert told == [(0, "a", 1.0, 9, 1), (5, "a", 1.0, 9, -1), (5, "a", 1.0, 14, 1)]
    births = Reporter(SCHEMA, EDGES["strict"], "istream")
    assert drive(births, changes, [], renewed, reload=False) == [(0, "a", 1.0)]
    deaths = Reporter(SCHEMA, EDGES["strict"], "dstream")
    assert drive(deaths, changes, [], renewed, reload=False) == [(14, "a", 1.0)]


def test_births_alone_need_no_answer() -> None:
    reporter = Reporter(SCHEMA, EDGES["weak"], "istream", keeps_answer=False)
    state = reporter.initial_state()
    changes = changes_of([Result(("a", 1.0), 3, 9, 9)], "aware", 0)
    state, batch = reporter.step(state, (changes,), 5)
    assert plain(batch) == [(3, "a", 1.0)]
    assert reporter.size(state).tuples == 0
    with pytest.raises(PlanError, match="the answer is not kept"):
        reporter.current(state)
    with pytest.raises(StateError, match="another query"):
        Reporter(SCHEMA, EDGES["weak"]).load(reporter.dump(state))


def test_a_window_over_results_has_no_streams() -> None:
    with pytest.raises(PlanError, match="WSTREAM"):
        Reporter(SCHEMA, EDGES["weak"], "rstream", output_window=RowsWindow(2))
    with pytest.raises(PlanError, match="INTERNAL"):
        Reporter(SCHEMA, EDGES["strict"], answer_exp=True)
