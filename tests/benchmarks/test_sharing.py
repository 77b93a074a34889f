"""The benchmark of windows that many queries share: it measures what it says, and renders."""

from __future__ import annotations

import pytest
from benchmarks.report import Machine
from benchmarks.sharing import periodic, windows
from benchmarks.sharing.windows import (
    LARGE,
    SHAPES,
    SMALL,
    Measured,
    Shape,
    arrivals,
    figures,
    hopping,
    measured,
    windows_section,
)

SHAPE = Shape("sum, avg", keyed=True, batch=LARGE)


def test_windows_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "MANY", (1, 3))
    monkeypatch.setattr(windows, "RATE", 1_000)
    monkeypatch.setattr(windows, "BEFORE_RATE", 10)
    found = list(measured(SHAPE, 30_000))
    assert [each.windows for each in found] == [1, 3]
    assert all(each.shared > 0 and each.each > 0 and each.rows > 0 for each in found)
    assert len(list(hopping(SHAPE, 30_000))) == 4
    assert len(list(arrivals(SHAPE, 30_000))) == 2


def test_the_report_renders() -> None:
    found = [
        Measured(shape, many, 50.0 / many**0.5, 0.5, 7) for shape in SHAPES for many in (1, 1_000)
    ]
    kept = figures(found)
    assert len(kept) == 8
    assert not any(each.met for each in kept)
    page = windows_section(found, [("sum", "1 ms", "1", "2", "3")], [], Machine.here(), 10)
    assert f"batches of {SMALL:,} | 1,000 | 1.6 |" in page
    assert "| sum | 1 ms | 1 | 2 | 3 |" in page


def test_periodic_queries_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periodic, "RATE", 500)
    sizes = periodic.PeriodicSizes(20, 40, 11, schedules=1_000)
    found = periodic.measured(sizes, 2)
    assert found.rows > 0
    assert found.nbytes > 0
    assert len(periodic.figures(found)) == 10
    assert found.kept_up.rows > 0
    assert found.waited.rows > 0
    section = periodic.periodic_section(found, Machine.here(), sizes)
    assert "synopses" in section
