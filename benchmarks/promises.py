"""Promises: the targets of a case against one rival, and whether they are met."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.measure import Outcome
from benchmarks.race import Finding, Target, at_least


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure that has to meet a target: a ratio, or without a rival a number of seconds or so."""

    case: str
    eventide: str
    rival: str
    target: Target
    value: float
    met: bool

    def __str__(self) -> str:
        if self.rival:
            return self.target.shown(self.value, 2, "f")
        return self.target.shown(self.value, 3, "g")


VERDICT = ("Case", "What", "Against", "Target", "Found", "Met")


def verdict(each: Figure) -> tuple[str, ...]:
    """Return the row of a figure."""
    mark = "✓" if each.met else "✗"
    return (each.case, each.eventide, each.rival, str(each.target), str(each), mark)


@dataclass(frozen=True, slots=True)
class Promise:
    """The figures of one case that have the same rival and the same target."""

    figures: tuple[Figure, ...]

    @property
    def met(self) -> bool:
        """Whether all figures meet the target."""
        return all(each.met for each in self.figures)

    def cells(self) -> tuple[str, ...]:
        """Return its row of a table: the least and the most of what was found."""
        first = self.figures[0]
        names = list(dict.fromkeys(each.eventide for each in self.figures))
        in_order = [str(each) for each in sorted(self.figures, key=lambda each: each.value)]
        return (
            first.case,
            names[0] if len(names) == 1 else f"{len(names)} figures",
            first.rival,
            str(first.target),
            " to ".join(dict.fromkeys([in_order[0], in_order[-1]])),
            self.verdict(),
        )

    def verdict(self) -> str:
        """Return ✓, or ✗ and how many figures meet the target if some do."""
        met = sum(each.met for each in self.figures)
        if self.met:
            return "✓"
        return f"✗ {met} of {len(self.figures)} met" if met else "✗"


def promises(figures: Iterable[Figure]) -> list[Promise]:
    """Return the promises that figures are about, in the order of their first figures."""
    grouped: dict[tuple[str, str, Target], list[Figure]] = {}
    for each in figures:
        grouped.setdefault((each.case, each.rival, each.target), []).append(each)
    return [Promise(tuple(group)) for group in grouped.values()]


def figures_of(outcomes: Iterable[Outcome | Finding]) -> list[Figure]:
    """Return the figures that have a target."""
    found = (outcome_figure(o) if isinstance(o, Outcome) else finding_figure(o) for o in outcomes)
    return [each for each in found if each is not None]


def outcome_figure(outcome: Outcome) -> Figure | None:
    """Return the ratio of a duel, if it has a target."""
    duel, ratio, met = outcome.duel, outcome.ratio, outcome.met
    if duel.rival is None or duel.least is None or ratio is None or met is None:
        return None
    target = at_least(round(duel.least, 2))
    return Figure(outcome.case.name, duel.eventide.name, duel.rival.name, target, ratio, met)


def finding_figure(finding: Finding) -> Figure | None:
    """Return the ratio of a finding, or its number where there is no rival, if it has a target."""
    if finding.target is None or finding.met is None:
        return None
    value = finding.ours if finding.ratio is None else finding.ratio
    return Figure(finding.case, finding.eventide, finding.rival, finding.target, value, finding.met)
