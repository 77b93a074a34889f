"""What explain says about situations: how matches are found, what is kept, where it runs."""

from __future__ import annotations

import re
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from eventide.api.database import Database
from eventide.engines.explain import placement
from eventide.engines.explain.placement import describe_spark
from eventide.engines.history import replay as history
from eventide.lang.sql import plan_sql

EVENTS = 30_000
HELD = "DEFINE fast AS speed > 70 AT LEAST 4 SECONDS, brake AS speed < 20, last AS speed > 95"
PATTERN = f"{HELD} PATTERN fast overlaps brake; fast before brake AND fast before last"
FRAMES = """SELECT k, AVG(speed) OVER (PARTITION BY k ORDER BY ts
  ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS m FROM s"""
RETURN = "RETURN START(fast) AS began"
ALONE = f"FROM s {PATTERN} WITHIN 1 MINUTE {RETURN}"
BY_KEY = f"FROM s PARTITION BY k {PATTERN} WITHIN 1 MINUTE {RETURN}"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    found = Database(tmp_path_factory.mktemp("temporal") / "db")
    number = np.arange(EVENTS)
    events = pa.table(
        {
            "ts": pa.array(number * 1_000_000).cast(pa.timestamp("us", "UTC")),
            "speed": 50 + 50 * np.sin(number / 5),
            "k": number % 3,
        }
    )
    found.create_stream("s", {"speed": "float64", "k": "int64"}).append(events)
    return found


def lines_of(text: str, start: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip().startswith(start)]


def line_of(text: str, start: str) -> str:
    (line,) = lines_of(text, start)
    return line


def joined(line: str) -> list[str]:
    """Return the names in the order in which they are joined."""
    return re.findall(r"(\w+) \([\d.e+-]+ kept, [\d.e+-]+ % fit\)", line)


def test_what_sets_a_match_off_and_what_is_joined(database: Database) -> None:
    text = database.explain(ALONE)
    assert line_of(text, "matcher:").endswith("sets a match off, the others are of the last 1 min")
    fast = line_of(text, "fast once it has lasted 4 s or at its end: ")
    assert sorted(joined(fast)) == ["brake", "last"]
    # Only fast is linked to the others, so that it comes next.
    assert joined(line_of(text, "brake at its start: ")) == ["fast", "last"]
    assert joined(line_of(text, "last at its start: ")) == ["fast", "brake"]
    text = database.explain(ALONE.replace("RETURN", "DETECT FINAL RETURN"))
    assert len([line for line in text.splitlines() if " at its end: " in line]) == 3
    text = database.explain("FROM s DEFINE A AS k > 1 PATTERN A WITHIN 1 MINUTE RETURN END(A) AS e")
    assert line_of(text, "matcher: every situation is a match")
    assert line_of(text, "A at its start") == "A at its start"


def test_where_it_is_cut(database: Database) -> None:
    def told(text: str) -> str:
        return line_of(database.explain(text), "history:")

    assert told(ALONE) == "history: 30,000 events of s in one slice"
    with patch.object(placement, "SLICE_ROWS", 5000):
        assert " in 6 slices of time on " in told(ALONE)
    assert told(BY_KEY).endswith("in one slice, because each key has its own situations")
    counted = ALONE.replace("RETURN", "LIMIT 3 PER KEY RETURN")
    assert told(counted).endswith("in one slice, because matches are counted for LIMIT")
    confirmed = ALONE.replace("RETURN", "CONFIRM RETURN")
    assert told(confirmed).endswith("in one slice, because a match is confirmed any time later")
    rows = f"SELECT * FROM s SITUATIONS ({HELD})"
    assert told(rows).endswith("in one slice, because a situation can last any time")
    with patch.object(placement, "SMALLEST_PART", 15_000), patch("os.cpu_count", lambda: 3):
        assert told(BY_KEY).endswith("own situations, large batches by k on 3 threads")
        assert told(FRAMES).endswith("back any time, large batches by k on 3 threads")
        assert "threads" not in told(rows)
    with patch.object(placement, "SMALLEST_PART", 15_001), patch("os.cpu_count", lambda: 3):
        assert "threads" not in told(BY_KEY)


def test_what_is_remembered(database: Database) -> None:
    def told(text: str) -> str:
        return line_of(database.explain(text), "live:").removeprefix("live: yes, remembering ")

    kept = "the situations of the last 1 min, and open ones"
    for_ever = "one that is open when its key falls silent stays for ever, without GAP"
    assert told(ALONE) == f"{kept}, by no key"
    assert told(BY_KEY) == f"{kept}, by k: {for_ever}"
    gap = BY_KEY.replace("PATTERN", "GAP 30 SECONDS PATTERN")
    assert told(gap) == f"{kept}, by k: a key that falls silent ends them 30 s later"
    more = BY_KEY.replace("RETURN", "CONFIRM LIMIT 2 PER KEY RETURN")
    members = "the members of reported matches until all of them are over"
    counter = "a counter for every key that ever had a match"
    assert told(more) == f"{kept}; {members}; {counter}, by k: {for_ever}"
    rows = f"SELECT * FROM s SITUATIONS (PARTITION BY k {HELD})"
    assert told(rows) == f"open situations, by k: {for_ever}"


def test_a_replay_is_the_only_way(database: Database) -> None:
    for text in (ALONE, BY_KEY, f"SELECT * FROM s SITUATIONS ({HELD})"):
        told = database.explain(text, analyze=True)
        refused = "index: no, because every event tells whether a situation goes on"
        assert line_of(told, "index:") == refused
        assert len(lines_of(told, "→ ")) == 1


@pytest.mark.parametrize("slices", [1, 6])
def test_what_was_learnt(slices: int, database: Database) -> None:
    with patch.object(history, "SLICE_ROWS", EVENTS // slices):
        text = database.explain(ALONE, analyze=True)
    where = "" if slices == 1 else " in the last of 6 slices"
    kept = line_of(text, f"situations kept{where}, on average: ").rsplit(": ", 1)[1]
    sizes = {name: float(size) for name, size in (each.split() for each in kept.split(", "))}
    assert list(sizes) == ["fast", "brake", "last"]
    assert all(0.5 < size < 4 for size in sizes.values())
    shares = lines_of(text, "fast and ")
    assert [each.split(" fit: ")[0] for each in shares] == ["fast and brake", "fast and last"]
    assert all(each.endswith(" %") for each in shares)
    assert re.search(r"orders of joining, planned anew [\d,]+ times?\n", text)
    # Once as it was planned before the run, and once as it was after it.
    assert len(lines_of(text, "fast once it has lasted 4 s")) == 2


def test_where_spark_runs_it(database: Database) -> None:
    def told(text: str, frames: frozenset[str] = frozenset(), cores: int = 8) -> str:
        return describe_spark(plan_sql(text, database.catalog()), frames, cores)

    assert "slices of time, read and computed in Python workers" in told(ALONE)
    assert "shuffled once by k" in told(BY_KEY)
    assert "keeping its own k, nothing shuffled" in told(BY_KEY, cores=2)
    assert "shuffled into one partition: no key" in told(ALONE, frozenset({"s"}))


def test_a_picture(database: Database, tmp_path: Path) -> None:
    database.explain(ALONE, analyze=True).save(tmp_path / "plan.html")
    assert "TemporalPattern fast before or overlaps brake" in (tmp_path / "plan.html").read_text()
