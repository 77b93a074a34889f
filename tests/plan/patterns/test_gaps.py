"""For which patterns rows that meet no condition do not matter."""

from __future__ import annotations

import pytest

from eventide.lang.sql import plan_sql
from eventide.plan.patterns.gaps import has_only_gaps
from tests.naive.patterns.rows import match_node
from tests.naive.patterns.texts import CATALOG

DEFINE = "DEFINE A AS x = 1, B AS x = 2"
ONE_VALUE = "MEASURES FIRST(ts) AS a, LAST(ts) AS b, A.x AS v"


@pytest.mark.parametrize(
    "body",
    [
        f"{ONE_VALUE} PATTERN (A T* B) {DEFINE}",
        f"{ONE_VALUE} PATTERN (A T*? B U* A) {DEFINE}",
        "MEASURES A.x AS x PATTERN (A) DEFINE A AS x = 1",
        f"{ONE_VALUE} AFTER MATCH SKIP TO LAST B PATTERN (A T* B) {DEFINE}",
        "MEASURES SUM(A.x) AS s PATTERN (A T* A) DEFINE A AS x = 1",
        f"PARTITION BY k {ONE_VALUE} PATTERN (A T* B) DEFINE A AS x = 1, B AS x > A.x",
    ],
)
def test_rows_in_gaps_do_not_matter(body: str) -> None:
    plan = plan_sql(f"SELECT * FROM s MATCH_RECOGNIZE ({body})", CATALOG)
    assert has_only_gaps(match_node(plan))


@pytest.mark.parametrize(
    "body",
    [
        # Rows next to each other, and gaps at the ends.
        f"{ONE_VALUE} PATTERN (A B) {DEFINE}",
        f"{ONE_VALUE} PATTERN (A T* B T*) {DEFINE}",
        f"{ONE_VALUE} PATTERN (A+ T* B) {DEFINE}",
        f"{ONE_VALUE} PATTERN (A T+ B) {DEFINE}",
        f"{ONE_VALUE} PATTERN (A T{{0,3}} B) {DEFINE}",
        # Gaps with a condition, rows without one.
        f"{ONE_VALUE} PATTERN (A T* B) {DEFINE}, T AS x = 3",
        f"{ONE_VALUE} PATTERN (A T* B) DEFINE A AS x = 1",
        # Somebody asks for rows in gaps.
        f"MEASURES COUNT(*) AS n PATTERN (A T* B) {DEFINE}",
        f"MEASURES LAST(T.x) AS x PATTERN (A T* B) {DEFINE}",
        f"MEASURES LAST(x, 1) AS x PATTERN (A T* B) {DEFINE}",
        f"MEASURES PREV(B.x) AS x PATTERN (A T* B) {DEFINE}",
        f"MEASURES LAST(U.x) AS x PATTERN (A T* B) SUBSET U = (A, T) {DEFINE}",
        f"{ONE_VALUE} PATTERN (A T* B) DEFINE A AS x = 1, B AS x = 2 AND LAST(x, 1) = 1",
        f"{ONE_VALUE} PATTERN (A T* B) DEFINE A AS x = 1, B AS COUNT(*) > 2",
        f"{ONE_VALUE} ALL ROWS PER MATCH PATTERN (A T* B) {DEFINE}",
        f"{ONE_VALUE} AFTER MATCH SKIP TO LAST T PATTERN (A T* B) {DEFINE}",
        f"{ONE_VALUE} STRATEGY skip_till_next PATTERN (A T* B) {DEFINE}",
    ],
)
def test_rows_in_gaps_matter(body: str) -> None:
    plan = plan_sql(f"SELECT * FROM s MATCH_RECOGNIZE ({body})", CATALOG)
    assert not has_only_gaps(match_node(plan))
