"""The situation cases give the same rows as their rivals, and their report renders."""

from __future__ import annotations

import os
from dataclasses import replace

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from benchmarks.guard import MismatchError
from benchmarks.patterns.rivals import AbsentError
from benchmarks.race import Finding
from benchmarks.report import Machine, chosen
from benchmarks.situations import cases as situation_cases
from benchmarks.situations import streams
from benchmarks.situations.cases import against_flink, check_aggressive, derived
from benchmarks.situations.data import (
    ALIKE,
    BOOLEANS,
    DEVICES,
    DRIVERS,
    Kind,
    booleans,
    devices,
    drawn,
    drivers,
    in_chunks,
    periods,
    phases,
    thresholds,
)
from benchmarks.situations.gains import RELATIONS, gains
from benchmarks.situations.joins import join_text, joined, period_table
from benchmarks.situations.orders import ADAPTED, ORDERS, RATIOS, in_phases, orders_of
from benchmarks.situations.paper import latency_in
from benchmarks.situations.queries import (
    BEFORE_OVERLAPS,
    Q1,
    Q2,
    Q3,
    aggressive,
    four_of_devices,
    four_situations,
    simplified,
)
from benchmarks.situations.report import SITUATION_CASES, situations_section
from benchmarks.situations.scan import changing, ended_in, ended_of, scan_matches
from benchmarks.situations.setting import (
    SituationSetting,
    SituationSizes,
    check_counts,
    check_rows,
    matches_in,
    one_core,
    ordered_tree,
    over_arrow,
    threads,
    through,
)
from benchmarks.situations.sql import MEANINGS, drawn_count, duckdb_text, flink_text
from benchmarks.situations.streams import SHAPES, check_shape, copies, of_shape, shaped
from benchmarks.situations.windows import expected_matches, peak_of

from eventide.lang.sql import plan_sql
from eventide.plan.situations import allen
from eventide.schema import Schema

pytestmark = pytest.mark.usefixtures("uncollected")

EVENTS = 20_000


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> SituationSetting:
    folder = tmp_path_factory.mktemp("situations")
    return SituationSetting(SituationSizes(EVENTS), folder, folder)


def test_drivers_have_the_same_rows_everywhere(setting: SituationSetting) -> None:
    check_aggressive(setting)


def test_four_situations_have_the_rows_of_duckdb_and_of_the_scan(setting: SituationSetting) -> None:
    for ask, events in (
        (four_situations(), setting.sample),
        (four_of_devices(), devices(EVENTS, 2, [ALIKE] * 4)),
    ):
        connection = duckdb.connect()
        connection.register(ask.stream, events)
        expected = connection.sql(duckdb_text(ask)).to_arrow_table()
        assert expected.num_rows
        check_rows(ask.name, expected, over_arrow(ask, events))
        for early_break in (True, False):
            found = scan_matches(ask, events, early_break=early_break)
            assert isinstance(found, pa.Table)
            check_rows(ask.name, expected, found)
        own, taken = ended_in(ask, events), ended_of(ask, derived(ask, events))
        assert all(np.array_equal(*each) for each in zip(own, taken, strict=True))


def test_counts_are_those_of_the_scan_and_of_the_drawn_situations() -> None:
    events, spans = booleans(EVENTS, [ALIKE] * 3), drawn(EVENTS, [ALIKE] * 3)
    early = BEFORE_OVERLAPS.within(2_000)
    final = early.asking("count", "final")
    for read in (events, events.filter(pa.array(changing(early, events)))):
        found = scan_matches(final, read)
        assert isinstance(found, int)
        for ask, others in ((early, {}), (final, {"scan": found})):
            ways = {
                "counted": matches_in(over_arrow(ask, read)),
                "visited": matches_in(over_arrow(ask.asking("visit"), read)),
                "closed form": expected_matches(spans, EVENTS, 2_000, ask.detection),
                "DuckDB": drawn_count(ask, spans, EVENTS, duckdb.connect()),
            }
            check_counts("W2", ways | others)
    with pytest.raises(MismatchError, match="ours 1, scan 2"):
        check_counts("W2", {"ours": 1, "scan": 2})


def test_a_process_of_its_own_finds_as_many_matches() -> None:
    _, matches = peak_of(EVENTS, 500)
    assert matches == expected_matches(drawn(EVENTS, [ALIKE] * 3), EVENTS, 500, "early") > 0


def test_patterns_of_many_situations_occur_as_often_as_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "PATTERNS", 2)
    check_shape("meets")
    check_shape("combined")
    lines = of_shape("equal", 3_000)
    assert len(lines) == 3
    assert all("matches" in line.eventide and line.target is not None for line in lines[-1:])


def test_changes_are_those_of_each_key() -> None:
    ask = four_of_devices()
    events = devices(2_000, 3, [ALIKE] * 4)
    last: dict[int, tuple[bool, ...]] = {}
    expected = []
    for row in events.to_pylist():
        now = tuple(row[f"s{place}"] for place in range(4))
        expected.append(now != last.get(row["device"], (False,) * 4))
        last[row["device"]] = now
    assert changing(ask, events).tolist() == expected


def test_single_events_are_measured_apart_if_they_change_something(
    setting: SituationSetting,
) -> None:
    lines = [line.eventide for line in latency_in(500, setting)]
    assert len(lines) == 4
    assert "100 in all" in lines[0]
    assert "with changes or rows" in lines[-1]


def test_matches_come_at_the_moment_that_theory_says() -> None:
    found = list(gains(500, ratios=("1:1",)))
    assert [gain.relation for gain in found] == list(RELATIONS)
    assert found[0].mean_s == pytest.approx(found[0].mean_b_s, rel=0.1)
    assert found[-1].mean_s == 0


def test_no_order_of_joining_changes_the_number_of_matches() -> None:
    parts = phases(EVENTS // 2, RATIOS)
    schema = parts[0].schema
    counts = {"adaptive": in_phases(ordered_tree(ADAPTED, schema, None, adaptive=True), parts)}
    for order in ORDERS[:2]:
        fixed = ordered_tree(ADAPTED, schema, order, adaptive=False)
        counts[str(order)] = in_phases(fixed, parts)
        # A switch of orders on the way as well.
        counts[f"{order} and others"] = in_phases(fixed, parts, ORDERS[:3])
    check_counts("W7", {name: matches for name, (_, matches) in counts.items()})
    whole = pa.concat_tables(parts)
    adaptive = ordered_tree(ADAPTED, schema, None, adaptive=True)
    assert matches_in(through(adaptive, whole, rows=700)) == counts["adaptive"][1]


def test_the_planned_order_stands_against_all_others() -> None:
    first, *others = orders_of(Q2, booleans(2_000, [ALIKE] * 3), (1, 1))
    assert first.rival.startswith("best")
    assert len(others) == len(ORDERS) - 1
    assert first.theirs is not None
    assert all(line.theirs is not None and line.theirs >= first.theirs for line in others)


@pytest.mark.parametrize("relation", ["overlaps", "meets"])
def test_periods_are_joined_like_duckdb_does(relation: str) -> None:
    sides = {side: period_table(300, 10, number) for number, side in enumerate("xy")}
    connection = duckdb.connect()
    for side, table in sides.items():
        connection.register(side, table)
    plain = join_text(MEANINGS[relation].format(a="a", b="b"), by_key=True)
    expected = connection.sql(plain).to_arrow_table()
    text = join_text(f"a {relation.upper()} b", by_key=True)
    check_rows(relation, expected, joined(text, sides))


def test_statements_have_plans() -> None:
    catalog = {
        DRIVERS: Schema.from_arrow(drivers(5).schema),
        BOOLEANS: Schema.from_arrow(booleans(5, [ALIKE] * 10).schema),
        DEVICES: Schema.from_arrow(devices(5, 1, [ALIKE] * 4).schema),
    }
    asked = [aggressive(), simplified(), four_situations(), four_of_devices(), Q1, Q2, Q3]
    asked += [
        shaped(shape, count, 1, copies(shape, 1_000, 1)) for shape in SHAPES for count in (4, 10)
    ]
    for ask in asked:
        assert plan_sql(ask.text, catalog)
        assert plan_sql(ask.situations, catalog)
    for each in (aggressive(), four_situations()):
        counts = [mask.bit_count() for mask in each.relations.values()]
        assert counts == ([4, 4, 1] if len(each.letters) == 3 else [6, 6, 6])


def test_relations_mean_the_same_in_sql() -> None:
    periods_of = "SELECT s.range AS start_ts, e.range AS end_ts FROM range(5) s, range(5) e"
    chosen = ", ".join(f"({meaning.format(a='a', b='b')})" for meaning in MEANINGS.values())
    pairs = duckdb.connect().sql(
        f"WITH p AS ({periods_of} WHERE s.range < e.range) "
        f"SELECT a.start_ts, a.end_ts, b.start_ts, b.end_ts, {chosen} FROM p a, p b"
    )
    for a_start, a_end, b_start, b_end, *held in pairs.fetchall():
        named = [name for name, holds in zip(MEANINGS, held, strict=True) if holds]
        mask = allen.relation_between((a_start, a_end), (b_start, b_end))
        assert named == list(allen.names_of(mask))


def test_events_are_the_same_in_every_run() -> None:
    events = drivers(EVENTS)
    assert events.equals(drivers(EVENTS))
    assert len(events.column("ts").unique()) == EVENTS
    assert events.column("ts").to_pylist() == sorted(events.column("ts").to_pylist())
    fast = np.mean(events.column("speed").to_numpy() > thresholds().fast)
    assert 0 < fast < 0.05
    kinds = [ALIKE, Kind(length=2.0)]
    assert pa.concat_tables(in_chunks(EVENTS, kinds, 777)).equals(booleans(EVENTS, kinds))
    drawn = periods(100, (ALIKE, ALIKE))
    assert all(np.all(end > start) for start, end in zip(drawn.starts, drawn.ends, strict=True))
    assert len(drawn.events) <= sum(2 * len(start) for start in drawn.starts)


def test_phases_have_the_ratios_asked_for() -> None:
    for ratio, part in zip(RATIOS, phases(600_000, RATIOS), strict=True):
        held = [part.column(name).to_numpy().astype(np.int8) for name in ("s0", "s1", "s2")]
        begun = np.array([np.sum(np.diff(each) == 1) for each in held])
        assert begun / begun.max() == pytest.approx(np.array(ratio) / max(ratio), abs=0.03)


def test_one_core_is_all_there_is_meanwhile() -> None:
    before = {thread: os.sched_getaffinity(thread) for thread in threads()}
    with one_core():
        assert {len(os.sched_getaffinity(thread)) for thread in before} == {1}
    assert {thread: os.sched_getaffinity(thread) for thread in before} == before


def test_flink_absent_is_said_and_the_section_renders(
    setting: SituationSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(*_: object) -> None:
        message = "PyFlink: no network"
        raise AbsentError(message)

    monkeypatch.setattr(situation_cases, "ask", absent)
    ask = four_situations()
    assert flink_text(ask).count("MATCH_RECOGNIZE") == 4
    ours = Finding("Arrow", 1.0)
    nothing = over_arrow(ask, setting.sample.slice(0, 10))
    (line,) = against_flink(setting, ask, setting.sample, ours, nothing)
    assert line.rival == "none: PyFlink: no network"
    cases = chosen(SITUATION_CASES, "four", spark=False)
    findings = [replace(line, case=case.name) for case in cases]
    page = situations_section(findings, cases, EVENTS, {"PyFlink": "0"}, Machine.here())
    assert all(said in page for said in ("no network", cases[0].asked, "PyFlink 0"))
    assert len(chosen(SITUATION_CASES, None, spark=True)) == len(SITUATION_CASES)
    assert all(not case.spark for case in chosen(SITUATION_CASES, None, spark=False))
