"""The weights of a machine: measured, stored, loaded, and ignored when they are damaged."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, fields, replace
from pathlib import Path

import numpy as np
import pytest

from eventide.api.database import Database
from eventide.engines.history import calibrate
from eventide.engines.history.calibrate import NAMES, MeasuredQuery, fitted_weights
from eventide.engines.history.calibrate_queries import PROBES
from eventide.engines.history.weights import DEFAULTS, FILE, MOST_OFF, VERSION, Weights


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure less than a person would want: these tests ask what is done with it."""
    monkeypatch.setattr(calibrate, "SIZES", (3_000, 6_000))
    monkeypatch.setattr(calibrate, "REPEATS", 1)


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    weights = replace(DEFAULTS, window=1.5e-7)
    weights.save(tmp_path)
    assert Weights.load(tmp_path) == weights
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_without_a_file_the_usual_weights_are_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert Weights.load(tmp_path) is DEFAULTS
    assert not caplog.records


@pytest.mark.parametrize(
    "content",
    [
        "",
        "no json",
        "[1]",
        "{}",
        json.dumps({"version": VERSION + 1, "weights": asdict(DEFAULTS)}),
        json.dumps({"version": VERSION, "weights": {"window": 1.0}}),
        json.dumps({"version": VERSION, "weights": {**asdict(DEFAULTS), "window": -1.0}}),
        json.dumps({"version": VERSION, "weights": {**asdict(DEFAULTS), "window": float("nan")}}),
        json.dumps({"version": VERSION, "weights": {**asdict(DEFAULTS), "window": "fast"}}),
    ],
)
def test_a_damaged_file_is_left_aside_with_a_warning(
    tmp_path: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / FILE).write_text(content)
    with caplog.at_level(logging.WARNING):
        assert Weights.load(tmp_path) is DEFAULTS
    assert "is not used" in caplog.text
    assert "`eventide calibrate` writes it anew" in caplog.text


@pytest.mark.usefixtures("small")
def test_a_database_measures_keeps_and_uses_its_weights(tmp_path: Path) -> None:
    database = Database(tmp_path / "db")
    database.create_stream("s", {"v": "int64"})
    assert database.weights == DEFAULTS
    told: list[str] = []
    found = database.calibrate(told.append)
    assert told[0] == "storing 3,000 events"
    assert len(told) == 2 + 2 * len(PROBES)
    assert (
        database.weights == found == Weights.load(database.path) == Database(database.path).weights
    )
    for name in NAMES:
        ratio = getattr(found, name) / getattr(DEFAULTS, name)
        assert 1 / MOST_OFF * 0.999 <= ratio <= MOST_OFF * 1.001
    assert sorted(path.name for path in database.path.iterdir() if path.name != "lock") == [
        "eventide.json",
        "streams",
        FILE,
    ]
    assert database.streams() == ("s",)
    copy = database.backup(tmp_path / "copy")
    assert not (copy.path / FILE).exists()


def test_what_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(calibrate, "measured", fail)
    monkeypatch.setattr(calibrate, "SIZES", (100,))
    database = Database(tmp_path / "db")
    with pytest.raises(KeyboardInterrupt):
        database.calibrate()
    assert [path.name for path in database.path.iterdir()] == ["eventide.json"]
    assert database.weights == DEFAULTS


def measurements(weights: Weights, noise: float) -> list[MeasuredQuery]:
    """Return what queries would take by some weights, each a sum of two or three of them."""
    random = np.random.default_rng(11)
    values = np.array([getattr(weights, name) for name in NAMES])
    found = []
    for place in range(len(NAMES)):
        for size in (1e4, 1e5):
            counts = np.zeros(len(NAMES))
            counts[place] = size
            counts[(place + 1) % len(NAMES)] = size / 3
            seconds = float(counts @ values) * float(np.exp(random.normal(0, noise)))
            found.append(MeasuredQuery(seconds, counts))
    return found


def test_weights_are_found_from_what_queries_take() -> None:
    random = np.random.default_rng(2)
    factors = np.exp(random.normal(0.5, 0.5, len(NAMES)))
    truth = Weights(
        **{
            name: getattr(DEFAULTS, name) * factor
            for name, factor in zip(NAMES, factors, strict=True)
        }
    )
    measured = measurements(truth, noise=0.05)
    found = np.array([getattr(fitted_weights(measured), name) for name in NAMES])
    off = [float(each.counts @ found) / each.seconds for each in measured]
    assert 0.7 < min(off) <= max(off) < 1.4


@pytest.mark.parametrize("times", [1e-6, 1e6])
def test_absurd_measurements_do_not_make_absurd_weights(times: float) -> None:
    absurd = [replace(each, seconds=each.seconds * times) for each in measurements(DEFAULTS, 0.0)]
    found = fitted_weights(absurd)
    for each in fields(Weights):
        ratio = getattr(found, each.name) / getattr(DEFAULTS, each.name)
        assert 1 / MOST_OFF * 0.999 <= ratio <= MOST_OFF * 1.001
