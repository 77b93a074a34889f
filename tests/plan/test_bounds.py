"""Which row patterns a live query can follow with bounded state."""

from __future__ import annotations

import pytest

from eventide.lang.sql import plan_sql
from eventide.plan.bounds import unbounded_reason
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.tree import Plan
from tests.golden.plans import CATALOG


def match_of(clauses: str) -> MatchRecognize:
    plan: Plan = plan_sql(
        f"SELECT car FROM cars MATCH_RECOGNIZE (PARTITION BY car {clauses})", CATALOG
    )
    while not isinstance(plan, MatchRecognize):
        (plan,) = plan.children
    return plan


@pytest.mark.parametrize(
    "clauses",
    [
        "PATTERN (A B{2,5} C?)",
        "PATTERN (A+ B) WITHIN INTERVAL '1' HOUR",
        "STRATEGY skip_till_any PATTERN (A B+) WITHIN 5 MINUTES",
        "PATTERN (A B*?)",
        "PATTERN (()*)",
        "PATTERN (PERMUTE(A, B, C){3})",
    ],
)
def test_a_bounded_pattern_has_no_reason(clauses: str) -> None:
    assert unbounded_reason(match_of(clauses)) is None


@pytest.mark.parametrize(
    ("clauses", "start"),
    [
        ("PATTERN (A B+ C)", "B+ can go on for ever"),
        ("PATTERN (A (B | C){2,}? D)", "(B | C){2,}? can go on for ever"),
        ("PATTERN ((A B*)*)", "(A B*)* can go on for ever"),
        ("STRATEGY skip_till_next PATTERN (A B)", "under skip_till_next a match can wait"),
    ],
)
def test_an_unbounded_pattern_has_a_reason_and_a_cure(clauses: str, start: str) -> None:
    reason = unbounded_reason(match_of(clauses))
    assert reason is not None
    assert reason.startswith(start)
    assert reason.endswith("add WITHIN INTERVAL '…'")
