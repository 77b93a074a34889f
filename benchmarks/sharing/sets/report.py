"""Measure whole sets of live queries, and write their page."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from rich.console import Console

from benchmarks.guard import MismatchError
from benchmarks.pages import QUERY_SETS, write_section
from benchmarks.patterns.rivals import AbsentError
from benchmarks.promises import Figure, verdict
from benchmarks.race import Target, at_least, at_most
from benchmarks.report import Machine, facts
from benchmarks.sharing.sets import cayuga, deploying, usual
from benchmarks.sharing.sets.ratios import Ratio, ratios
from benchmarks.sharing.sets.rules import detection_rules
from benchmarks.sharing.sets.running import (
    BATCH,
    BATCHES,
    ROUNDS,
    QuerySet,
    Speed,
    alone,
    check_set,
    speed,
)
from benchmarks.sharing.sets.siddhi import VERSION, ask_siddhi, check_siddhi
from benchmarks.sharing.windows import LARGE, SMALL, lines_of
from eventide.errors import UnboundedStateWarning

SUBSCRIPTIONS = 400_000
RULES = 3_000
CHECKED, FEW_SYMBOLS = 30, 20

WHY = (
    "Events that only windows read wait until one of them ends, or until there are 65,536: a step "
    "for each thousand costs more than adding them up. Of a thousand windows one ends every few "
    "thousand events, and one alone every ten million: so it gains more from waiting.",
    "Of a thousand windows with keys many end in each second, with a row for each key; one window "
    "ends every ten seconds. Rows that are merged and written are most of the difference.",
    "Static conditions: each true condition of an event is a row, which is found, put in order, "
    "and written with the columns of the event. The index alone is in another section.",
    "With long windows (R13) there are many times as many rows, and each is written.",
)


@dataclass(frozen=True, slots=True)
class Case:
    """A set, how many queries of it are run, and the thousand events a second it has to take."""

    queries: QuerySet
    count: int
    wanted: float | None = None
    checked: QuerySet | None = None
    """Another set, of which also a few queries have rows to compare."""


def cases(most: int) -> list[Case]:
    """Return all cases, with up to so many queries."""
    windows = [
        Case(usual.windows(keyed=keyed, batch=batch), min(count, most), wanted)
        for keyed, least in ((False, 30_000), (True, 10_000))
        for batch in (SMALL, LARGE)
        for count, wanted in ((1, None), (1_000, least))
    ]
    rules = min(RULES, most)
    return [
        Case(usual.SELECTIONS, min(1_000, most), 1_000),
        Case(usual.SEQUENCES, min(1_000, most), 440),
        Case(usual.PATTERNS, min(10_000, most), 100, usual.patterns(FEW_SYMBOLS)),
        *(subscriptions(name, most, 50) for name in cayuga.TEMPLATES),
        subscriptions("static", most, 1_000),
        *windows,
        Case(detection_rules(rules), rules, 20, detection_rules(CHECKED)),
    ]


def subscriptions(name: str, count: int, wanted: float) -> Case:
    """Return the case of a template of the document."""
    checked = cayuga.template(name, domain=cayuga.SMALL_DOMAIN)
    return Case(cayuga.template(name), count, wanted, checked)


@dataclass(frozen=True, slots=True)
class Measured:
    """What was found of a case, and of each of its queries alone."""

    case: Case
    speed: Speed
    alone: float
    """Events a second if none shares, from some queries alone."""

    def cells(self) -> tuple[str, ...]:
        """Return its row of the table."""
        found = self.speed
        return (
            self.case.queries.name,
            f"{found.queries:,}",
            f"{found.events_s / 1e3:,.4g}",
            f"{found.rows:.3g}",
            f"{found.deployed_s:.2f}",
            f"{found.octets:,.0f}",
            f"{self.alone / 1e3:.3g}",
        )

    def figure(self) -> Figure | None:
        """Return what has to hold."""
        if self.case.wanted is None:
            return None
        value, target = self.speed.events_s / 1e3, at_least(self.case.wanted)
        name = f"{self.speed.queries:,} queries, K events/s"
        return Figure(name, self.case.queries.name, "", target, value, target.met_by(value))


def measured(all_cases: Sequence[Case]) -> Iterator[Measured]:
    """Check each set on few queries, then yield what was measured of it."""
    for case in all_cases:
        if not check_set(case.checked or case.queries, min(CHECKED, case.count)):
            message = f"{case.queries.name}: no query has a row to compare"
            raise MismatchError(message)
        yield Measured(case, speed(case.queries, case.count), alone(case.queries, case.count))


@dataclass
class Found:
    """What has been found so far."""

    sets: list[Measured] = field(default_factory=list)
    rivals: list[tuple[str, ...]] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)

    def all_figures(self) -> list[Figure]:
        """Return what has to hold."""
        of_sets = [each for each in (one.figure() for one in self.sets) if each is not None]
        return [*of_sets, *beside_one(self.sets), *self.figures]

    def write(self, machine: Machine) -> Path:
        """Write the page."""
        figures = self.all_figures()
        return write_section(QUERY_SETS, sets_section(self, figures, machine), figures)


def run_sets(screen: Console, machine: Machine, most: int, rivals: Path, *, write: bool) -> None:
    """Measure all sets, and report.

    It takes long, so the page is written after each step: a run that is stopped leaves one.
    """
    found = Found()
    # Templates of the document wait for ever: so does the rival.
    warnings.simplefilter("ignore", UnboundedStateWarning)
    for step in steps(found, most, rivals):
        screen.print(" | ".join(step))
        if write:
            found.write(machine)


def steps(found: Found, most: int, rivals: Path) -> Iterator[tuple[str, ...]]:
    """Yield a line of each step when it is done."""
    for each in measured(cases(most)):
        found.sets.append(each)
        yield each.cells()
        if each.case.queries in (usual.SELECTIONS, usual.SEQUENCES):
            row, figures = against_siddhi(each, rivals)
            found.rivals.append(row)
            found.figures += figures
            yield row
    for figure in changes(most):
        found.figures.append(figure)
        yield figure.case, figure.eventide, str(figure), str(figure.target)
    speeds = {each.case.queries.name: each.speed for each in found.sets}
    for ratio in ratios(most, speeds):
        found.ratios.append(ratio)
        yield ratio.cells()


def beside_one(found: Sequence[Measured]) -> Iterator[Figure]:
    """Yield how fast a thousand windows are beside one."""
    for one, many in pairwise(found):
        if one.case.queries.name == many.case.queries.name:
            value, target = many.speed.events_s / one.speed.events_s, at_least(0.9)
            case, what = f"{many.speed.queries:,} windows, speed", many.case.queries.name
            yield Figure(case, what, "one window", target, value, target.met_by(value))


def against_siddhi(ours: Measured, rivals: Path) -> tuple[tuple[str, ...], list[Figure]]:
    """Return what Siddhi does of a set, and how we compare."""
    queries, count = ours.case.queries, ours.speed.queries
    try:
        theirs = ask_siddhi(queries, count, rivals)
    except AbsentError as why:
        return (queries.name, f"{count:,}", str(why), "", "", ""), []
    check_siddhi(queries, count, theirs)
    ratio = ours.speed.events_s / theirs.events_s
    row = (
        *(queries.name, f"{count:,}", f"{theirs.events_s / 1e3:.3g}"),
        *(f"{ours.speed.events_s / 1e3:.4g}", f"{ratio:,.0f}", f"{theirs.deployed_s:.2f}"),
    )
    target, name = at_least(1), f"Siddhi {VERSION}"
    return row, [Figure(queries.name, "speed", name, target, ratio, target.met_by(ratio))]


def changes(most: int) -> Iterator[Figure]:
    """Yield what coming and going takes, and what a query takes."""

    def figure(case: str, what: str, value: float, target: Target) -> Figure:
        return Figure(case, what, "", target, value, target.met_by(value))

    count = min(deploying.DEPLOYED, most)
    case = f"{count:,} queries deployed"
    yield figure(case, "rows of a template, s", deploying.of_template(count), at_most(1))
    yield figure(case, "texts, s", deploying.of_texts(count), at_most(5))
    held, changed = min(deploying.HELD, most), min(deploying.CHANGED, most)
    for queries in (usual.selections(usual.MANY_SYMBOLS), usual.PATTERNS):
        found = deploying.churn(queries, held, changed)
        case = f"{changed:,} come and {changed:,} go, one by one, beside {held:,}, s"
        yield figure(case, queries.name, found.changes_s, at_most(1))
    for name, octets in deploying.row_octets(min(100_000, most)).items():
        yield figure("octets of a query beside its state", name, octets, at_most(150))


def sets_section(found: Found, figures: Sequence[Figure], machine: Machine) -> str:
    """Return the details."""
    about = (
        f"Whole sets through the engine that shares, without a store, in batches of {BATCH:,} "
        f"events unless it says otherwise: thousand events a second of one processor, the best of "
        f"up to {ROUNDS} rounds of {BATCHES} new batches; rows of an event; seconds to plan and "
        "add the queries; octets of a query with what operators remember; and thousand events a "
        "second if none shares, from some queries each alone. Of each set some queries have been "
        "compared with themselves alone, row by row."
    )
    heads = ("Set", "Queries", "K events/s", "rows", "added s", "octets", "none shares")
    against = (
        f"Siddhi {VERSION} (Java 17) has the same events in the same batches, and finds as many "
        "rows. Only the time of its thread that sends is counted. Thousand events a second:"
    )
    rival_heads = ("Set", "Queries", "Siddhi", "Eventide", "ratio", "Siddhi deployed s")
    document = "Ratios of the document, on its workloads as far as it says what they are:"
    ratio_heads = ("Ratio", "What", "Document", "Found")
    what = ("Case", "What", "Against", "Target", "Found", "Met")
    lines = [
        *(*facts(machine), "", about, "", *lines_of(heads, [each.cells() for each in found.sets])),
        *("", against, "", *lines_of(rival_heads, found.rivals)),
        *("", document, "", *lines_of(ratio_heads, [each.cells() for each in found.ratios])),
        *("", *lines_of(what, [verdict(each) for each in figures])),
        *("", "What falls short, and why:", "", *(f"- {each}" for each in WHY)),
        *("", "What each set asks:", ""),
        *dict.fromkeys(
            f"- **{each.case.queries.name}**: {each.case.queries.about}" for each in found.sets
        ),
    ]
    return "\n".join(lines) + "\n"
