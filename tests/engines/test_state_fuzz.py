"""Wrong states, thousands if asked for: each is an error of ours or a state, never a crash."""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import eventide.engines
import eventide.operators
from eventide.operators.filter_project import Stateless
from eventide.operators.stateful import Stateful
from tests.engines.state_cases import case_names, case_of
from tests.engines.state_fuzz import levels_of

ROOT = Path(__file__).parent.parent.parent
MUTATIONS = int(os.environ.get("EVENTIDE_STATE_MUTATIONS", "0")) or len(case_names())
"""So many are tried, one of every case by default."""
FIRST = int(os.environ.get("EVENTIDE_STATE_FIRST", "0"))


def fuzzed(first: int, count: int) -> tuple[Counter[str], list[str]]:
    """Try mutations in child processes; return what became of them, and what went wrong."""
    told, wrong = Counter[str](), list[str]()
    after = first + count
    while first < after:
        child = subprocess.run(
            [sys.executable, "-m", "tests.engines.state_fuzz", str(first), str(after - first)],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        number, about = first, "nothing was tried"
        for line in child.stdout.splitlines():
            if line.startswith("= "):
                told[line[2:]] += 1
            elif line.startswith("| "):
                wrong[-1] += f"\n{line}"
            elif line.split(" ")[0].isdigit():
                about = line
                number = int(line.split(" ")[0])
            else:
                wrong.append(f"{about}\n{line}")
        first = number + 1
        if child.returncode:
            told["died"] += 1
            wrong.append(f"{about}: died of {child.returncode}\n{child.stderr[-3000:]}")
    return told, wrong


def test_wrong_states_are_refused_or_go_on() -> None:
    told, wrong = fuzzed(FIRST, MUTATIONS)
    assert not wrong, "\n\n".join([str(dict(told)), *wrong])
    # About half are refused; one of every case is a small sample.
    assert told["refused"] > MUTATIONS // 3


def test_nothing_with_a_state_is_left_out() -> None:
    """Whatever is added to operators and engines has to be in the list of cases."""
    for package in (eventide.operators, eventide.engines):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    met = {
        named(type(level.subject))
        for case in map(case_of, case_names())
        for level in levels_of(case, case.state)
    }
    kept = {named(each) for each in concrete(Stateful) if not issubclass(each, Stateless)}
    # Tests that ran in this process before may have brought in those of the benchmarks.
    assert {each for each in kept if each.startswith("eventide.")} <= met


def named(kind: type) -> str:
    """Return the full name of a class; one with slots stands beside the one that it was made of."""
    return f"{kind.__module__}.{kind.__qualname__}"


def concrete(kind: type) -> list[type]:
    """Return the classes of a kind that can be made."""
    found: list[type] = [] if getattr(kind, "__abstractmethods__", None) else [kind]
    below: type
    for below in kind.__subclasses__():
        found += concrete(below)
    return found
