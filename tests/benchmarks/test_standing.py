"""The standing cases give the same answers in every way, and their report renders."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from benchmarks.guard import MismatchError
from benchmarks.patterns.rivals import AbsentError
from benchmarks.race import Finding
from benchmarks.report import Machine, chosen
from benchmarks.standing import rivals as standing_rivals
from benchmarks.standing.chains import CHAIN, ONE, chains
from benchmarks.standing.data import (
    FOUR_INPUTS,
    PROTOCOLS,
    SOURCES,
    arrivals_of,
    links,
    readings,
    scaled,
    sided,
)
from benchmarks.standing.frequent import accuracy
from benchmarks.standing.groups import HOLISTIC, check_holistic, panes
from benchmarks.standing.joins import (
    NAMED_ORDERS,
    Joining,
    Streams,
    check_refreshes,
    followed,
    orders_compared,
)
from benchmarks.standing.links import (
    DOWN,
    EXECUTIONS,
    UP,
    both_places,
    distinct_ones,
    joined,
    joins,
    missing,
    placed,
    without_joined,
)
from benchmarks.standing.live import check_average
from benchmarks.standing.report import STANDING_CASES, standing_section
from benchmarks.standing.rivals import (
    beside_flink,
    check_pairs,
    nowhere,
    parts_of,
    pushed,
    run_spark,
    write_parts,
)
from benchmarks.standing.setting import (
    Runner,
    StandingSetting,
    StandingSizes,
    built,
    check_same_rows,
    cuts_of,
    planned,
    steps_of,
    summed,
)

from eventide.plan.standing.choose import choose_plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("uncollected")

EVENTS = 10_000


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> StandingSetting:
    folder = tmp_path_factory.mktemp("standing")
    return StandingSetting(StandingSizes(EVENTS), folder, folder)


def test_executions_have_the_answer_of_duckdb(setting: StandingSetting) -> None:
    window = 2_000
    streams = setting.links
    plan = planned(joined(window, "telnet"), streams)
    connection = duckdb.connect()
    cuts = cuts_of(0, 3_000, 700)
    for name, events in streams.items():
        moments = events.column("ts").cast(pa.int64()).to_numpy()
        held = (moments < cuts[-1]) & (moments >= cuts[-1] - 1_000_000 * window)
        connection.register(name, events.filter(pa.array(held)))
    expected = connection.sql(
        "SELECT a.src, a.dst, b.dst AS other FROM link1 a JOIN link2 b ON a.src = b.src "
        "WHERE a.protocol = 'telnet' AND b.protocol = 'telnet'"
    ).to_arrow_table()
    assert expected.num_rows
    for execution in EXECUTIONS:
        runner = Runner(built(plan, execution))
        assert runner.run(steps_of(runner.tree, streams, cuts))
        (found,) = expected.combine_chunks().to_batches()
        check_same_rows(execution, found, runner.answer)
        assert runner.size[0] >= expected.num_rows


def test_queries_over_links_are_measured(setting: StandingSetting) -> None:
    sizes = len(setting.sizes.windows)
    lines = joins(setting, "ftp", 2)
    assert len(lines) == 4 * sizes
    assert [line.target is not None for line in lines[-4:]] == [True, True, False, False]
    assert len(distinct_ones(setting, "src, dst", 2, 1)) == 6 * sizes
    assert len(missing(setting)) == 2 * sizes
    assert len(both_places(setting)) == 3 * sizes


def test_the_negation_stands_above_and_below_the_join(setting: StandingSetting) -> None:
    plans = placed(choose_plan(planned(without_joined(100), setting.links)))
    assert plans.keys() == {UP, DOWN}
    assert plans[UP] != plans[DOWN]


def test_orders_cost_comparisons_as_predicted(setting: StandingSetting) -> None:
    lines = orders_compared(setting)
    by_name = {
        line.rival.partition(" ")[0]: line for line in lines if "comparisons a" in line.eventide
    }
    assert by_name["worst,"].ratio == pytest.approx(8.34, rel=0.15)
    assert by_name["2341"].ratio == pytest.approx(2.63, rel=0.15)
    ranked = next(line for line in lines if "ranked by comparisons" in line.eventide)
    assert ranked.met


def test_lazy_joins_find_what_they_should(setting: StandingSetting) -> None:
    streams = Streams.of(setting)
    check_refreshes(streams)
    join = streams.join(followed(NAMED_ORDERS["1234"]), 1)
    steps = streams.steps(5)
    assert sum(len(part) for step in steps for part in step.inputs) <= len(streams.tuples.at_us)
    assert Joining(join).run(steps[:10]) == Joining(replace(join, lazy=True)).run(steps[:10])


def test_a_chain_gives_the_same_and_remembers_more(setting: StandingSetting) -> None:
    lines = chains(setting)
    assert {line.rival for line in lines} == {CHAIN}
    assert all(ONE in line.eventide for line in lines)
    assert all(line.met for line in lines if "tuples" in line.eventide)


def test_averages_are_those_of_duckdb() -> None:
    check_average(readings(25_000))


def test_aggregates_of_all_values_are_those_of_duckdb() -> None:
    for aggregate in HOLISTIC:
        check_holistic(aggregate, readings(25_000))


def test_panes_give_what_tuples_give_and_are_fewer(setting: StandingSetting) -> None:
    lines = panes(setting)
    kept = [line for line in lines if line.eventide.endswith("kept")]
    assert kept
    assert all(line.theirs is not None and line.ours < line.theirs for line in kept)


def test_frequent_values_keep_their_bounds(setting: StandingSetting) -> None:
    found = accuracy(setting)
    shares = [each.ours for each in found if "found" in each.eventide]
    assert len(shares) == 9
    assert all(0.0 <= share <= 1.0 for share in shares)
    assert max(shares) > 0.5
    assert all(0.0 < each.ours < 1.0 for each in found if "pairs" in each.eventide)


def test_pairs_are_those_of_duckdb() -> None:
    check_pairs(sided(20_000))


def test_spark_finds_as_many_pairs(spark: SparkSession, tmp_path: Path) -> None:
    events = sided(4_000)
    write_parts(events, tmp_path)
    ours = pushed(events, parts_of(events), nowhere)
    assert run_spark(spark, tmp_path) == ours > 0


def test_rows_are_compared_by_sums_if_they_are_many() -> None:
    rows = pa.RecordBatch.from_pydict({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    turned = rows.take(pa.array([2, 0, 1]))
    other = pa.RecordBatch.from_pydict({"a": [1, 2, 3], "b": ["x", "z", "y"]})
    assert summed(rows) == summed(turned) != summed(other)
    with pytest.raises(MismatchError, match="who"):
        check_same_rows("who", rows, other)


def test_events_are_the_same_in_every_run() -> None:
    streams = links(20_000)
    again = links(20_000)
    assert all(streams[name].equals(again[name]) for name in streams)
    first = streams["link1"]
    for name, share in PROTOCOLS.items():
        found = np.mean(first.column("protocol").to_numpy(zero_copy_only=False) == name)
        assert found == pytest.approx(share, abs=0.02)
    assert max(first.column("src").to_pylist()) < SOURCES
    inputs = scaled(FOUR_INPUTS, 2)
    arrivals = arrivals_of(inputs, 26_000)
    counts = np.bincount(arrivals.stream)
    assert counts / counts[-1] == pytest.approx([10, 1, 1, 1], rel=0.1)
    assert all(
        arrivals.value[arrivals.stream == side].max() <= each.distinct
        for side, each in enumerate(inputs)
    )


def test_flink_absent_is_said_and_the_section_renders(
    setting: StandingSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(*_: object) -> None:
        message = "PyFlink: no network"
        raise AbsentError(message)

    monkeypatch.setattr(standing_rivals, "ask", absent)
    (line,) = beside_flink(setting, sided(1_000), Finding("live", 1.0), 0)
    assert line.rival == "none: PyFlink: no network"
    cases = chosen(STANDING_CASES, "join of two", spark=False)
    findings = [replace(line, case=case.name) for case in cases]
    page = standing_section(findings, cases, EVENTS, {"PyFlink": "0"}, Machine.here())
    assert all(said in page for said in ("no network", cases[0].asked, "PyFlink 0"))
    assert len(chosen(STANDING_CASES, None, spark=True)) == len(STANDING_CASES)
    assert all(not case.spark for case in chosen(STANDING_CASES, None, spark=False))
