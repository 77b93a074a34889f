"""Engines that know MATCH_RECOGNIZE, each in a process and an environment of its own.

Their requirements contradict Eventide's, so each has a virtual environment that is made when it is
first needed and then kept. Where one cannot be made, its lines of the table say so.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).parent
INSTALL_SECONDS = 900
ANSWER_SECONDS = 900


class AbsentError(Exception):
    """A rival that could not be installed, or gave no answer."""


@dataclass(frozen=True, slots=True)
class Rival:
    """What has to be installed, the script that its python runs, and how often a query is run."""

    name: str
    requirements: tuple[str, ...]
    script: str
    repeats: int

    def python(self, folder: Path) -> Path:
        """Return its python, in an environment that is made if it is not there."""
        home = folder / self.name.lower()
        done, python = home / "requirements.txt", home / "bin" / "python"
        wanted = "\n".join(self.requirements)
        if not done.exists() or done.read_text(encoding="utf-8") != wanted:
            create = [sys.executable, "-m", "venv", "--clear", str(home)]
            install = [str(python), "-m", "pip", "install", "--quiet", *self.requirements]
            for command in (create, install):
                called(command, self.name, INSTALL_SECONDS)
            done.write_text(wanted, encoding="utf-8")
        return python


@dataclass(frozen=True, slots=True)
class Job:
    """One file of events to answer over, so many times; the best time counts.

    `rows` is where to write the answer, and `count` whether to count it where that costs a run.
    """

    events: str
    repeats: int = 1
    rows: str = ""
    count: bool = True


@dataclass(frozen=True, slots=True)
class Task:
    """One query and what it is to be answered over, one after the other in one process."""

    text: str
    stream: str
    columns: Mapping[str, str]
    batch: int
    jobs: tuple[Job, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """How a job went; `idle` are the seconds of the same job without a pattern."""

    seconds: float
    idle: float
    matches: int | None

    @property
    def net(self) -> float:
        """What the pattern alone took."""
        return self.seconds - self.idle


@dataclass(frozen=True, slots=True)
class Answer:
    """What a rival's process said."""

    version: str
    runs: tuple[Run, ...]


PANDAS = Rival(
    "pandas-match-recognize",
    ("pandas-match-recognize==0.2.5", "pandas==2.3.3", "numpy==2.1.3", "pyarrow==26.0.1"),
    "pandas_child.py",
    repeats=1,
)
FLINK = Rival("PyFlink", ("apache-flink==2.3.0",), "flink_child.py", repeats=2)


def ask(rival: Rival, task: Task, folder: Path) -> Answer:
    """Start a rival's process, and return what it says once it has ended."""
    # Not the folder of the script: modules of ours would hide modules of theirs.
    command = [str(rival.python(folder)), "-P", str(HERE / rival.script)]
    said = called(command, rival.name, ANSWER_SECONDS, json.dumps(asdict(task)))
    told = json.loads(said.splitlines()[-1])
    return Answer(told["version"], tuple(Run(**run) for run in told["runs"]))


def called(command: Sequence[str], name: str, seconds: float, told: str = "") -> str:
    """Run a command to its end and return what it printed."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    try:
        ended = subprocess.run(
            command,
            input=told,
            env=environment,
            timeout=seconds,
            capture_output=True,
            text=True,
            check=True,
        )
    except subprocess.TimeoutExpired:
        message = f"{name}: no answer within {seconds} s"
        raise AbsentError(message) from None
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", "") or str(error)
        message = f"{name}: {last_line(said)}"
        raise AbsentError(message) from error
    return ended.stdout


def last_line(said: str) -> str:
    """Return the line of a traceback that says what happened."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    # Java's traces end in where, not in what.
    named = [line for line in lines if "Exception: " in line or "Error: " in line]
    return (named or lines or ["it ended without a word"])[-1][:200].replace("|", "/")
