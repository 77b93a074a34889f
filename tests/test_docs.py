"""The code in the documents runs, and says what the documents say."""

from __future__ import annotations

import doctest
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
