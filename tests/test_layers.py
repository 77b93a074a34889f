"""Imports follow a table: which folder may use which, and which package stays where."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "eventide"

SHARED = {"schema", "batch", "errors", "visible", "local_path"}
MAY_IMPORT = {
    "schema": {"errors"},
    "batch": set(),
    "errors": set(),
    "local_path": {"errors"},
    "visible": set(),
    "interrupts": set(),
    "kernels": set(),
    "accumulators": {"kernels", "schema", "errors"},
    "plan": SHARED,
    "lang": SHARED | {"plan"},
    "store": SHARED | {"accumulators", "interrupts", "kernels"},
    "ingest": SHARED | {"kernels"},
    "operators": SHARED | {"accumulators", "plan", "kernels"},
    "sinks": SHARED,
    "engines": SHARED
    | {
        "accumulators",
        "ingest",
        "kernels",
        "lang",
        "matching",
        "operators",
        "pace",
        "plan",
        "result",
        "store",
        "stream",
    },
    "matching": {"errors", "lang", "plan"},
    "result": {"sinks"},
    "matches": SHARED | {"plan", "result", "sinks"},
    "lifetimes": SHARED | {"result", "sinks"},
    "explanation": SHARED | {"engines", "kernels", "plan", "sinks"},
    "subscription": SHARED | {"engines", "interrupts", "operators", "plan", "result", "stream"},
    "delivery": SHARED | {"stream", "subscription"},
    "relation": SHARED | {"engines", "ingest", "plan", "result", "store", "stream"},
    "pace": {"batch", "errors"},
    "replay": SHARED | {"ingest", "pace", "result", "store", "stream", "subscription"},
    "calendars": SHARED | {"plan"},
    "stream": SHARED | {"calendars", "ingest", "plan", "result", "store"},
    "tables": SHARED | {"ingest", "lang", "plan", "store"},
    "database": SHARED
    | {
        "delivery",
        "engines",
        "explanation",
        "ingest",
        "interrupts",
        "lang",
        "matches",
        "matching",
        "operators",
        "pace",
        "plan",
        "relation",
        "replay",
        "result",
        "store",
        "stream",
        "subscription",
        "tables",
    },
    "testing": SHARED | {"database", "engines", "ingest"},
    "demo": SHARED
    | {"database", "engines", "ingest", "result", "sinks", "store", "stream", "subscription"},
    "cli": SHARED
    | {"database", "demo", "engines", "ingest", "kernels", "replay", "result", "sinks", "store"},
}
ONLY_IN = {
    "pyspark": ("engines/spark/",),
    "py4j": ("engines/spark/",),
    "numba": ("kernels/",),
    "sqlglot": ("lang/sql/",),
    "duckdb": ("engines/rest.py",),
    "click": ("cli",),
    "google_crc32c": ("store/", "operators/envelope.py"),
}

FILES = sorted(SOURCE.rglob("*.py"))


def imported_modules(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from eventide import sql` names a module or a thing: both count as the package.
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def layer_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_follow_the_layer_table(path: Path) -> None:
    layer = layer_of(path)
    if layer == "__init__":
        return
    for module in imported_modules(path):
        parts = module.split(".")
        if parts[0] == "eventide" and len(parts) > 1 and parts[1] != layer:
            assert parts[1] in MAY_IMPORT[layer], f"{layer} may not import {module}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_packages_stay_where_they_belong(path: Path) -> None:
    place = str(path.relative_to(SOURCE))
    for module in imported_modules(path):
        allowed = ONLY_IN.get(module.split(".")[0])
        assert allowed is None or place.startswith(allowed), f"{place} imports {module}"


def test_no_module_is_a_drawer_for_everything() -> None:
    drawers = {"utils", "util", "common", "helpers", "base", "misc"}
    assert not {path.stem for path in FILES} & drawers
