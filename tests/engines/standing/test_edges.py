"""Where windows, joins, sets and groups of standing queries may go wrong, case by case."""

from __future__ import annotations

import random
from itertools import product
from operator import attrgetter

import pytest

from eventide.errors import EventideError
from eventide.lang.sql import plan_sql
from eventide.plan.standing.execution import EXECUTIONS, Execution
from tests.engines.standing import queries as ask
from tests.engines.standing.queries import CATALOG, asking, events_of, history
from tests.engines.standing.runs import ends, every_tick, run
from tests.naive.standing.answers import Question, Streams, Truth, accumulated
from tests.naive.standing.windows import SECOND
from tests.naive.windows import Event

NAME = attrgetter("name")
NO_EVENTS: Streams = {name: [] for name in "abcdr"}


def feed(text: str) -> list[Event]:
    """Events from `p@0 q:3@2`: key p at second 0, key q with value 3 at second 2."""
    events = list[Event]()
    for seq, word in enumerate(sorted(text.split(), key=lambda word: float(word.split("@")[1]))):
        value, tick = word.split("@")
        key, _, number = value.partition(":")
        ts = round(float(tick) * SECOND)
        row: Event = {"k": None if key == "null" else key, "g": 1, "v": int(number or 0), "f": 0.5}
        row |= {"w": row["v"], "deleted": number == "0"}
        events.append({"ts": ts, "_seq": seq, **row})
    return events


def streams(**texts: str) -> Streams:
    return {**NO_EVENTS, **{name: feed(text) for name, text in texts.items()}}


def check(question: Question, events: Streams) -> None:
    """Compare with the truth in all executions, in one step and in one for each tick."""
    truth = Truth(question, events)
    for execution in EXECUTIONS:
        for step in run(question, events, execution, every_tick(events)):
            assert step.answer == truth.answer(step.now), (execution, step.now)
        *_, last = run(question, events, execution)
        for instant in truth.instants(last.now + 1):
            answer = accumulated(last.reports, instant)
            assert answer == truth.answer(instant), (execution, instant)


def answers(question: Question, events: Streams, *ticks: float) -> list[list[object]]:
    """The answers at these ticks, each as the sorted first columns of its rows."""
    untils = [round(tick * SECOND) + 1 for tick in ticks]
    return [
        sorted(row[0] for row in step.answer.elements())
        for step in run(question, events, "aware", untils)
    ]


def test_what_expires_at_an_instant_goes_before_what_arrives() -> None:
    #  a  p [0, 4)
    #  b          p at 4
    events = streams(a="p@0", b="p@4")
    assert answers(ask.JOIN, events, 3, 4, 5) == [[], [], []]
    check(ask.JOIN, events)


def test_a_result_that_lives_for_a_microsecond_and_one_that_lives_for_none() -> None:
    events = streams(a="p@0 q@0", b="p@3.999999 q@4")
    assert answers(ask.JOIN, events, 3.999999, 4) == [["p"], []]
    check(ask.JOIN, events)
    check(ask.DISTINCT_JOIN, events)
    check(ask.GROUP_JOIN, events)


def test_events_of_one_instant_count_together() -> None:
    check(ask.JOIN, streams(a="p@1 p@1 q@1", b="p@1 p@1 q@1 q@1"))
    check(ask.EXCEPT_ALL, streams(a="p@1 p@1 q@1", b="p@1 q@1 q@1"))
    check(ask.GROUP, streams(a="p:1@1 p:2@1 p:3@5 p:4@5"))


@pytest.mark.parametrize(
    "question", [ask.FILTER, ask.DISTINCT, ask.GROUP, ask.JOIN, ask.EXISTS], ids=NAME
)
def test_an_idle_stream_expires_by_the_clock_alone(question: Question) -> None:
    events = streams(a="p:2@0", b="p:3@1")
    assert [bool(rows) for rows in answers(question, events, 3, 4, 9)] == [True, False, False]


def test_a_selection_that_passes_nothing_does_not_hold_a_maximum() -> None:
    question = asking(
        "high", "SELECT MAX(x.v) AS high FROM {x} WHERE x.v > 5 /*!HAVING count(*) > 0*/", x=ask.A4
    )
    events = streams(a="p:9@0 p:7@2 p:1@4 p:1@5 p:1@6 p:1@7")
    assert answers(question, events, 3, 4, 5, 6) == [[9], [7], [7], []]
    check(question, events)


def test_a_query_that_begins_with_history_says_what_one_from_the_start_says() -> None:
    events = history(11)
    middle = 4 * SECOND + 1
    for question in (ask.JOIN, ask.DISTINCT, ask.EXCEPT_ALL, ask.GROUP_JOIN, ask.GROUP_ROWS):
        late, early = (
            list(run(question, events, untils=untils))
            for untils in ([middle, ends(events)], every_tick(events))
        )
        told = {step.now: step.answer for step in early}
        assert late[0].answer == told[middle - 1]


def test_a_query_that_begins_without_history_fills_within_a_window() -> None:
    events, middle = history(11), 2 * SECOND
    later = {
        name: [event for event in rows if event["ts"] >= middle] for name, rows in events.items()
    }
    check(ask.JOIN, later)
    full, filled = Truth(ask.JOIN, events), Truth(ask.JOIN, later)
    untils = [tick * SECOND + 1 for tick in range(8, 14)]
    for step in run(ask.JOIN, later, untils=untils):
        assert step.answer == full.answer(step.now) == filled.answer(step.now)


@pytest.mark.parametrize(
    "question", [ask.JOIN, ask.DISTINCT_JOIN, ask.UNEQUAL_UNION, ask.GROUP], ids=NAME
)
def test_calendars_go_round_many_times_at_odd_instants(question: Question) -> None:
    """Of 137 ticks, more than a hundred windows follow each other; no part of one fits a tick."""
    choose = random.Random(3)
    events = {name: events_of(choose, 90, 0) for name in "abcd"}
    for rows in events.values():
        for event in rows:
            event["ts"] = event["ts"] * 7 // 6 + 123_457
        rows.sort(key=lambda event: (event["ts"], event["_seq"]))
    truth = Truth(question, events)
    for execution in EXECUTIONS:
        untils = [tick * SECOND + 777_777 for tick in range(-4, 140, 5)]
        for step in run(question, events, execution, untils):
            assert step.answer == truth.answer(step.now), (execution, step.now)


def test_results_of_lagged_streams_are_lost_without_restore() -> None:
    #  a's events are 3 s old when b's arrive: results live for a second, from 3 to 4, 7 to 8, …
    events = streams(a="p@0 p@4 p@8", b="p@3 p@7 p@11")
    question = asking("lag", ask.JOIN.select, x="a RANGE 4 SECONDS", y="b RANGE 4 SECONDS")
    check(question, events)
    slid = question.sliding(4)
    counts = {
        report: len([*run(slid.reporting(report), events)][-1].reports)
        for report in ("ISTREAM", "ISTREAM RESTORE")
    }
    lives = Truth(question, events).lifetimes(ends(events))
    assert counts["ISTREAM RESTORE"] == lives.total()
    assert counts["ISTREAM"] < counts["ISTREAM RESTORE"]


def test_a_slide_as_long_as_the_window_tumbles() -> None:
    question = ask.FILTER.sliding(4)
    events = streams(a="p:2@0 q:3@1 p:4@4 p:5@5 q:6@9")
    check(question, events)
    check(ask.GROUP.sliding(4), events)


def test_duplicates_of_a_whole_tuple_count() -> None:
    events = streams(a="p:1@0 p:1@0 p:1@0 q:1@1 q:1@1", b="p:1@0 p:1@0 q:1@2", c="p:1@2 p:1@2")
    for question in (ask.JOIN, ask.DISTINCT, ask.EXCEPT_ALL, ask.NOT_EXISTS, ask.GROUP, ask.TOP):
        check(question, events)


@pytest.mark.parametrize("execution", EXECUTIONS)
@pytest.mark.parametrize("question", [ask.EXCEPT_ALL, ask.EXCEPT, ask.NOT_EXISTS], ids=NAME)
def test_negation_whatever_comes_and_goes_first(question: Question, execution: Execution) -> None:
    """Fewer, as many and more on the left; the right window is longer, or shorter."""
    for ticks in product((0, 2, 3), (2, 4), (0, 3, 5), (1, 5)):
        one, two, three, four = ticks
        left = feed(f"p@{min(one, two)} p@{max(one, two)} p@7")
        right = feed(f"p@{min(three, four)} p@{max(three, four)}")
        events = {**NO_EVENTS, "a": left, "b": right, "c": right}
        truth = Truth(question, events)
        *_, last = run(question, events, execution)
        for instant in truth.instants(last.now + 1):
            assert accumulated(last.reports, instant) == truth.answer(instant), (ticks, instant)


def test_distinct_follows_the_duplicate_that_lives_longest() -> None:
    #  x p [0, 4)   y p [0, 6)   z p [2, 5): the last to come is not the last to go
    question = asking(
        "longest",
        "SELECT DISTINCT q.k FROM (SELECT x.k FROM {x} UNION ALL SELECT y.k FROM {y} "
        "UNION ALL SELECT z.k FROM {z}) q",
        x=ask.A4, y=ask.B6, z=ask.C3,
    )  # fmt: skip
    events = streams(a="p@0", b="p@0", c="p@2")
    assert answers(question, events, 3, 4, 5, 6) == [["p"], ["p"], ["p"], []]
    check(question, events)
    check(question, streams(a="p@2", b="p@1", c="p@3 p@6 q@6", d=""))


@pytest.mark.parametrize("window", ["a ROWS 1", "a ROWS 2", "a ROWS 50", "a PARTITION BY k ROWS 1"])
def test_rows_few_and_many_and_more_at_once_than_there_is_room_for(window: str) -> None:
    events = streams(a="p:1@0 q:1@0 p:2@0 p:3@0 q:4@2 q:5@2 p:6@9", b="p@0 q@0 q@1 q@4 p@8")
    for select in (
        "SELECT x.k, x.v FROM {x}",
        "SELECT DISTINCT x.k FROM {x}",
        "SELECT x.k, COUNT(*) AS n, MAX(x.v) AS high FROM {x} GROUP BY x.k",
    ):
        check(asking("rows", select, x=window), events)
    joined = "SELECT x.k, x.v, y.ts FROM {x} JOIN {y} ON x.k = y.k"
    check(asking("rows_join", joined, x=window, y=ask.B6), events)


def test_a_row_of_a_relation_is_deleted_and_put_back() -> None:
    #  0 deletes: p is 1, then 2, gone at 2, 5 again at 3; q is put back within an instant
    events = streams(
        a="p:7@0 q:7@1 p:8@2 q:8@3", r="p:1@0 p:2@1 p:0@2 p:5@3 q:3@1 q:0@2 q:4@2 s:0@2"
    )
    question = asking(
        "changed", "SELECT r.w, x.v FROM {x} JOIN {r} ON x.k = r.k", x=ask.A4, r=ask.RELATION
    )
    assert answers(question, events, 0, 1, 2, 3) == [[1], [2, 3], [4], [4, 4, 5, 5]]
    for asked in (question, ask.SYSTEM_TIME, ask.RELATION_JOIN.sliding(2)):
        check(asked, events)


def test_a_session_goes_on_until_its_gap_has_passed() -> None:
    #  a gap of 2: the event at 3 comes in time, that at 5 begins a new session
    question = asking("session", "SELECT x.v FROM {x}", x="a SESSION 2 SECONDS")
    events = streams(a="p:1@0 p:2@1 p:3@2.999999 p:4@5 p:5@5")
    assert answers(question, events, 2.999999, 4, 5, 7) == [[1, 2, 3], [1, 2, 3], [4, 5], []]
    check(question, events)


def test_windows_before_1970() -> None:
    events = streams(a="p:1@-9 p:2@-8 q:3@-7 p:4@-5 p:5@-1 q:6@1", c="p@-7 p@-5 q@0")
    untils = [tick * SECOND + 1 for tick in range(-12, 9)]
    for question in (*ask.WINDOWS, ask.FILTER.sliding(2), ask.GROUP.sliding(3)):
        truth = Truth(question, events)
        for step in run(question, events, untils=untils):
            assert step.answer == truth.answer(step.now), (question.name, step.now)


def test_null_joins_with_nothing_and_groups_with_itself() -> None:
    events = streams(a="null@0 null@0 p@0", b="null@0 p@1", c="null@1")
    assert answers(ask.JOIN, events, 1) == [["p"]]
    for question in (ask.JOIN, ask.GROUP, ask.EXCEPT_ALL, ask.NOT_EXISTS, ask.EXISTS):
        check(question, events)


def test_nan_is_one_value_and_zero_has_no_sign() -> None:
    values = (float("nan"), 0.0, -0.0, -float("nan"))
    plain = feed("p@0 p@1 p@2 p@3")
    spelt = [{**event, "f": value} for event, value in zip(plain, values, strict=True)]
    events = {**NO_EVENTS, "a": spelt, "b": spelt}
    for question in (ask.DISTINCT_FLOATS, ask.GROUP_FLOATS, ask.FLOAT_KEYS):
        check(question, events)


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_a_sum_does_not_drift(execution: Execution) -> None:
    question = asking("sum", "SELECT SUM(x.f) AS s, AVG(x.f) AS m FROM {x}", x="a RANGE 2 SECONDS")
    values = [(-1) ** place * 1e15 / (place % 7 + 1) for place in range(3000)] + [0.1]
    events = [
        {"ts": place * SECOND // 500, "_seq": place, "k": "p", "g": 1, "v": 1, "f": value}
        for place, value in enumerate(values)
    ]
    last = events[-1]["ts"] + 2 * SECOND - 1
    *_, step = run(question, {"a": events}, execution, [3 * SECOND, last + 1])
    assert list(step.answer) == [(0.1, 0.1)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT x.k FROM a [RANGE 4 SECONDS SLIDE 5 SECONDS] x",
        "SELECT x.k FROM a [RANGE 4 SECONDS SLIDE 2 SECONDS] x "
        "JOIN b [RANGE 6 SECONDS SLIDE 3 SECONDS] y ON x.k = y.k",
        "SELECT DISTINCT x.k FROM a [RANGE 4 SECONDS INTERNAL] x",
        "SELECT x.k FROM a [RANGE 4 SECONDS INTERNAL] x "
        "EXCEPT ALL SELECT y.k FROM b [RANGE 4 SECONDS INTERNAL] y",
        "SELECT x.k FROM a [RANGE 4 SECONDS INTERNAL] x JOIN b [ROWS 2] y ON x.k = y.k",
        "WSTREAM (SELECT DISTINCT x.k FROM a [RANGE 4 SECONDS] x) [ROWS 2]",
        "WSTREAM (SELECT x.k FROM a [RANGE 4 SECONDS] x "
        "EXCEPT ALL SELECT y.k FROM b [RANGE 4 SECONDS] y) [ROWS 2]",
        "WSTREAM RESTORE (SELECT x.k FROM a [RANGE 4 SECONDS] x) [ROWS 2]",
        "WSTREAM (SELECT x.k FROM a [RANGE 4 SECONDS SLIDE 2 SECONDS] x) [ROWS 2]",
        "ISTREAM RESTORE (SELECT x.k FROM a [RANGE 4 SECONDS] x)",
        "SELECT x.k, y.v FROM a [ROWS 3] x ASOF JOIN b y ON x.k = y.k AND y.ts <= x.ts",
        "SELECT q.k FROM (SELECT x.k, COUNT(*) AS n FROM a [RANGE 4 SECONDS] x GROUP BY x.k) "
        "[RANGE 4 SECONDS] q",
    ],
)
def test_what_has_no_meaning_is_refused(text: str) -> None:
    with pytest.raises(EventideError):
        plan_sql(text, CATALOG)


def test_what_lives_longer_than_was_known_finds_room_in_calendars() -> None:
    """Beside windows whose rows may go at any time, nothing is known of how long others live."""
    united = "SELECT {0}.k FROM {{{0}}} UNION ALL SELECT {1}.k FROM {{{1}}}"
    left, right = (f"(SELECT k FROM ({united.format(*names)}) {names})" for names in ("xy", "zu"))
    windows = {"x": "a RANGE 9 SECONDS", "y": "b SESSION 2 SECONDS"}
    windows |= {"z": "a RANGE 8 SECONDS", "u": "b ROWS 3"}
    events = streams(a="p@0 q@1 p@3 q@7", b="p@1 q@2 p@2.5 q@9")
    exists = f"SELECT p.k FROM {left} p WHERE EXISTS (SELECT 1 FROM {right} q WHERE q.k = p.k)"
    for select in (f"SELECT DISTINCT p.k FROM {left} p", exists):
        own = {name: said for name, said in windows.items() if f"{{{name}}}" in select}
        check(asking("longer", select, **own), events)
