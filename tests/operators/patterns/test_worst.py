"""Patterns that are too slow on other engines: the work stays proportional to the rows.

Nothing is timed. If work grew with the square of the rows, these tests would not end; and where
the kernels count their work, that is asserted.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import eventide as ev
from eventide.errors import EvaluationError
from eventide.kernels.patterns.scan import Scanned, scan
from eventide.operators.patterns import match as match_rows

MANY = 100_000


def ones(count: int, last: int = 1) -> pa.Table:
    """Rows that are all alike, but for the last."""
    x = np.ones(count, np.int64)
    x[-1] = last
    return pa.table({"ts": np.arange(count) * 1_000, "x": x})


def ask(text: str, rows: pa.Table) -> list[dict[str, object]]:
    return ev.sql(f"SELECT * FROM s MATCH_RECOGNIZE ({text})", s=rows).rows()


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[Scanned]:
    """What the two passes did."""
    seen: list[Scanned] = []

    def spy(*arguments: object) -> Scanned:
        seen.append(scan(*arguments))  # type: ignore[arg-type]
        return seen[-1]

    monkeypatch.setattr(match_rows, "scan", spy)
    return seen


NEXT_ROW = "AFTER MATCH SKIP TO NEXT ROW"
MEASURES = "MEASURES COUNT(*) AS n, SUM(A.x) AS total, MAX(x) AS most, FIRST(x) AS f, LAST(x) AS l"


@pytest.mark.parametrize(
    "pattern", ["A+", "A+?", "(A | B)*", "(A?){2,}", "(A* B?)*", "A{1,3} A*", "(A | B)* A"]
)
def test_every_row_starts_a_match_to_the_end(pattern: str, scans: list[Scanned]) -> None:
    text = f"{MEASURES} {NEXT_ROW} PATTERN ({pattern}) DEFINE A AS x > 0, B AS x > 0"
    if "B" not in pattern:
        text = text.replace(", B AS x > 0", "")
    found = ask(text, ones(MANY))
    assert len(found) == MANY
    longest = 1 if pattern == "A+?" else MANY
    assert found[0]["n"] == longest
    assert found[0]["total"] == longest
    # Each place of each node is walked once, however many matches run through it.
    assert sum(len(each.row) for each in scans) <= 8 * MANY


def test_long_runs_that_end_well(scans: list[Scanned]) -> None:
    text = f"{MEASURES} {NEXT_ROW} PATTERN (S A+ B) DEFINE A AS x > 0, B AS x = 0"
    found = ask(text, ones(MANY, last=0))
    assert len(found) == MANY - 2
    assert {row["l"] for row in found} == {0}
    assert [row["total"] for row in found[:3]] == [MANY - 2, MANY - 3, MANY - 4]
    assert sum(len(each.row) for each in scans) <= 4 * MANY


@pytest.mark.parametrize("pattern", ["(A | B)* C", "A+ C", "(A+)+ C", "(A? B?)* C", "A* A* A* C"])
@pytest.mark.parametrize("within", ["", "WITHIN INTERVAL '10' SECOND"])
def test_long_runs_that_come_to_nothing(pattern: str, within: str) -> None:
    define = "DEFINE A AS x > 0, C AS x < 0" + (", B AS x > 0" if "B" in pattern else "")
    assert ask(f"MEASURES COUNT(*) AS n PATTERN ({pattern}) {within} {define}", ones(MANY)) == []


@pytest.mark.parametrize(
    "condition", ["x < A.x", "x < FIRST(x)", "x < LAST(A.x) AND x < FIRST(B.x)"]
)
def test_conditions_that_cannot_tell_the_ways_apart(condition: str) -> None:
    # All rows are alike, but the rows that conditions look at are not: so only what they can
    # still see makes two ways different.
    define = f"DEFINE A AS x > 0, B AS x > 0, C AS {condition}"
    text = f"MEASURES COUNT(*) AS n PATTERN (^ (A | B)* C) {define}"
    assert ask(text, ones(2_000)) == []


def test_what_cannot_be_done_is_given_up_with_advice() -> None:
    # The sum tells all ways of choosing rows for A apart: two to the power of the rows.
    x = np.power(2, np.arange(60) % 60, dtype=np.int64)
    rows = pa.table({"ts": np.arange(60), "x": x})
    text = "MEASURES COUNT(*) AS n PATTERN ((A | B)* C) DEFINE A AS x > 0, C AS SUM(A.x) < 0"
    with pytest.raises(EvaluationError, match="takes more than 20,000,000 steps") as caught:
        ask(text, rows)
    assert "add WITHIN" in str(caught.value)


def test_results_of_many_matches_are_computed_in_pieces(
    monkeypatch: pytest.MonkeyPatch, scans: list[Scanned]
) -> None:
    monkeypatch.setattr(match_rows, "MOST_ELEMENTS", 1_000)
    text = f"{MEASURES} AFTER MATCH SKIP TO LAST A PATTERN (B A+) DEFINE A AS x > 0"
    within = text.replace("PATTERN (B A+)", "PATTERN (B A+) WITHIN INTERVAL '50' MILLISECOND")
    found = ask(within, ones(5_000))
    assert len(found) == 100
    assert len(scans) > 3
    assert all(len(each.row) <= 1_000 + 5_000 for each in scans)
