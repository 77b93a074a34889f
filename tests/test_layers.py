"""Imports follow a table: which folder may use which, and which package stays where."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "eventide"

SHARED = {"arrays", "schema", "instants", "errors", "visible", "local_path"}
MAY_IMPORT = {
    "arrays": set(),
    "schema": {"errors"},
    "instants": set(),
    "errors": set(),
    "local_path": {"errors"},
    "visible": set(),
    "interrupts": set(),
    "threads": set(),
    "kernels": set(),
    "documents": {"errors", "kernels"},
    "accumulators": {"arrays", "kernels", "schema", "errors"},
    "plan": SHARED,
    "lang": SHARED | {"plan"},
    "store": SHARED | {"accumulators", "interrupts", "kernels", "threads"},
    "ingest": SHARED | {"documents", "kernels", "threads"},
    "operators": SHARED | {"accumulators", "documents", "plan", "kernels", "threads"},
    "sinks": SHARED | {"plan", "store"},
    "drawing": SHARED | {"sinks"},
    "engines": SHARED
    | {"accumulators", "ingest", "interrupts", "kernels", "lang", "operators", "plan", "store"}
    | {"threads"},
    "api": SHARED
    | {"drawing", "engines", "ingest", "interrupts", "kernels", "lang", "operators", "plan"}
    | {"sinks", "store"},
    "rules": SHARED | {"api", "store"},
    "demo": SHARED | {"api", "drawing", "engines", "ingest", "sinks", "store"},
    "cli": SHARED
    | {"api", "demo", "drawing", "engines", "ingest", "kernels", "rules", "sinks", "store"},
}
# What users hold of Spark is in engines/spark, for pyspark stays there.
SPARK_MAY_IMPORT = {"api"}

ROOMS = {"windows", "patterns", "situations", "standing", "algebra", "sharing", "xml"}
STAGES = {"lang", "plan", "operators", "kernels", "engines"}
# Which room reads what of another one, and why.
BETWEEN_ROOMS = {
    # One grammar: each parser extends the one before.
    ("lang/sql/patterns/parser", "lang/sql/windows/table_functions"),
    ("lang/sql/situations/clause", "lang/sql/patterns/parser"),
    ("lang/sql/standing/clause", "lang/sql/situations/clause"),
    ("lang/sql/standing/clause", "lang/sql/situations/period_relations"),
    # What has to be known before rows are matched is refused with the same hint.
    ("lang/sql/situations/names", "lang/sql/patterns/hints"),
    # GROUP BY of a standing query refuses TUMBLE and HOP.
    ("lang/sql/standing/select", "lang/sql/windows/group_by"),
    # An instant is a window of a microsecond, of which nothing has to be remembered.
    ("operators/algebra/instants", "operators/windows/by_time"),
    ("operators/algebra/instants", "plan/windows/nodes"),
    # Queries that share their rows differ in such windows.
    ("engines/live/sharing/planned", "plan/windows/nodes"),
    ("operators/sharing/windows", "plan/windows/nodes"),
    ("plan/sharing/portion", "plan/windows/nodes"),
    ("plan/sharing/query_windows", "plan/windows/nodes"),
    ("plan/sharing/share_windows", "plan/windows/nodes"),
    ("plan/sharing/template", "plan/windows/nodes"),
    ("plan/sharing/windows", "plan/windows/nodes"),
    # Standing queries over groups become such windows, and the changes of their rows.
    ("engines/live/sharing/windows", "plan/standing/nodes"),
    ("operators/sharing/refreshes", "plan/standing/nodes"),
    ("plan/sharing/refreshes", "plan/standing/nodes"),
    ("plan/sharing/refreshes", "plan/standing/windows"),
    ("plan/sharing/refreshes", "plan/windows/nodes"),
    ("plan/sharing/windows", "plan/standing/nodes"),
    # A query that runs by itself in a set may be a standing one, of which several plans are known.
    ("engines/live/sharing/written", "engines/standing/resume"),
    # Rows in chunks that are found by number, whoever keeps them.
    ("operators/sharing/known_keys", "operators/standing/row_log"),
    ("operators/sharing/partial_log", "operators/standing/row_log"),
    # What queries demand of the events that follow becomes a key.
    ("plan/sharing/followers", "plan/algebra/nodes"),
    # Every node says how its rows go, those of a sequence never.
    ("plan/algebra/nodes", "plan/standing/edges"),
    ("plan/xml/nodes", "plan/standing/edges"),
    # What follows may be of several streams.
    ("engines/history/algebra/spans", "plan/standing/nodes"),
}
ONLY_IN = {
    "pyspark": ("engines/spark/",),
    "py4j": ("engines/spark/",),
    "numba": ("kernels/",),
    "lark": ("lang/cel/", "lang/xscl/"),
    "sqlglot": ("lang/sql/",),
    "duckdb": ("engines/history/rest.py",),
    "click": ("cli",),
    "sigma": ("rules/sigma/",),
    "re2": ("rules/sigma/",),
    "yaml": ("rules/yaml_files.py",),
    "google_crc32c": ("store/", "operators/envelope.py"),
}

FILES = sorted(SOURCE.rglob("*.py"))
TESTS = sorted(Path(__file__).parent.rglob("*.py"))
BENCHMARKS = sorted((SOURCE.parent.parent / "benchmarks").rglob("*.py"))


@cache
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


def test_imports_follow_the_layer_table() -> None:
    wrong = []
    for path in FILES:
        layer = layer_of(path)
        if layer == "__init__":
            continue
        allowed = MAY_IMPORT[layer]
        if path.is_relative_to(SOURCE / "engines" / "spark"):
            allowed = allowed | SPARK_MAY_IMPORT
        for module in imported_modules(path):
            parts = module.split(".")
            if parts[0] == "eventide" and len(parts) > 1 and parts[1] not in {layer, *allowed}:
                wrong.append(f"{path.relative_to(SOURCE)} may not import {module}")
    assert not wrong


def room_of(parts: Sequence[str]) -> str | None:
    """Return the room a module is in, None for the core of a stage."""
    return next((part for part in parts[1:] if part in ROOMS), None)


def crossings() -> set[tuple[str, str]]:
    """Return who imports a room that is not its own, and what."""
    found = set()
    for path in FILES:
        parts = path.relative_to(SOURCE).with_suffix("").parts
        own = room_of(parts)
        if own is None or parts[0] not in STAGES:
            continue
        for module in imported_modules(path):
            stage, *rest = module.split(".")[1:] or [""]
            other = room_of([stage, *rest[:-1]])
            if stage in STAGES and other not in (None, own):
                found.add(("/".join(parts), "/".join([stage, *rest[:-1]])))
    return found


def test_rooms_keep_to_themselves() -> None:
    """Both ways: an exception that nobody needs any more is taken off the list."""
    assert crossings() == BETWEEN_ROOMS


def test_folders_are_small_enough_to_look_through() -> None:
    files = [*FILES, *TESTS, *BENCHMARKS]
    sizes = Counter(path.parent for path in files if path.name != "__init__.py")
    assert not {folder: count for folder, count in sizes.items() if count > 20}


def test_few_modules_stand_at_the_root() -> None:
    assert len(list(SOURCE.glob("*.py"))) <= 9


def test_packages_stay_where_they_belong() -> None:
    wrong = []
    for path in FILES:
        place = str(path.relative_to(SOURCE))
        for module in imported_modules(path):
            allowed = ONLY_IN.get(module.split(".")[0])
            if allowed is not None and not place.startswith(allowed):
                wrong.append(f"{place} imports {module}")
    assert not wrong


def class_homes() -> dict[str, list[str]]:
    """Return the modules that define a class, by its name."""
    homes: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(str(path.relative_to(SOURCE)))
    return homes


def test_no_two_classes_share_a_name() -> None:
    """Private ones too: a name in a traceback or a search says which class it is."""
    homes = class_homes()
    assert "LiveQuery" in homes
    assert not {name: paths for name, paths in homes.items() if len(paths) > 1}


def test_no_module_is_a_drawer_for_everything() -> None:
    drawers = {"utils", "util", "common", "helpers", "base", "misc"}
    assert not {path.stem for path in FILES} & drawers
