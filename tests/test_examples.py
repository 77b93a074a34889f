"""The examples run, and print what they promise."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("quickstart.py", "ben  │ 2026-03-02 08:00:10 │  131"),
        ("live.py", "1 event came too late; 5 are stored"),
        ("algebra.py", "hatch │  5.9"),
        ("detection.py", "live: 13:21:35 Password guessed, and found"),
        ("patterns.py", "live: from 4 down to 6, up to 7"),
        ("standing.py", "live: 08:01:04 cat bought the pen for 3, counts until 08:01:20"),
        ("situations.py", "live: 08:00:19 anna was fast for 8 s, 37.4 m/s"),
    ],
)
def test_example_runs(name: str, told: str) -> None:
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert told in done.stdout


@pytest.mark.spark
def test_the_example_on_spark_runs(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    # In this process: the session that it asks for is the one that is there.
    before = spark.conf.get("spark.sql.shuffle.partitions") or 2
    runpy.run_path(str(EXAMPLES / "on_spark.py"), run_name="__main__")
    spark.conf.set("spark.sql.shuffle.partitions", before)
    told = capsys.readouterr().out
    assert "the same rows: True" in told
    assert "windows complete so far: 15 of 18" in told
