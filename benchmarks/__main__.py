"""`python -m benchmarks`: check every answer, time everybody, write the table."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.cases import Case
from benchmarks.data import EVENTS
from benchmarks.errands import all_cases
from benchmarks.guard import MismatchError, check_answers
from benchmarks.measure import Outcome, measure
from benchmarks.report import HOW_TO_READ, RESULTS, Machine, as_markdown, as_table
from benchmarks.setting import Setting

SAMPLE = 20_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases asked for; 1 if answers differ, so that nothing is reported."""
    asked = parsed(arguments)
    cases = chosen(asked.only, spark=not asked.no_spark)
    screen, machine = Console(highlight=False), Machine.here()
    # Without a terminal there is no width to fit into.
    screen.width = screen.width if screen.is_terminal else 160
    if not cases:
        screen.print(f"no case is called {asked.only!r}; there are:")
        screen.print(*(case.name for case in all_cases()), sep="\n")
        return 2
    screen.print(f"{machine}\n{asked.events:,} events, {len(cases)} cases. {HOW_TO_READ}")
    outcomes: list[Outcome] = []
    try:
        with tempfile.TemporaryDirectory(prefix="eventide-bench-") as folder:
            for outcome in run(cases, asked.events, Path(folder)):
                outcomes += outcome
                screen.print(as_table(outcome))
    except MismatchError as mismatch:
        screen.print(f"stopped, nothing is written: {mismatch}", style="bold red")
        return 1
    screen.print(as_table(outcomes))
    if asked.only or asked.no_write:
        return 0
    RESULTS.write_text(as_markdown(outcomes, asked.events, machine), encoding="utf-8")
    screen.print(f"written to {RESULTS}")
    return 0


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--events", type=int, default=EVENTS, help="how many (%(default)s)")
    parser.add_argument("--only", metavar="NAME", help="cases whose name has this in it; no file")
    parser.add_argument("--no-spark", action="store_true", help="leave out the cases on Spark")
    parser.add_argument("--no-write", action="store_true", help=f"leave {RESULTS.name} as it is")
    return parser.parse_args(arguments)


def chosen(only: str | None, *, spark: bool) -> list[Case]:
    """Return the cases to run."""
    cases = [case for case in all_cases() if spark or not case.spark]
    return [case for case in cases if only is None or only in case.name]


def run(cases: Sequence[Case], events: int, folder: Path) -> Iterator[list[Outcome]]:
    """Yield the outcomes of each case once its answers have been found equal."""
    for case, setting in settings(cases, min(events, SAMPLE), folder / "sample"):
        check_answers(case, setting)
    for case, setting in settings(cases, events, folder / "full"):
        yield measure(case, setting)


def settings(cases: Sequence[Case], events: int, folder: Path) -> Iterator[tuple[Case, Setting]]:
    """Yield each case with its setting; cases over the same events share one."""
    made: dict[tuple[str, int], Setting] = {}
    for case in cases:
        count = case.over(events)
        key = (case.traffic.name, count)
        if key not in made:
            made[key] = Setting(case.traffic.events(count), folder / f"{len(made)}")
        yield case, made[key]


if __name__ == "__main__":
    sys.exit(main())
