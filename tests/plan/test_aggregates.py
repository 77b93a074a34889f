"""The registry of aggregates, and the page about it."""

from __future__ import annotations

from pathlib import Path

from eventide.plan.aggregates import (
    AGGREGATES,
    BY_PANE,
    DECAYED,
    FREQUENT,
    MERGED_WITH_SKETCHES,
    TAKEN_BACK,
)

PAGE = (Path(__file__).parent.parent.parent / "docs" / "aggregates.md").read_text()


def test_the_page_has_every_aggregate() -> None:
    listed = PAGE.partition("## The list")[2].partition("\n## ")[0]
    assert [name for name in AGGREGATES if f"`{name.upper()}(" not in listed] == []


def test_the_page_says_which_are_not_exact() -> None:
    exactness = PAGE.partition("## Exact or not")[2].partition("\n## ")[0]
    rough = [name for name, each in AGGREGATES.items() if not each.exact and name not in DECAYED]
    assert [name for name in rough if f"`{name.upper()}`" not in exactness] == []
    assert rough == ["approx_count_distinct", "approx_quantile", "approx_top_k", *FREQUENT]


def test_what_is_kept_by_pane_can_be_taken_back() -> None:
    assert {*BY_PANE} <= {*TAKEN_BACK}
    assert {*MERGED_WITH_SKETCHES} <= {*BY_PANE}
    assert {*TAKEN_BACK} <= {*AGGREGATES}
