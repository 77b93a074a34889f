"""Matches of temporal patterns: rows that draw themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest

import eventide as ev
from eventide.api.matches import HOW_TO_DRAW, Matches, relations_between
from eventide.drawing.situations import Bar
from eventide.errors import PlanError, SchemaError, UnsupportedError
from eventide.plan.bind import bind
from eventide.plan.check import check_plan
from eventide.plan.expressions import (
    Aggregate,
    Call,
    Column,
    Literal,
    MatchAggregate,
    Named,
    PeriodPart,
)
from eventide.plan.nodes import Project, Scan
from eventide.plan.situations import allen
from eventide.plan.situations.nodes import TemporalPattern
from eventide.plan.situations.parts import Constraint, Situation
from eventide.plan.situations.periods import pattern_of, period_columns, with_periods
from eventide.plan.tree import Plan
from eventide.schema import FLOAT64, Schema

SECOND = 1_000_000
CATALOG = {"cars": Schema.of({"car": "string", "speed": "float64", "accel": "float64"})}


def above(column: str, value: float) -> Call:
    return Call(">", (Column(column), Literal(value, FLOAT64)))


def pattern(*returns: Named) -> Plan:
    node = TemporalPattern(
        Scan("cars"),
        (Named("car", Column("car")),),
        (Situation("fast", above("speed", 70.0)), Situation("brake", above("accel", 9.0))),
        (Constraint(0, 1, allen.OVERLAPS | allen.CONTAINS | allen.MEETS | allen.FINISHED_BY),),
        300 * SECOND,
        returns or (Named("top", MatchAggregate("max", Column("speed"), "fast")),),
    )
    return bind(node, CATALOG)


def seconds(*values: int | None) -> pa.Array:
    times = [None if value is None else value * SECOND for value in values]
    return pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC"))


ROWS = pa.table({"car": ["a", "b"], "ts": seconds(12, 40), "top": [96.5, 88.0]})
PERIODS = {
    "fast.start": seconds(5, 30),
    "fast.end": seconds(12, None),
    "brake.start": seconds(9, 38),
    "brake.end": seconds(None, None),
}


class Ran:
    """Stands for the engine: answers with the periods, and remembers what it was asked."""

    def __init__(self) -> None:
        self.plans: list[Plan] = []

    def __call__(self, plan: Plan) -> pa.Table:
        self.plans.append(plan)
        return pa.table({**dict(zip(ROWS.column_names, ROWS.columns, strict=True)), **PERIODS})


def test_periods_come_behind_what_is_returned() -> None:
    wider = with_periods(pattern())
    check_plan(wider, after="with_periods")
    assert list(wider.row) == ["car", "ts", "top", *PERIODS]
    over = Project(pattern(), (Named("best", Column("top", FLOAT64)),))
    assert list(check_plan(with_periods(over), after="with_periods").row) == ["best", *PERIODS]


def test_periods_leave_names_alone_that_are_taken() -> None:
    taken = pattern(Named("fast.start", PeriodPart("fast", "start")))
    assert period_columns(pattern_of(taken))[0].start == "fast.start'"
    check_plan(with_periods(taken), after="with_periods")


def test_only_matches_have_periods() -> None:
    with pytest.raises(UnsupportedError, match="not the matches"):
        with_periods(Scan("cars"))
    lines = Matches(pa.table({"plan": ["Scan cars"]}))
    assert "<svg" not in lines._repr_html_()
    with pytest.raises(UnsupportedError, match="leave EXPLAIN out"):
        lines.plot()


def test_rows_cost_one_run_and_a_picture_one_more(tmp_path: Path) -> None:
    ran = Ran()
    matches = Matches(ROWS, pattern(), ran, "a query")
    assert matches.rows() == ROWS.to_pylist()
    assert not ran.plans
    picture = matches.plot(tmp_path / "matches.svg")
    assert ran.plans == [with_periods(pattern())]
    ElementTree.parse(tmp_path / "matches.svg")
    first, second = picture.scene.timelines
    assert (first.title, first.caption) == ("car a", "top 96.5")
    assert first.relations == ("fast overlaps brake",)
    assert second.relations == ("fast overlaps, contains or finished by brake",)
    assert "<code>a query</code>" in picture.html()
    assert "car b, detected 1970-01-01 00:00:40" in str(picture)


def test_a_notebook_shows_rows_and_picture() -> None:
    shown = Matches(ROWS, pattern(), Ran())._repr_html_()
    assert shown.index("<td>96.5</td>") < shown.index("<svg")
    assert HOW_TO_DRAW not in shown


def test_a_notebook_does_not_wait_for_a_picture_unasked() -> None:
    ran = Ran()
    nothing = Matches(ROWS.slice(0, 0), pattern(), ran)._repr_html_()
    assert "<svg" not in nothing
    assert HOW_TO_DRAW not in nothing
    many = pa.concat_tables([ROWS] * 1_001)
    slow = Matches(ROWS, pattern(), ran, seconds=1.5)
    for matches in (Matches(many, pattern(), ran), slow):
        shown = matches._repr_html_()
        assert "<svg" not in shown
        assert shown.endswith(HOW_TO_DRAW)
    assert not ran.plans
    assert len(slow.plot().scene.timelines) == 2
    assert 0 < ev.tpstream(QUERY, cars=events()).seconds < 60


def test_a_summary_cannot_be_drawn() -> None:
    summary = pattern(Named("n", Aggregate("count", None)))
    ran = Ran()
    matches = Matches(pa.table({"car": ["a"], "ts": seconds(1), "n": [3]}), summary, ran)
    with pytest.raises(UnsupportedError, match="each row is over many matches") as error:
        matches.plot()
    assert "COUNT" in str(error.value.hint)
    shown = matches._repr_html_()
    assert "<svg" not in shown
    assert HOW_TO_DRAW not in shown
    assert not ran.plans


def test_relations_are_those_that_the_match_has() -> None:
    node = pattern_of(pattern())
    (told,) = relations_between(node, [Bar(0, None), Bar(5, 7)])
    assert told == "fast contains brake"
    # By their times one is before the other; by the order of their events they meet.
    (told,) = relations_between(node, [Bar(0, 1), Bar(3, 4)])
    assert told == "fast meets, overlaps, contains or finished by brake"


def test_any_rows_of_situations_can_be_drawn(tmp_path: Path) -> None:
    table = pa.table(
        {"car": ["a"], "situation": ["fast"], "start_ts": seconds(1), "end_ts": seconds(4)}
    )
    for rows in (table, ev.Result(table)):
        picture = ev.plot_situations(rows, tmp_path / "s.html")
        assert "fast" in (tmp_path / "s.html").read_text()
        assert picture.scene.timelines[0].lanes[0].bars == (Bar(SECOND, 4 * SECOND),)


QUERY = """FROM cars PARTITION BY car
DEFINE fast AS speed > 70, brake AS accel < -9
PATTERN fast meets brake; fast overlaps brake WITHIN 5 MINUTES
RETURN MAX(fast.speed) AS top, COUNT(brake.*) AS n"""


def events(first: int = 0) -> list[dict[str, object]]:
    driven = enumerate([(60.0, 0.0), (80.0, 0.0), (75.0, -10.0), (60.0, -10.0)], first)
    return [{"ts": n * SECOND, "car": "a", "speed": v, "accel": a} for n, (v, a) in driven]


def test_a_picture_is_of_the_events_that_the_rows_are_of(tmp_path: Path) -> None:
    database = ev.open(tmp_path / "db")
    attributes = {"car": "string", "speed": "float64", "accel": "float64"}
    stream = database.create_stream("cars", attributes)
    stream.append(events())
    matches = database.tpstream(QUERY)
    assert [(row["car"], row["top"], row["n"]) for row in matches] == [("a", 80.0, 2)]
    stream.append(events(60))
    (line,) = matches.plot().scene.timelines
    assert [lane.bars for lane in line.lanes] == [
        (Bar(SECOND, 3 * SECOND),),
        (Bar(2 * SECOND, None),),
    ]
    assert (line.caption, line.relations) == ("top 80, n 2", ("fast overlaps brake",))
    assert len(database.tpstream(QUERY).plot().scene.timelines) == 2


def test_tables_in_memory_are_drawn_too() -> None:
    picture = ev.tpstream(QUERY, cars=events()).plot()
    assert "car a, detected 1970-01-01 00:00:03" in picture.text(80)
    lines = ev.tpstream(f"EXPLAIN {QUERY}", cars=events())
    assert lines.columns == ["plan"]
    with pytest.raises(UnsupportedError):
        lines.plot()


def test_a_confirmed_match_is_drawn_once() -> None:
    text = QUERY.replace("RETURN", "CONFIRM RETURN")
    matches = ev.tpstream(text, cars=[*events(), *events(4)])
    assert sorted(row["confirmed"] for row in matches) == [False, False, True]
    scene = matches.plot().scene
    assert scene.summary.startswith("2 matches")
    first, second = scene.timelines
    assert [lane.bars[0].end_us for lane in first.lanes] == [3 * SECOND, 4 * SECOND]
    assert (first.detected_us, first.caption) == (3 * SECOND, "top 80, n 2, confirmed True")
    assert second.caption == "top 80, n 2, confirmed False"


def test_rows_are_shown_whatever_becomes_of_their_picture() -> None:
    def refuse(_: Plan) -> pa.Table:
        message = "<no> picture"
        raise OverflowError(message)

    shown = Matches(ROWS, pattern(), refuse)._repr_html_()
    assert "<td>96.5</td>" in shown
    assert "could not be drawn: &lt;no&gt; picture" in shown


@pytest.mark.parametrize("most", [0, -1, 1.5, "3", None, True])
def test_a_number_of_drawings_is_a_whole_number(most: Any) -> None:  # noqa: ANN401
    ran = Ran()
    with pytest.raises(PlanError, match="whole number") as error:
        Matches(ROWS, pattern(), ran).plot(most=most)
    assert error.value.hint is not None
    assert not ran.plans
    with pytest.raises(PlanError, match="whole number"):
        ev.plot_situations(ROWS, most=most)


def test_a_path_is_checked_before_anything_is_run() -> None:
    ran = Ran()
    with pytest.raises(PlanError, match="what to draw"):
        Matches(ROWS, pattern(), ran).plot("matches.png")
    assert not ran.plans


@pytest.mark.parametrize("rows", [{"a": 1}, 3, None, "rows"])
def test_what_is_no_table_has_no_situations(rows: Any) -> None:  # noqa: ANN401
    with pytest.raises(SchemaError, match="no table of situations") as error:
        ev.plot_situations(rows)
    assert error.value.hint is not None
