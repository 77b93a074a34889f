"""The benchmark of following: it measures, and its tables render."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.following import (
    append,
    appended_with_pattern,
    created,
    delays,
    figure_of,
    following_section,
)
from benchmarks.report import Machine

from benchmarks import keys


def test_delays_are_measured(tmp_path: Path) -> None:
    db = created(tmp_path)
    found = delays(db, lambda: append(db, 20), 20)
    assert found.rows == 18
    assert 0 < found.half <= found.most <= found.worst


def test_the_report_renders() -> None:
    rows = [("in another process", "1.00", "2.00", "3.0", "100")]
    costs, figure = [("nobody follows", "0.1", "0.2")], figure_of(3.5)
    page = following_section(rows, costs, figure, 100, Machine.here())
    assert "| in another process |" in page
    assert "100 events" in page
    assert "| ≥ 2 | 3.5 | ✓ |" in page


def test_a_pattern_that_follows_appends_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "BATCHES", 20)
    assert appended_with_pattern() > 0
