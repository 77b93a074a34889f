"""How many files a tumbling average goes through while it is planned and run."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from types import FrameType

import eventide
from eventide.api.database import Database

ROOT = Path(eventide.__file__).parent
QUERY = "SELECT car, AVG(speed) FROM cars GROUP BY car, TUMBLE(ts, INTERVAL '1' MINUTE)"
MOST = 61
"""Raise it only for a step that the query cannot do without."""


def files_entered(database: Database, query: str) -> set[str]:
    """Return the files of the package in which a function is called while a query is answered."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>":
            found.add(code.co_filename)

    # A call in another thread than the main one is answered where it is, so all is seen.
    thread = threading.Thread(target=database.sql, args=(query,))
    threading.setprofile(note)
    try:
        thread.start()
        thread.join()
    finally:
        threading.setprofile(None)
    paths = (Path(name) for name in found)
    return {path.relative_to(ROOT).as_posix() for path in paths if path.is_relative_to(ROOT)}


def test_a_tumbling_average_takes_a_straight_path(tmp_path: Path) -> None:
    database = Database(tmp_path)
    cars = database.create_stream("cars", {"car": "string", "speed": "float64"})
    cars.append(
        [{"ts": f"2026-01-01T00:0{i}:00", "car": "ab"[i % 2], "speed": i} for i in range(9)]
    )
    # Imports and what is kept for the next query do not count; the plan of a known text is kept.
    database.sql(QUERY)
    files = files_entered(database, f"{QUERY} ")
    assert {"api/database.py", "lang/sql/cut.py", "engines/history/replay.py"} <= files
    assert {"operators/windows/by_time.py", "store/snapshot.py"} <= files
    stages = Counter(name.partition("/")[0] for name in files)
    assert len(files) <= MOST, f"{dict(stages)}\n" + "\n".join(sorted(files))
