"""The benchmark of paths in XML documents: it checks what it finds, and renders."""

from __future__ import annotations

from benchmarks.report import Machine
from benchmarks.xml import paths


def test_paths_are_measured() -> None:
    found = paths.measured(20, 300, 5)
    assert found.nodes > 0
    assert len(paths.figures(found)) == 2
    assert "items a second" in paths.paths_section(found, Machine.here())
