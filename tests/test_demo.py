"""The demo: realistic and repeatable events, answers that are really compared, a page."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner
from rich.console import Console

import eventide as ev
from eventide.api.database import Database, open_database
from eventide.api.result import Result
from eventide.cli import eventide
from eventide.demo.agree import DisagreementError, check_agree
from eventide.demo.cars import ATTRIBUTES, CARS, make_events, write_files
from eventide.demo.folder import MARKER, fresh_folder
from eventide.demo.history import ask
from eventide.demo.index import ask_indexed
from eventide.demo.live import check_against_history, run_live
from eventide.demo.patterns import temporal_pattern
from eventide.demo.pictures import stepped
from eventide.demo.queries import HURRY, INDEXED, KINDS, LIVE, DemoQuestion
from eventide.demo.spark import SparkSide, errors_to
from eventide.demo.story import run_demo
from eventide.drawing.page import Drawing
from eventide.errors import StoreError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS = 40_000


@pytest.fixture(scope="module")
def events() -> pa.Table:
    return make_events(EVENTS)


def test_events_are_the_same_every_time(events: pa.Table) -> None:
    assert events.num_rows == EVENTS
    assert make_events(EVENTS).equals(events)
    assert not make_events(EVENTS, seed=1).equals(events)


def test_cars_drive_brake_speed_and_stop(events: pa.Table) -> None:
    assert pc.count_distinct(events["car"]).as_py() == CARS
    speed, accel = (events[name].drop_null().to_numpy() for name in ("speed", "accel"))
    assert speed.min() == 0
    assert speed.max() > 140
    assert accel.min() < -5
    assert 0 < events["speed"].null_count < EVENTS / 50
    assert abs(pc.mean(events["lat"]).as_py() - 50.8) < 0.5


def test_most_events_arrive_in_seconds_and_a_few_much_later(events: pa.Table) -> None:
    ts = events["ts"].cast(pa.int64()).to_numpy()
    behind = (np.maximum.accumulate(ts) - ts) / 1e6
    assert np.mean(behind > 0) > 0.5
    assert 0 < np.mean(behind > 10) < 0.05


def test_files_hold_the_events_in_order_of_arrival(events: pa.Table, tmp_path: Path) -> None:
    paths = write_files(events, tmp_path / "arrived", files=3)
    back = pa.concat_tables([pa.parquet.read_table(path) for path in paths])
    assert back.equals(events)


def test_only_a_demo_folder_is_replaced(tmp_path: Path) -> None:
    folder = fresh_folder(tmp_path / "demo")
    (folder / "old").write_text("x")
    assert [path.name for path in fresh_folder(folder).iterdir()] == [MARKER]
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("x")
    with pytest.raises(StoreError, match="no demo wrote"):
        fresh_folder(precious)
    assert (precious / "thesis.txt").exists()


def test_a_demo_folder_may_be_a_link_but_has_to_be_writable(tmp_path: Path) -> None:
    link = tmp_path / "link"
    (tmp_path / "real").mkdir()
    link.symlink_to(tmp_path / "real")
    for _ in range(2):
        assert [path.name for path in fresh_folder(link).iterdir()] == [MARKER]
    assert link.is_symlink()
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot write to"):
        fresh_folder(tmp_path / "file" / "demo")


ROWS = pa.table(
    {
        "car": ["b", "a", None],
        "at": pa.array([2, 1, 3], pa.timestamp("us")),
        "mean": [2.5, None, float("nan")],
    }
)


def test_answers_agree_in_any_order_and_with_zoned_times() -> None:
    other = ROWS.take([2, 0, 1])
    zoned = other.set_column(1, "at", other["at"].cast(pa.int64()).cast(pa.timestamp("us", "UTC")))
    check_agree("rows", ROWS, zoned)


@pytest.mark.parametrize(
    "other",
    [
        ROWS.slice(0, 2),
        ROWS.set_column(2, "mean", pa.array([2.5 + 2**-51, None, float("nan")])),
        ROWS.set_column(2, "mean", pa.array([2.5, float("nan"), None])),
        ROWS.take([0, 0, 2]),
    ],
)
def test_answers_that_differ_in_one_bit_do_not_agree(other: pa.Table) -> None:
    with pytest.raises(DisagreementError, match="rows"):
        check_agree("rows", ROWS, other)


@pytest.fixture(scope="module")
def morning(tmp_path_factory: pytest.TempPathFactory) -> Database:
    """Enough events for every question to find something."""
    database = open_database(tmp_path_factory.mktemp("demo") / "traffic.ev")
    database.create_stream("cars", ATTRIBUTES).append(make_events(200_000))
    return database


def test_every_question_finds_something(morning: Database) -> None:
    for question in every_question():
        assert ask(morning, question, None).rows.num_rows > 0, question.name


def test_the_index_gives_the_rows_of_a_replay(morning: Database) -> None:
    assert "→ index" in morning.explain(INDEXED.text)
    found = ask_indexed(morning, INDEXED, None)
    check_agree(
        "index", found.answer.rows, ev.sql(INDEXED.text, cars=events_of(morning)).to_arrow()
    )


def test_a_replay_with_other_rows_is_refused(
    morning: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other_rows(database: Database, text: str) -> list[Result]:
        return [database.sql(f"SELECT * FROM ({text}) AS answer LIMIT 1")]

    monkeypatch.setattr(Database, "replay", other_rows)
    with pytest.raises(DisagreementError, match="through the index and by replay"):
        ask_indexed(morning, INDEXED, None)


def test_other_rows_on_spark_are_refused(morning: Database) -> None:
    class OtherRows(SparkSide):
        def sql(self, database: Path, text: str) -> pa.Table:
            return open_database(database).sql(text).to_arrow().slice(1)

    for question in every_question():
        with pytest.raises(DisagreementError, match=f"{question.name}, embedded and on Spark"):
            ask(morning, question, OtherRows(None))


def test_every_question_has_the_same_rows_on_spark(morning: Database, spark: SparkSession) -> None:
    for question in every_question():
        assert ask(morning, question, SparkSide(spark)).spark_seconds is not None
    assert ask_indexed(morning, INDEXED, SparkSide(spark)).answer.spark_seconds is not None


def test_live_answers_are_those_of_history_without_the_late(tmp_path: Path) -> None:
    arrived = make_events(200_000)
    run = run_live(tmp_path / "live.ev", LIVE, arrived, lambda _: None)
    check_against_history(arrived, run)
    assert [answer.question for answer in run.answers] == list(LIVE)
    for answer in run.answers:
        assert answer.rows.num_rows > 0
        assert answer.late["_seq"].equals(run.late["_seq"])
    assert 0 < run.late.num_rows < 10_000


def test_matches_of_the_temporal_pattern_are_drawn(morning: Database) -> None:
    matches = morning.sql(HURRY.text).to_arrow()
    drawn = [block for block in temporal_pattern(morning, matches) if isinstance(block, Drawing)]
    assert len(drawn) == 1
    for word in ("surge", "fast", "brake", matches["car"][0].as_py()):
        assert word in drawn[0].svg
    none = temporal_pattern(morning, matches.slice(0, 0))
    assert not any(isinstance(block, Drawing) for block in none)


def every_question() -> list[DemoQuestion]:
    return [question for questions in KINDS.values() for question in questions]


def events_of(database: Database) -> pa.Table:
    return database.sql("SELECT * FROM cars").to_arrow()


def test_windows_become_steps_with_gaps() -> None:
    #  0 --1-- 10 --2-- 20     30 --3-- 40
    times, values = stepped(
        np.array([0, 10, 30]), np.array([10, 20, 40]), np.array([1.0, 2.0, 3.0])
    )
    assert times.tolist() == [0, 10, 20, 20, 30, 40, 40]
    assert values[[0, 1, 2, 4, 5]].tolist() == [1, 2, 2, 3, 3]
    assert np.isnan(values[[3, 6]]).all()


def test_what_java_says_goes_to_a_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with errors_to(tmp_path / "log"):
        os.write(2, b"noise")
    os.write(2, b"news")
    assert (tmp_path / "log").read_bytes() == b"noise"
    assert capfd.readouterr().err == "news"


def test_the_whole_demo_without_spark(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    arguments = ["demo", "--no-spark", "--events", str(EVENTS), "--folder", str(folder)]
    result = CliRunner().invoke(eventide, arguments)
    assert result.exit_code == 0, result.output
    assert result.output.count("✓") == 10
    assert max(map(len, result.output.splitlines())) < 120 + len(str(folder))
    for step in ("windows: 4", "a row pattern", "a temporal pattern", "a standing join"):
        assert f"✓ {step}" in result.output
    assert "the same rows" in result.output
    assert "without them history agrees" in result.output
    assert str(folder / "index.html") in result.output
    page = (folder / "index.html").read_text()
    assert page.count('<svg class="ev-chart"') == 3
    assert "much faster than lately" in page
    for heading in ("A row pattern", "A temporal pattern", "A standing join", "Through the index"):
        assert f"<h2>{heading}</h2>" in page
    assert "nan" not in page.lower().replace("nance", "")
    again = CliRunner().invoke(eventide, ["sql", str(folder / "traffic.ev"), "SELECT * FROM cars"])
    assert again.output.count("\n") == EVENTS + 1


def test_a_tiny_demo_works_too(tmp_path: Path) -> None:
    console = Console(file=io.StringIO())
    folder = tmp_path / "[red] demo"
    page = run_demo(folder, 1_000, with_spark=False, console=console)
    assert page.exists()
    told = console.file.getvalue()  # type: ignore[attr-defined]
    assert f"Now open {page}\n" in told
    assert f"eventide sql '{folder / 'traffic.ev'}' " in told
    assert "the index was not asked, because fewer than 20,000 events are soon read" in told
    assert "through the index" not in told
    assert "It was not asked for them here" in page.read_text()


def test_a_disagreement_fails_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def disagree(name: str, *_: object) -> None:
        raise DisagreementError(name)

    monkeypatch.setattr("eventide.demo.live.check_agree", disagree)
    arguments = ["demo", "--no-spark", "--events", "1000", "--folder", str(tmp_path / "demo")]
    result = CliRunner().invoke(eventide, arguments)
    assert result.exit_code == 1
    assert "live and over history" in result.stderr
