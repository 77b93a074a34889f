"""Run the situation cases, and write what they found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.pages import SITUATIONS, write_section
from benchmarks.promises import figures_of
from benchmarks.race import ROUNDS, Finding
from benchmarks.report import (
    HOW_TO_READ_STORE,
    Machine,
    as_table,
    facts,
    run_in_turn,
    table_lines,
)
from benchmarks.situations.cases import RIVAL_CASES, SituationCase
from benchmarks.situations.joins import OTHER_CASES
from benchmarks.situations.orders import ORDER_CASES
from benchmarks.situations.paper import PAPER_CASES
from benchmarks.situations.setting import SituationSetting, SituationSizes
from benchmarks.situations.streams import STREAM_CASES
from benchmarks.situations.windows import WINDOW_CASES

SITUATION_CASES = (
    *RIVAL_CASES,
    *WINDOW_CASES,
    *STREAM_CASES,
    *PAPER_CASES,
    *ORDER_CASES,
    *OTHER_CASES,
)


def run_situations(
    cases: Sequence[SituationCase],
    setting: SituationSetting,
    screen: Console,
    machine: Machine,
    *,
    write: bool,
) -> None:
    """Run the cases, and report."""
    events = setting.sizes.many
    screen.print(f"Up to {events:,} events, {len(cases)} cases. {HOW_TO_READ_STORE}")
    findings = run_in_turn(cases, setting, screen)
    setting.close()
    screen.print(as_table(findings))
    if write:
        details = situations_section(findings, cases, events, setting.versions, machine)
        path = write_section(SITUATIONS, details, figures_of(findings))
        screen.print(f"written to {path}")


def situation_setting(events: int, folder: Path, rivals: Path) -> SituationSetting:
    """Return where the cases run."""
    return SituationSetting(SituationSizes(events), folder, rivals)


def situations_section(
    findings: Sequence[Finding],
    cases: Sequence[SituationCase],
    events: int,
    versions: Mapping[str, str],
    machine: Machine,
) -> str:
    """Return the details about situations."""
    rivals = ", ".join(f"{name} {number}" for name, number in versions.items())
    lines = [
        *facts(machine),
        f"- Rivals in environments of their own: {rivals or 'none could be installed'}",
        f"- Events: up to {events:,}; cars on an expressway report once a second, and booleans "
        "hold for 10 to 100 s with gaps of 10 to 50 s; how many a case has is in the cases",
        f"- Seconds: median of {ROUNDS} rounds or more, warm, everybody in turn in one process; "
        "where a case says so the least of them, and where it has p50 and p99 one run",
        "- Every case compares rows, or where only counted numbers of matches, with a rival's, "
        "another way's, or a closed form's; a difference stops the run, and nothing is written. "
        "Some of it is over fewer events than are timed: drivers row by row over a sample (and "
        "numbers of rows over all), W3, W6 and W7 against the scan. What a process of its own, or "
        "events that arrive one by one have given is compared after it was timed, all else before",
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
