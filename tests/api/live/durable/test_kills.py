"""Durable queries survive kills; the module `kills` kills as often as one likes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[4]
KILLS = "15"


def test_kills_lose_nothing(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.api.live.durable.kills",
        str(tmp_path / "db"),
        KILLS,
        "3",
    ]
    child = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr[-3000:]
    assert f"{KILLS} kills" in child.stdout
