"""Matches of temporal patterns: rows that draw themselves."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pytest

import eventide as ev
from eventide.errors import UnsupportedError
from eventide.matches import Matches, possible, relations_between
from eventide.plan import allen
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
from eventide.plan.nodes import Constraint, Plan, Project, Scan, Situation, TemporalPattern
from eventide.plan.periods import pattern_of, period_columns, with_periods
from eventide.schema import FLOAT64, Schema
from eventide.sinks.situation_picture import Bar

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
    assert "car b, detected 00:00:40" in str(picture)


def test_a_notebook_shows_rows_and_picture() -> None:
    shown = Matches(ROWS, pattern(), Ran())._repr_html_()
    assert shown.index("<td>96.5</td>") < shown.index("<svg")
    ran = Ran()
    assert "<svg" not in Matches(ROWS.slice(0, 0), pattern(), ran)._repr_html_()
    many = pa.concat_tables([ROWS] * 1_001)
    assert "<svg" not in Matches(many, pattern(), ran)._repr_html_()
    assert not ran.plans


def test_a_summary_cannot_be_drawn() -> None:
    summary = pattern(Named("n", Aggregate("count", None)))
    ran = Ran()
    matches = Matches(pa.table({"car": ["a"], "ts": seconds(1), "n": [3]}), summary, ran)
    with pytest.raises(UnsupportedError, match="each row is over many matches") as error:
        matches.plot()
    assert "COUNT" in str(error.value.hint)
    assert "<svg" not in matches._repr_html_()
    assert not ran.plans


def test_relations_are_those_that_the_match_has() -> None:
    assert possible(Bar(0, 5), Bar(5, None)) == allen.MEETS
    assert possible(Bar(0, None), Bar(5, 7)) == allen.CONTAINS
    assert possible(Bar(0, 4), Bar(1, None)) == allen.OVERLAPS
    assert possible(Bar(1), Bar(1)) == allen.STARTS | allen.EQUALS | allen.STARTED_BY
    assert possible(Bar(2), Bar(1)) == allen.OVERLAPPED_BY | allen.FINISHES | allen.DURING
    node = pattern_of(pattern())
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
    assert "car a, detected 00:00:03" in picture.text(80)
    lines = ev.tpstream(f"EXPLAIN {QUERY}", cars=events())
    assert lines.columns == ["plan"]
    with pytest.raises(UnsupportedError):
        lines.plot()


def test_a_confirmed_match_is_drawn_once() -> None:
    text = QUERY.replace("RETURN", "CONFIRM RETURN")
    matches = ev.tpstream(text, cars=[*events(), *events(4)])
    assert sorted(row["confirmed"] for row in matches) == [False, False, True]
    scene = matches.plot().scene
    assert scene.told.startswith("2 matches")
    first, second = scene.timelines
    assert [lane.bars[0].end_us for lane in first.lanes] == [3 * SECOND, 4 * SECOND]
    assert (first.detected_us, first.caption) == (3 * SECOND, "top 80, n 2, confirmed True")
    assert second.caption == "top 80, n 2, confirmed False"
