"""The index cases give the same rows in every way, and their report renders."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.index.data import BEAT, CRIME, READINGS, Dataset, crime_chunks, noisy_chunks
from benchmarks.index.patterns import answered, choices_of
from benchmarks.index.queries import all_series
from benchmarks.index.report import Report
from benchmarks.report import Machine

pytestmark = pytest.mark.usefixtures("uncollected")

EVENTS = 30_000
SERIES = {each.name: each for each in all_series(1)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("index")


@pytest.mark.parametrize(("name", "compared"), [("0–10 %, 4 symbols", 1), ("crimes, a box", 0)])
def test_every_way_gives_the_same_rows(name: str, compared: int, folder: Path) -> None:
    series = replace(SERIES[name], compared=compared)
    database, built = series.dataset.built(folder, EVENTS)
    answers = list(answered(series, database))
    assert len(answers) == len(series.texts)
    assert answers[0].rows
    # Over so few events replay may be the way that is chosen.
    alone = 1 if answers[0].chosen.name == "replay" else 2
    assert len(answers[0].trials) == (17 if compared else alone)
    report = Report({series.dataset.name: (series.dataset, built)}, [series], {name: answers})
    page = report.section(Machine.here())
    assert page.count(f"| {name} |") == 2
    assert series.asked in page
    assert report.speeds().for_screen().row_count == report.choices().for_screen().row_count == 1
    # One that was compared with others says how good the choice was, and one that was not does not.
    assert [bool(row[1]) for row in report.verdicts().rows[:2]] == [bool(compared)] * 2
    marked = [row[-1] for row in (*report.speeds().rows, *report.verdicts().rows) if row[-1]]
    assert ["✓" if each.met else "✗" for each in report.figures()] == marked


@pytest.mark.parametrize("dataset", [READINGS, CRIME], ids=lambda each: each.name)
def test_events_are_the_same_in_every_run(dataset: Dataset) -> None:
    first, second = (pa.concat_tables(dataset.chunks(5_000)) for _ in range(2))
    assert first.equals(second)
    assert set(first.column_names) == {"ts", *dataset.attributes}
    ts = first.column("ts").to_pylist()
    assert ts == sorted(ts)


def test_noise_grows_and_stays_inside() -> None:
    events = pa.concat_tables(noisy_chunks(5_000))
    places = np.arange(5_000) / 5_000
    values = {name: events.column(name).to_numpy() for name in ("A1", "A2", "A3", "A4", "A5")}
    off = [float(np.abs(each - places).mean()) for each in values.values()]
    assert off == sorted(off)
    assert off[0] == 0.0
    assert all(each.min() >= 0 and each.max() < 1 for each in values.values())


def test_crimes_are_planted() -> None:
    events = pa.concat_tables(crime_chunks(5_000)).slice(2_500, 9).to_pylist()
    planted = [each for each in events if each["beat"] == BEAT]
    wanted = ["ROBBERY", "BATTERY", "MOTOR VEHICLE THEFT"]
    assert [each["primary_type"] for each in planted if each["primary_type"] in wanted] == wanted


def test_all_choices_of_few_conditions_and_some_of_many() -> None:
    assert len(set(choices_of(4))) == 16
    assert len(set(choices_of(9))) == 16
    assert choices_of(32) == [(False,) * 32, (True,) * 32]
