"""What a process has imported once it has answered its first query.

The list is watched, not the time: what a query does not need costs every process that asks one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import eventide as ev

ROWS = [
    {"ts": f"2026-01-01T00:0{i}:00", "car": "ab"[i % 2], "speed": 10.0 * (i % 4), "accel": 3.0 - i}
    for i in range(9)
]
ASK = """
import json, sys
import eventide
print(len(eventide.open(sys.argv[1]).{call}({text!r})))
print(json.dumps(sorted(sys.modules)))
"""
CONDITION = "SELECT car, speed FROM cars WHERE speed > 15 AND ts >= TIMESTAMP '2026-01-01'"
AVERAGE = "SELECT car, AVG(speed) FROM cars GROUP BY car, TUMBLE(ts, INTERVAL '1' MINUTE)"
PATTERN = """SELECT * FROM cars MATCH_RECOGNIZE (PARTITION BY car ORDER BY ts
    MEASURES FIRST(A.ts) AS since, MAX(B.speed) AS top
    PATTERN (A B+) WITHIN INTERVAL '5' MINUTE DEFINE B AS speed > PREV(speed))"""
SITUATIONS = """FROM cars PARTITION BY car DEFINE fast AS speed > 5, slow AS accel < 0
    PATTERN fast meets slow WITHIN 5 MINUTES RETURN max(fast.speed) AS top"""
STANDING = "SELECT car, COUNT(*) AS n FROM cars [RANGE 5 MINUTES] GROUP BY car"
FRAME = """SELECT car, AVG(speed) OVER (PARTITION BY car ORDER BY ts
    RANGE BETWEEN INTERVAL '2' MINUTE PRECEDING AND CURRENT ROW) AS m FROM cars"""
JOIN = """SELECT a.car, b.speed FROM cars [RANGE 5 MINUTES] AS a
    JOIN cars [RANGE 1 MINUTE] AS b ON a.car = b.car"""

NEVER = {
    *("pandas", "polars", "pyspark", "duckdb", "click", "rich", "asyncio", "xml", "urllib.request"),
    *("eventide.cli", "eventide.demo", "eventide.engines.spark", "eventide.drawing.situations"),
    *("eventide.engines.explain", "eventide.engines.live.engine", "eventide.api.live.delivery"),
    *("eventide.api.replay.run", "eventide.engines.history.rest", "eventide.lang.sql.rest.text"),
}
ROOMS = {
    "windows": {"eventide.operators.windows.by_time"},
    "frames": {"eventide.operators.windows.frames"},
    "patterns": {"eventide.operators.patterns.match", "eventide.lang.sql.patterns.plan"},
    "situations": {"eventide.operators.situations.match", "eventide.lang.sql.situations.plan"},
    "standing": {
        *("eventide.operators.standing.answer", "eventide.lang.sql.standing.plan"),
        "eventide.engines.standing.build",
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("imports")
    attributes = {"car": "string", "speed": "float64", "accel": "float64"}
    ev.open(path).create_stream("cars", attributes).append(ROWS)
    return path


def run(*arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, *arguments], check=True, capture_output=True, text=True, timeout=300
    )
    return done.stdout.splitlines()


def imported(folder: Path, text: str, call: str) -> set[str]:
    """Return the modules of a process that has answered one query, which has rows."""
    rows, modules = run("-c", ASK.format(text=text, call=call), str(folder))
    assert int(rows) > 0
    return set(json.loads(modules))


@pytest.mark.parametrize(
    ("text", "call", "room", "most"),
    [
        (CONDITION, "sql", None, 285),
        (AVERAGE, "sql", "windows", 291),
        (PATTERN, "sql", "patterns", 338),
        (SITUATIONS, "tpstream", "situations", 316),
        (STANDING, "sql", "standing", 404),
        (FRAME, "sql", "frames", 296),
        (JOIN, "sql", "standing", 404),
    ],
    ids=["condition", "average", "pattern", "situations", "standing", "frame", "join"],
)
def test_a_query_imports_what_it_needs(
    folder: Path, text: str, call: str, room: str | None, most: int
) -> None:
    """Raise `most`, of modules of ours, only for what the query cannot do without."""
    found = imported(folder, text, call)
    others = set().union(*(modules for name, modules in ROOMS.items() if name != room))
    assert not (NEVER | others) & found
    assert room is None or ROOMS[room] <= found
    ours = [name for name in found if name.partition(".")[0] == "eventide"]
    assert len(ours) <= most, "\n".join(sorted(ours))


def test_the_package_itself_imports_nothing() -> None:
    (modules,) = run("-c", "import sys, eventide; print(' '.join(sys.modules))")
    ours = {name for name in modules.split() if name.partition(".")[0] == "eventide"}
    assert ours == {"eventide"}
    assert not {"numpy", "pyarrow"} & set(modules.split())
