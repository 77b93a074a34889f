"""The pages of results: promises grouped and stated as they are, a page for each section."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.pages import (
    HERE,
    KEYS,
    QUERIES,
    SECTIONS,
    STORE,
    Section,
    promise_rows,
    summary,
    write_section,
)
from benchmarks.promises import Figure, figures_of, promises
from benchmarks.race import Finding, at_least, at_most

# A new section has no page before it was measured on a quiet machine.
MEASURED = [section for section in SECTIONS if section.path().exists()]
DETAILS = "- Date: {}\n- Machine: a small one\n\n| Case | s |\n| :-- | --: |\n| scan | 1 |\n"


def figure(case: str, value: float, *, met: bool, rival: str = "DuckDB", way: str = "") -> Figure:
    return Figure(case, way or f"way {value:g}", rival, at_least(2), value, met)


@pytest.mark.parametrize(
    ("figures", "row"),
    [
        ([figure("scan", 2.5, met=True)], "scan, way 2.5, DuckDB, ≥ 2, 2.50, ✓"),
        ([figure("scan", 1.5, met=False)], "scan, way 1.5, DuckDB, ≥ 2, 1.50, ✗"),
        (
            [figure("scan", value, met=value >= 2) for value in (3.0, 1.0, 2.0)],
            "scan, 3 figures, DuckDB, ≥ 2, 1.00 to 3.00, ✗ 2 of 3 met",
        ),
        (
            [figure("scan", 1.0, met=False), figure("scan", 1.5, met=False)],
            "scan, 2 figures, DuckDB, ≥ 2, 1.00 to 1.50, ✗",
        ),
        ([figure("scan", 1.996, met=False)], "scan, way 1.996, DuckDB, ≥ 2, 1.996, ✗"),
        ([figure("scan", 1.9995, met=False, rival="")], "scan, way 1.9995, , ≥ 2, 1.9995, ✗"),
        ([figure("open", 0.0223, met=True, rival="")], "open, way 0.0223, , ≥ 2, 0.0223, ✓"),
        (
            [figure("scan", 2.5, met=True, way="a"), figure("scan", 2.5, met=True, way="a")],
            "scan, a, DuckDB, ≥ 2, 2.50, ✓",
        ),
    ],
)
def test_a_promise_is_one_row(figures: list[Figure], row: str) -> None:
    (promise,) = promises(figures)
    assert ", ".join(promise.cells()) == row
    assert promise.met is row.endswith("✓")


def test_a_case_has_a_promise_for_each_rival_and_target() -> None:
    figures = [
        figure("scan", 3, met=True),
        figure("scan", 1, met=False, rival="Polars"),
        figure("ingest", 4, met=True),
        figure("scan", 5, met=True),
    ]
    found = [(each.figures[0].case, each.figures[0].rival) for each in promises(figures)]
    assert found == [("scan", "DuckDB"), ("scan", "Polars"), ("ingest", "DuckDB")]


def test_what_has_a_target_is_tested() -> None:
    findings = [
        Finding("fast", 2.0, "slow", 6.0, at_least(3), case="scan"),
        Finding("large", 6.0, "small", 2.0, at_most(2), case="size"),
        Finding("late", 0.2, target=at_most(0.1), case="open"),
        Finding("fast", 2.0, "slow", 6.0, case="no target"),
    ]
    assert figures_of(findings) == [
        Figure("scan", "fast", "slow", at_least(3), 3.0, met=True),
        Figure("size", "large", "small", at_most(2), 3.0, met=False),
        Figure("open", "late", "", at_most(0.1), 0.2, met=False),
    ]


def test_a_section_writes_its_page_and_the_summary_of_all(tmp_path: Path) -> None:
    write_section(STORE, DETAILS.format("Monday"), [figure("scan", 1, met=False)], tmp_path)
    kept = STORE.path(tmp_path).read_text()
    write_section(QUERIES, DETAILS.format("before"), [figure("sum", 7, met=True)], tmp_path)
    path = write_section(QUERIES, DETAILS.format("Tuesday"), [figure("avg", 3, met=True)], tmp_path)
    write_section(KEYS, DETAILS.format("Friday"), place=tmp_path)
    assert STORE.path(tmp_path).read_text() == kept
    page = path.read_text()
    assert page.startswith("# Queries\n")
    assert page.endswith(f"\n## Details\n\n{DETAILS.format('Tuesday')}")
    assert "sum" not in page
    text = (tmp_path / "results.md").read_text()
    assert "Of 2 promises 1 are met, 1 are not." in text
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    assert lines[2:4] == [
        "| [Queries](results/queries.md) | avg | way 3 | DuckDB | ≥ 2 | 3.00 | ✓ |",
        "| [Store](results/store.md) | scan | way 1 | DuckDB | ≥ 2 | 1.00 | ✗ |",
    ]
    assert [line.split(" | ")[-1] for line in lines[-3:]] == ["Tuesday |", "Monday |", "Friday |"]


def test_a_missed_promise_cannot_hide_among_those_that_are_met(tmp_path: Path) -> None:
    figures = [figure("scan", value, met=value >= 2) for value in (1, 2, 3)]
    write_section(STORE, DETAILS.format("now"), figures, tmp_path)
    assert "Of 1 promises 0 are met, 1 are not." in (tmp_path / "results.md").read_text()


def test_the_summary_that_is_kept_is_that_of_the_pages_that_are_kept() -> None:
    assert (HERE / "results.md").read_text(encoding="utf-8") == summary()
    pages = sorted(path.name for path in (HERE / "results").iterdir())
    assert pages == sorted(section.file for section in MEASURED)


@pytest.mark.parametrize("section", MEASURED, ids=lambda section: section.title)
def test_pages_promise_what_their_tables_say(section: Section) -> None:
    """Every ✗ of the details is a promise that is not met, and the other way round."""
    page = section.path().read_text(encoding="utf-8")
    details = page.partition("\n## Details\n")[2]
    missed = {
        line.split(" | ")[0].removeprefix("| ") for line in details.splitlines() if "✗" in line
    }
    assert {row[0] for row in promise_rows(page) if "✗" in row[-1]} == missed
