"""The benchmark of keys that come and go: its queries are right, and its tables render."""

from __future__ import annotations

import pytest
from benchmarks.keys import (
    COME_AND_GO,
    KEEPING,
    SCHEMA,
    Stretch,
    figure_of,
    keys_section,
    pushed_of_texts,
    row_of,
    single_events,
    stretches,
    throughputs,
)
from benchmarks.promises import verdict
from benchmarks.report import Machine

from benchmarks import keys
from eventide.lang.sql import plan_sql
from eventide.plan.bounds import unbounded_reasons
from eventide.plan.standing.nodes import Standing


@pytest.mark.parametrize("name", COME_AND_GO | KEEPING)
def test_only_what_keeps_something_of_every_key_warns(name: str) -> None:
    plan = plan_sql((COME_AND_GO | KEEPING)[name], {"s": SCHEMA})
    assert isinstance(plan, Standing) or bool(list(unbounded_reasons(plan))) == (name in KEEPING)


def test_a_query_is_measured_over_time() -> None:
    begin, _, end = stretches(COME_AND_GO["OVER RANGE"], 60_000, 60)
    # Sixty seconds of a thousand keys each: at the beginning twelve are held, at the end thirty.
    assert begin.state_kb < end.state_kb < 4 * begin.state_kb
    usual, slow = single_events(KEEPING["TUMBLE(ROWS, 4)"], 300)
    assert 0 < usual <= slow


def test_small_batches_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "BATCHES", 20)
    name, *found = throughputs(10)
    assert name == "10"
    assert len(found) == 3
    assert all(float(each) > 0 for each in found)
    monkeypatch.setattr(keys, "PUSHED", {1: 20, 100: 20})
    assert all(each > 0 for each in pushed_of_texts(10))


def test_the_report_renders() -> None:
    found = [Stretch(1.0, 2.0, 300.0, 400.0)] * 3
    row = row_of("a query", found)
    single = ("a query", "1.00", "1.50", "2.00", "3.00")
    fast = ("100", "5.00", "4.00", "2.50")
    texts = ("100", "0.005", "4.000", "9.000")
    missed = figure_of({100: [0.005, 4.0, 9.0]})
    tables = ([row], [single], [fast], [texts], [verdict(missed)])
    page = keys_section(tables, (1000, 10, 100), Machine.here())
    assert page.count("| a query |") == 2
    assert "1,000 keys" in page
    assert "| 100 | 5.00 | 4.00 | 2.50 |" in page
    assert "| Keys | 1 | 1,000 | 100,000 |" in page
    assert "| 100 | 0.005 | 4.000 | 9.000 |" in page
    assert not missed.met
    assert "| ≥ 5 | 4 | ✗ |" in page
    assert figure_of({100: [0.005, 5.0, 9.0]}).met
