"""The table on the screen, and the same as Markdown, with when and where it was measured."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Protocol, TypeVar

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.measure import JVM_WARM_UPS, LEAST_ROUNDS, MOST_ROUNDS, Outcome, Timing
from benchmarks.patterns.cases import PatternCase
from benchmarks.patterns.data import KEYS
from benchmarks.race import ROUNDS, Finding, at_least
from benchmarks.store.cases import StoreCase

PACKAGES = ("eventide", "duckdb", "polars", "pyspark", "pyarrow", "numba", "numpy")
HEADINGS = ("Case", "Eventide", "s", "M events/s", "Rival", "s", "Ratio", "Target", "")
RIGHT = ("s", "M events/s", "Ratio", "Target")
HOW_TO_READ = (
    "A ratio is the rival's time over Eventide's, so higher is better: 2 means that Eventide "
    "needs half the time. A target is the least ratio that has to hold."
)
HOW_TO_READ_STORE = (
    "A ratio is the rival's time over Eventide's, and a target of ≥ the least that has to hold. "
    "With a target of ≤ it is Eventide's over the rival's, or where there is no rival, the seconds."
)

Setting_contra = TypeVar("Setting_contra", contravariant=True)


class Case(Protocol[Setting_contra]):
    """Something asked, and how it is checked and measured where it runs."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def run(self) -> Callable[[Setting_contra], list[Finding]]:
        """How it is checked and measured."""
        ...


class LeftOut(Protocol):
    """A case that may be left out: by its name, or where there is no Spark."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def spark(self) -> bool:
        """Whether it needs Spark."""
        ...


Chosen = TypeVar("Chosen", bound=LeftOut)


def chosen(cases: Iterable[Chosen], only: str | None, *, spark: bool) -> list[Chosen]:
    """Return the cases to run: those whose name has `only` in it, and with Spark if it is there."""
    kept = [case for case in cases if spark or not case.spark]
    return [case for case in kept if only is None or only in case.name]


@dataclass(frozen=True, slots=True)
class Machine:
    """Where a run took place."""

    processor: str
    cores: int
    memory_gb: float
    load: float

    @classmethod
    def here(cls) -> Machine:
        """Return this machine, as busy as it is now."""
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
        return cls(processor_name(), os.cpu_count() or 1, memory, os.getloadavg()[0])

    def __str__(self) -> str:
        system = f"{platform.system()}, Python {platform.python_version()}"
        return (
            f"{self.processor}, {self.cores} cores, {self.memory_gb:.0f} GiB, {system}; "
            f"load {self.load:.1f} before the run"
        )


def processor_name() -> str:
    """Return the model of the processor, as the system names it."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def cells(outcome: Outcome | Finding) -> tuple[str, ...]:
    """Return one row of the table."""
    if isinstance(outcome, Finding):
        return outcome.cells()
    duel, ratio = outcome.duel, outcome.ratio
    shown_ratio = "" if ratio is None else f"{ratio:.2f}"
    if ratio is not None and duel.least is not None:
        shown_ratio = at_least(round(duel.least, 2)).shown(ratio, 2, "f")
    return (
        outcome.case.name,
        duel.eventide.name,
        shown(outcome.eventide),
        f"{outcome.events / outcome.eventide.median / 1e6:.2f}" if outcome.case.has_speed else "",
        "" if duel.rival is None else duel.rival.name,
        "" if outcome.rival is None else shown(outcome.rival),
        shown_ratio,
        "" if duel.least is None else f"{duel.least:.2f}",
        {True: "✓", False: "✗", None: ""}[outcome.met],
    )


def shown(timing: Timing) -> str:
    """Return seconds with as many digits as mean something."""
    return f"{timing.median:.3g}"


def as_table(outcomes: Iterable[Outcome | Finding]) -> Table:
    """Return the outcomes for the screen, one block a case."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for heading in HEADINGS:
        table.add_column(heading, justify="right" if heading in RIGHT else "left", no_wrap=True)
    before = ""
    for outcome in outcomes:
        name, *rest = cells(outcome)
        if before and name != before:
            table.add_section()
        style = {True: "green", False: "bold red", None: None}[outcome.met]
        table.add_row("" if name == before else name, *rest, style=style)
        before = name
    return table


def queries_section(outcomes: Sequence[Outcome], events: int, machine: Machine) -> str:
    """Return the details about queries."""
    asked = dict.fromkeys((o.case.name, o.case.asked, o.case.traffic.name) for o in outcomes)
    lines = [
        *facts(machine),
        f"- Events: {events:,}, unless a case says less",
        f"- Seconds: median of {LEAST_ROUNDS} to {MOST_ROUNDS} rounds, everybody in turn in one "
        f"process, after one warm-up ({1 + JVM_WARM_UPS} on Spark)",
        "",
        HOW_TO_READ,
        "",
        *table_lines(outcomes),
        "",
        "What each case asks:",
        "",
        *(f"- **{name}** ({traffic}): {what}" for name, what, traffic in asked),
    ]
    return "\n".join(lines) + "\n"


def store_section(
    findings: Sequence[Finding], cases: Sequence[StoreCase], events: int, machine: Machine
) -> str:
    """Return the details about the store."""
    lines = [
        *facts(machine),
        f"- Events: up to {events:,} of 80 bytes; how many a case has is in "
        "benchmarks/store/setting.py",
        f"- Seconds: median of {ROUNDS} rounds or more, everybody in turn in one process; all "
        "readers warm, and before each writer the disk is idle",
        "",
        HOW_TO_READ_STORE,
        "",
        *table_lines(findings),
        "",
        "What each case asks:",
        "",
        *(f"- **{case.name}**: {case.asked}" for case in cases),
    ]
    return "\n".join(lines) + "\n"


def patterns_section(
    findings: Sequence[Finding],
    cases: Sequence[PatternCase],
    events: int,
    versions: Mapping[str, str],
    machine: Machine,
) -> str:
    """Return the details about patterns."""
    rivals = ", ".join(f"{name} {number}" for name, number in versions.items())
    lines = [
        *facts(machine),
        f"- Rivals in environments of their own: {rivals or 'none could be installed'}",
        f"- Events: up to {events:,} of {KEYS} keys, in order of time",
        f"- Seconds: median of {ROUNDS} rounds, warm; of a rival in a process of its own the best "
        "of one or two, after a run over a sample, whose rows were Eventide's",
        "",
        HOW_TO_READ_STORE,
        "",
        *table_lines(findings),
        "",
        "What each case asks:",
        "",
        *(f"- **{case.name}**: {case.asked}" for case in cases),
    ]
    return "\n".join(lines) + "\n"


def facts(machine: Machine) -> list[str]:
    """Return when and where a run took place."""
    return [
        f"- Date: {datetime.now().astimezone():%Y-%m-%d %H:%M %Z}",
        f"- Machine: {machine}",
        f"- Versions: {', '.join(f'{name} {version(name)}' for name in PACKAGES)}",
    ]


def table_lines(outcomes: Iterable[Outcome | Finding]) -> list[str]:
    """Return the table as Markdown."""
    rules = ["--:" if heading in RIGHT else ":--" for heading in HEADINGS]
    return [as_line(HEADINGS), as_line(rules), *(as_line(cells(each)) for each in outcomes)]


def as_line(row: Iterable[str]) -> str:
    """Return one line of a Markdown table."""
    return f"| {' | '.join(row)} |"


def run_in_turn(
    cases: Sequence[Case[Setting_contra]], setting: Setting_contra, screen: Console
) -> list[Finding]:
    """Run cases one after the other, and show what each has found."""
    findings: list[Finding] = []
    begun = time.monotonic()
    for number, case in enumerate(cases, 1):
        screen.print(f"{number} of {len(cases)}: {case.name} …")
        start = time.monotonic()
        found = [replace(finding, case=case.name) for finding in case.run(setting)]
        findings += found
        screen.print(as_table(found))
        now = time.monotonic()
        screen.print(f"{case.name}: {now - start:.0f} s, {now - begun:.0f} s since the start")
    return findings
