"""The code in the documents runs, and says what the documents say."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MARKED = [
    pytest.param(path, marks=pytest.mark.spark) if path.name == "spark.md" else path
    for path in DOCUMENTS
]


@pytest.mark.parametrize("path", MARKED, ids=lambda path: path.name)
def test_code_in_documents_runs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(
        str(path), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert result.failed == 0


def test_the_documents_show_code_at_all() -> None:
    shown = [doctest.DocTestParser().get_examples(path.read_text()) for path in DOCUMENTS]
    assert sum(map(len, shown)) > 20


LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
PAGES = [ROOT / "CONTRIBUTING.md", *DOCUMENTS, *sorted((ROOT / "benchmarks").rglob("*.md"))]


def anchor(heading: str) -> str:
    """Return what a link to a heading ends with."""
    return re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if link.startswith("https://"):
            continue
        path, _, heading = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        if heading:
            headings = HEADING.findall(target.read_text(encoding="utf-8"))
            assert heading in map(anchor, headings), link


def test_the_readme_is_read_in_two_minutes() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 700
