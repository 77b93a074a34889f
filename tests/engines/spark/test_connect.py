"""Queries in a session of Spark Connect answer as they do here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import eventide as ev
from tests.engines.spark.connect_client import QUERIES
from tests.warm import java

CARS = [
    {"ts": "2026-01-01T00:00:01", "car": "a", "speed": 50.0},
    {"ts": "2026-01-01T00:00:04", "car": "b", "speed": 60.0},
    {"ts": "2026-01-01T00:00:08", "car": "a", "speed": 70.0},
]


@pytest.mark.usefixtures("warm_python")
def test_a_connect_session_reads_and_answers(tmp_path: Path) -> None:
    db = ev.open(tmp_path / "db")
    db.create_stream("cars", {"car": "string", "speed": "float64"}).append(CARS)
    # A process of its own, without the settings of a classic session in this one.
    settings = {name for name in os.environ if "SPARK" in name} - {"PYSPARK_PYTHON"}
    environment = {name: os.environ[name] for name in os.environ.keys() - settings}
    run = subprocess.run(
        [sys.executable, "-m", "tests.engines.spark.connect_client", str(tmp_path)],
        env=environment | {"TZ": "UTC", "JDK_JAVA_OPTIONS": java.OPTIONS},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    found = json.loads(run.stdout.splitlines()[-1])
    assert found["is_connect"]
    assert len(found["read"]) == 3
    for name, text in QUERIES.items():
        expected = sorted([str(value) for value in row.values()] for row in db.sql(text).rows())
        assert expected
        assert found["store"][name] == expected, name
        assert found["frames"][name] == expected, name
