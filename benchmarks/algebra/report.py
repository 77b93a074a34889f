"""Run the cases of CEL, and write what they found."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from benchmarks.algebra.cases import ALGEBRA_CASES, AlgebraCase, AlgebraSetting
from benchmarks.pages import ALGEBRA, write_section
from benchmarks.promises import figures_of
from benchmarks.race import ROUNDS
from benchmarks.report import (
    HOW_TO_READ_STORE,
    Machine,
    as_table,
    facts,
    run_in_turn,
    table_lines,
)

__all__ = ["ALGEBRA_CASES", "run_algebra"]


def run_algebra(
    cases: Sequence[AlgebraCase], events: int, screen: Console, machine: Machine, *, write: bool
) -> None:
    """Run the cases, and report."""
    screen.print(f"Up to {events:,} events, {len(cases)} cases. {HOW_TO_READ_STORE}")
    setting = AlgebraSetting(events)
    findings = run_in_turn(cases, setting, screen)
    screen.print(as_table(findings))
    if not write:
        return
    lines = [
        *facts(machine),
        f"- Events: {setting.uniform.num_rows:,} uniform ones with eight attributes for templates, "
        f"{setting.closes.num_rows:,} closes for double tops; made, in every run the same",
        f"- Seconds: median of {ROUNDS} rounds or more, everybody in turn in one process, warm",
        "- All formulations of double tops have given the same rows before anything is timed",
        "",
        HOW_TO_READ_STORE,
        "",
        *table_lines(findings),
        "",
        "What each case asks:",
        "",
        *(f"- **{case.name}**: {case.asked}" for case in cases),
    ]
    path = write_section(ALGEBRA, "\n".join(lines) + "\n", figures_of(findings))
    screen.print(f"written to {path}")
