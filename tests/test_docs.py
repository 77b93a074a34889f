"""The code in the documents runs, and its output is as shown; links lead somewhere."""

from __future__ import annotations

import doctest
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MARKED = [
    pytest.param(path, marks=pytest.mark.spark) if path.name == "spark.md" else path
    for path in DOCUMENTS
]
LINKED = sorted(
    {*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").rglob("*.md")}
)
FOLDERS = {
    *("src", "tests", "benchmarks", "examples"),
    *(path.name for path in (ROOT / "src" / "eventide").iterdir() if [*path.glob("**/*.py")]),
}


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", MARKED, ids=_name)
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


def test_the_readme_is_read_in_two_minutes() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= 700


def _prose(path: Path) -> str:
    """Return a page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)


def _anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.+?) *$", _prose(path), re.MULTILINE)
    texts = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    found: set[str] = set()
    seen: Counter[str] = Counter()
    for text in texts:
        anchor = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        found.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return found


def _broken_links(path: Path) -> list[str]:
    """Return the relative links of a page that lead to no file or to no heading."""
    text = re.sub(r"`[^`\n]*`", "code", _prose(path))
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            broken.append(link)
    return broken


@pytest.mark.parametrize("path", LINKED, ids=_name)
def test_links_lead_to_files_and_headings(path: Path) -> None:
    assert _broken_links(path) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text(
        "# One `word`: more\n\n```\n# no heading\n```\n\n## Twice\n\n## Twice\n"
    )
    page = tmp_path / "page.md"
    page.write_text(
        "# Here\n[a](other.md) [b](other.md#one-word-more) [c](#here) [d](other.md#twice-1)\n"
        "[e](https://example.org/none) `[f](code.md)`\n\n```\n[g](code.md)\n```\n"
        "[h](none.md) [`i`](other.md#no-heading) ![j](none.svg) [k](#there) [l](other.md#twice-2)\n"
    )
    broken = ["none.md", "other.md#no-heading", "none.svg", "#there", "other.md#twice-2"]
    assert _broken_links(page) == broken


def test_pages_that_the_program_names_exist() -> None:
    sources = sorted((ROOT / "src").rglob("*.py"))
    named = {page for path in sources for page in re.findall(r"docs/[\w/-]+\.md", path.read_text())}
    assert named
    assert [page for page in sorted(named) if not (ROOT / page).exists()] == []


def test_files_that_the_documents_name_exist() -> None:
    named = {
        (path.name, name)
        for path in [*DOCUMENTS, ROOT / "CONTRIBUTING.md"]
        for name in re.findall(r"[`\s,]((?:\w+/)+(?:\w+\.py)?)(?=[`\s,])", path.read_text())
        if name.endswith(".py") or name.split("/")[0] in FOLDERS
    }
    assert len(named) > 50
    roots = [ROOT, ROOT / "src", ROOT / "src" / "eventide"]
    missing = [
        each
        for each in sorted(named)
        if not any(
            (root / each[1]).is_file() or [*(root / each[1]).glob("**/*.py")] for root in roots
        )
    ]
    assert missing == []


def test_the_index_names_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    pages = sorted(path.name for path in (ROOT / "docs").glob("*.md"))
    assert [page for page in pages if page != "README.md" and f"]({page})" not in index] == []
