"""The benchmark of the predicate index: it measures what it says, and renders."""

from __future__ import annotations

from dataclasses import replace

import pytest
from benchmarks.report import Machine
from benchmarks.sharing import predicates
from benchmarks.sharing.conditions import WORKLOADS, Workload
from benchmarks.sharing.predicates import (
    Indexed,
    alone_s,
    changes,
    check_workload,
    figures,
    indexed,
    predicates_section,
)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda each: each.name)
def test_workloads_are_measured(workload: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicates, "ROUNDS", 1)
    monkeypatch.setattr(predicates, "BATCHES", 1)
    check_workload(workload)
    found = indexed(replace(workload, conditions=200))
    assert found.events_s > 0
    assert found.octets > 0
    assert alone_s(workload) > 0


def test_what_comes_and_goes_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicates, "TREES", 10)
    monkeypatch.setattr(predicates, "HELD", 2_000)
    assert len(list(changes())) == 3


def test_the_report_renders() -> None:
    found = [Indexed(workload, 1.0, 2e6, 0.5, 60.0) for workload in WORKLOADS]
    kept = figures(found, [])
    assert len(kept) == len(WORKLOADS) + 1
    assert all(each.met for each in kept)
    page = predicates_section(found, [1.0] * len(found), [], Machine.here())
    assert "| selections | 1,000 | 1.00 | 60 | 2,000 | 0.50 | 1 |" in page
