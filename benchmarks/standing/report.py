"""Run the standing cases, and write what they found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.pages import STANDING, write_section
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
from benchmarks.standing.chains import CHAIN_CASES
from benchmarks.standing.frequent import FREQUENT_CASES
from benchmarks.standing.groups import GROUP_CASES
from benchmarks.standing.joins import JOIN_CASES
from benchmarks.standing.links import LINK_CASES
from benchmarks.standing.live import LIVE_CASES
from benchmarks.standing.rivals import RIVAL_CASES
from benchmarks.standing.setting import (
    SHORT_STEP_TUPLES,
    STEP_TUPLES,
    StandingCase,
    StandingSetting,
    StandingSizes,
)

STANDING_CASES = (
    *LINK_CASES,
    *JOIN_CASES,
    *CHAIN_CASES,
    *LIVE_CASES,
    *GROUP_CASES,
    *FREQUENT_CASES,
    *RIVAL_CASES,
)


def standing_setting(events: int, folder: Path, rivals: Path) -> StandingSetting:
    """Return where the cases run."""
    return StandingSetting(StandingSizes(events), folder, rivals)


def run_standing(
    cases: Sequence[StandingCase],
    setting: StandingSetting,
    screen: Console,
    machine: Machine,
    *,
    write: bool,
) -> None:
    """Run the cases, and report."""
    events = setting.sizes.many
    screen.print(f"Up to {events:,} events a stream, {len(cases)} cases. {HOW_TO_READ_STORE}")
    findings = run_in_turn(cases, setting, screen)
    setting.close()
    screen.print(as_table(findings))
    if write:
        details = standing_section(findings, cases, events, setting.versions, machine)
        path = write_section(STANDING, details, figures_of(findings))
        screen.print(f"written to {path}")


def standing_section(
    findings: Sequence[Finding],
    cases: Sequence[StandingCase],
    events: int,
    versions: Mapping[str, str],
    machine: Machine,
) -> str:
    """Return the details about standing queries."""
    rivals = ", ".join(f"{name} {number}" for name, number in versions.items())
    windows = StandingSizes(events).windows
    lines = [
        *facts(machine),
        f"- Rivals in environments of their own: {rivals or 'none could be installed'}",
        f"- Events: up to {events:,} of a stream. R1 to R7 are over made traffic, a tuple a unit "
        f"on each link, from 1,647 sources in bursts; windows are of {windows[0]:,} to "
        f"{windows[-1]:,} units, and {STEP_TUPLES:,} tuples come with a step "
        f"({SHORT_STEP_TUPLES:,} with windows shorter than two such steps). What is timed begins "
        "when windows are full, and the answer is kept in all executions",
        f"- Seconds: median of {ROUNDS} rounds, everybody in turn in one process, warm; of Spark, "
        "and of Flink in a process of its own, one after a run over a sample. With the two longest "
        f"windows, direct execution is timed over one step of {SHORT_STEP_TUPLES:,} tuples a round",
        "- Answers are compared before anything is timed, and again afterwards: row by row, of "
        "more than 100,000 rows by sums of what they hash to; joins without an answer by numbers "
        "of results. A difference stops the run, and nothing is written",
        "- Targets of R1 to R7 are what the document found with the longest window",
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
