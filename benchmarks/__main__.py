"""`python -m benchmarks`: check every answer, time everybody, write the table."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from benchmarks.algebra.cases import MANY as MANY_OF_ALGEBRA
from benchmarks.algebra.report import ALGEBRA_CASES, run_algebra
from benchmarks.cases import Case
from benchmarks.data import EVENTS
from benchmarks.errands import all_cases
from benchmarks.following import APPENDS, run_following
from benchmarks.guard import MismatchError, check_answers
from benchmarks.index.data import CRIME, CRIME_EVENTS, NOISY_EVENTS, READINGS, Built, Dataset
from benchmarks.index.patterns import Answered, answered
from benchmarks.index.queries import Series, all_series
from benchmarks.index.report import HOW_TO_READ_INDEX, Report, buildings
from benchmarks.index.windows import EVENTS as EVENTS_OF_WINDOWS
from benchmarks.index.windows import run_windows
from benchmarks.keys import KEYS, run_keys
from benchmarks.measure import Outcome, measure
from benchmarks.pages import INDEX, PATTERNS, QUERIES, STORE, write_section
from benchmarks.patterns.cases import PATTERN_CASES, PatternCase
from benchmarks.patterns.setting import MANY as MANY_OF_PATTERNS
from benchmarks.patterns.setting import PatternSetting, PatternSizes
from benchmarks.promises import figures_of
from benchmarks.race import Finding
from benchmarks.report import (
    HOW_TO_READ,
    HOW_TO_READ_STORE,
    Chosen,
    Machine,
    as_table,
    chosen,
    patterns_section,
    queries_section,
    store_section,
)
from benchmarks.setting import Setting
from benchmarks.sharing.periodic import DAY_S, SECONDS, PeriodicSizes, run_periodic
from benchmarks.sharing.periodic import QUERIES as PERIODIC_QUERIES
from benchmarks.sharing.predicates import CONDITIONS, run_predicates
from benchmarks.sharing.sets.report import SUBSCRIPTIONS, run_sets
from benchmarks.sharing.windows import EVENTS as EVENTS_OF_SHARED_WINDOWS
from benchmarks.sharing.windows import run_shared_windows
from benchmarks.situations.report import (
    SITUATION_CASES,
    run_situations,
    situation_setting,
)
from benchmarks.situations.setting import MANY as MANY_OF_SITUATIONS
from benchmarks.standing.report import (
    STANDING_CASES,
    run_standing,
    standing_setting,
)
from benchmarks.standing.setting import MANY as MANY_OF_STANDING
from benchmarks.store.cases import StoreCase
from benchmarks.store.paper import all_store_cases
from benchmarks.store.setting import MANY, Sizes, StoreSetting
from benchmarks.xml.feeds import ITEMS as JOINED_ITEMS
from benchmarks.xml.paths import ITEMS, run_paths
from benchmarks.xml.report import MANY as XML_QUERIES
from benchmarks.xml.report import XmlSizes, run_xml_joins

SAMPLE = 20_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases asked for; 1 if answers differ, so that nothing is reported."""
    asked = parsed(arguments)
    cases = asked_for(asked, "queries", all_cases())
    store_cases = chosen_of_store(asked.only) if asked.part in {"all", "store"} else []
    pattern_cases = asked_for(asked, "patterns", PATTERN_CASES)
    unnamed = parts_without_names(asked)
    series = chosen_of_index(asked) if asked.part in {"all", "index"} else []
    situation_cases = asked_for(asked, "situations", SITUATION_CASES)
    standing_cases = asked_for(asked, "standing", STANDING_CASES)
    algebra_cases = asked_for(asked, "algebra", ALGEBRA_CASES)
    others = bool(series or situation_cases or standing_cases or algebra_cases)
    others = others or bool(unnamed)
    screen, machine = Console(highlight=False), Machine.here()
    write = not asked.only and not asked.no_write
    # Without a terminal there is no width to fit into.
    screen.width = screen.width if screen.is_terminal else 160
    if not (cases or store_cases or pattern_cases or others):
        screen.print(f"no case is called {asked.only!r}; there are:", *all_names(), sep="\n")
        return 2
    screen.print(str(machine))
    try:
        with tempfile.TemporaryDirectory(prefix="eventide-bench-", dir=asked.folder) as folder:
            if cases:
                run_queries(cases, asked, Path(folder), screen, machine)
            if store_cases:
                run_store(store_cases, asked, Path(folder), screen, machine)
            if pattern_cases:
                run_patterns(pattern_cases, asked, Path(folder), screen, machine)
            if series:
                run_index(series, asked, Path(folder), screen, machine)
            if "windows" in unnamed:
                run_windows(Path(folder), screen, machine, asked.window_events, write=write)
            if situation_cases:
                place, rivals = Path(folder) / "situations", rivals_of(asked)
                setting = situation_setting(asked.situation_events, place, rivals)
                run_situations(situation_cases, setting, screen, machine, write=write)
            if standing_cases:
                place, rivals = Path(folder) / "standing", rivals_of(asked)
                there = standing_setting(asked.standing_events, place, rivals)
                run_standing(standing_cases, there, screen, machine, write=write)
            if algebra_cases:
                run_algebra(algebra_cases, asked.algebra_events, screen, machine, write=write)
            if "following" in unnamed:
                run_following(Path(folder), screen, machine, asked.appends, write=write)
            if "keys" in unnamed:
                run_keys(screen, machine, asked.keys, write=write)
            run_sharing(unnamed, asked, screen, machine, write=write)
    except MismatchError as mismatch:
        screen.print(f"stopped, nothing is written: {mismatch}", style="bold red")
        return 1
    return 0


def run_sharing(
    parts: Collection[str],
    asked: argparse.Namespace,
    screen: Console,
    machine: Machine,
    *,
    write: bool,
) -> None:
    """Run the parts about many queries, and report."""
    if "shared-windows" in parts:
        run_shared_windows(screen, machine, asked.shared_events, write=write)
    if "predicates" in parts:
        run_predicates(screen, machine, asked.conditions, write=write)
    if "sets" in parts:
        run_sets(screen, machine, asked.subscriptions, rivals_of(asked), write=write)
    if "periodic" in parts:
        sizes = PeriodicSizes(asked.periodic_queries, asked.periodic_before, SECONDS)
        run_periodic(screen, machine, sizes, write=write)
    if "xml" in parts:
        run_paths(screen, machine, asked.items, write=write)
    if "xml-joins" in parts:
        most = XmlSizes(asked.joined_queries, asked.joined_items)
        run_xml_joins(screen, machine, most, write=write)


def parts_without_names(asked: argparse.Namespace) -> set[str]:
    """Return the parts to run whose cases have no names."""
    parts = (
        "windows",
        "keys",
        "following",
        "shared-windows",
        "predicates",
        "sets",
        "periodic",
        "xml",
        "xml-joins",
    )
    return {part for part in parts if asked.part in {"all", part} and not asked.only}


def all_names() -> list[str]:
    """Return the names of all cases."""
    named = (all_cases(), all_store_cases(), PATTERN_CASES, all_series(1), SITUATION_CASES)
    return [case.name for cases in (*named, STANDING_CASES, ALGEBRA_CASES) for case in cases]


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parts = ["all", "queries", "store", "patterns", "windows", "index", "situations", "standing"]
    parts += ["algebra", "keys", "following", "shared-windows", "predicates", "sets", "periodic"]
    parts += ["xml", "xml-joins"]
    parser.add_argument("part", nargs="?", choices=parts, default="all")
    parser.add_argument("--events", type=int, default=EVENTS, help="of a query (%(default)s)")
    parser.add_argument(
        "--store-events", type=int, default=MANY, help="most of the store's cases (%(default)s)"
    )
    parser.add_argument(
        "--pattern-events", type=int, default=MANY_OF_PATTERNS, help="most of a pattern's"
    )
    parser.add_argument(
        "--window-events", type=int, default=EVENTS_OF_WINDOWS, help="of windows (%(default)s)"
    )
    parser.add_argument(
        "--index-events", type=int, default=NOISY_EVENTS, help="of the index cases (%(default)s)"
    )
    parser.add_argument(
        "--index-queries", type=int, default=10, help="of a series of the index (%(default)s)"
    )
    parser.add_argument(
        "--situation-events", type=int, default=MANY_OF_SITUATIONS, help="most of a situation's"
    )
    parser.add_argument(
        "--standing-events", type=int, default=MANY_OF_STANDING, help="of a standing query's stream"
    )
    parser.add_argument(
        "--algebra-events", type=int, default=MANY_OF_ALGEBRA, help="of the templates of CEL"
    )
    parser.add_argument(
        "--shared-events", type=int, default=EVENTS_OF_SHARED_WINDOWS, help="of shared windows"
    )
    parser.add_argument("--conditions", type=int, default=CONDITIONS, help="most of an index")
    parser.add_argument("--subscriptions", type=int, default=SUBSCRIPTIONS, help="of a set")
    parser.add_argument("--appends", type=int, default=APPENDS, help="that are followed")
    parser.add_argument(
        "--periodic-queries", type=int, default=PERIODIC_QUERIES, help="of a set of dashboards"
    )
    parser.add_argument(
        "--periodic-before", type=int, default=DAY_S, help="seconds that fill their windows"
    )
    parser.add_argument("--items", type=int, default=ITEMS, help="of feeds, which are XML")
    parser.add_argument("--joined-queries", type=int, default=XML_QUERIES, help="over XML")
    parser.add_argument("--joined-items", type=int, default=JOINED_ITEMS, help="of a feed")
    parser.add_argument("--keys", type=int, default=KEYS, help="that come and go (%(default)s)")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="where the index cases keep their streams"
    )
    parser.add_argument("--folder", type=Path, help="where to work; 25 GB for all of the store")
    parser.add_argument("--only", metavar="NAME", help="cases whose name has this in it; no file")
    parser.add_argument("--no-spark", action="store_true", help="leave out the cases on Spark")
    parser.add_argument("--no-write", action="store_true", help="leave the results as they are")
    return parser.parse_args(arguments)


def asked_for(asked: argparse.Namespace, part: str, cases: Sequence[Chosen]) -> list[Chosen]:
    """Return the cases of a part to run."""
    if asked.part not in {"all", part}:
        return []
    return chosen(cases, asked.only, spark=not asked.no_spark)


def chosen_of_store(only: str | None) -> list[StoreCase]:
    """Return the store's cases to run."""
    return [case for case in all_store_cases() if only is None or only in case.name]


def chosen_of_index(asked: argparse.Namespace) -> list[Series]:
    """Return the series of queries through the index to run."""
    series = all_series(asked.index_queries)
    return [each for each in series if asked.only is None or asked.only in each.name]


def run_queries(
    cases: Sequence[Case],
    asked: argparse.Namespace,
    folder: Path,
    screen: Console,
    machine: Machine,
) -> None:
    """Run the cases that are queries, and report."""
    screen.print(f"{asked.events:,} events, {len(cases)} cases. {HOW_TO_READ}")
    outcomes: list[Outcome] = []
    for outcome in run(cases, asked.events, folder):
        outcomes += outcome
        screen.print(as_table(outcome))
    screen.print(as_table(outcomes))
    if not asked.only and not asked.no_write:
        details = queries_section(outcomes, asked.events, machine)
        path = write_section(QUERIES, details, figures_of(outcomes))
        screen.print(f"written to {path}")


def run_store(
    cases: Sequence[StoreCase],
    asked: argparse.Namespace,
    folder: Path,
    screen: Console,
    machine: Machine,
) -> None:
    """Run the store's cases, and report."""
    events = asked.store_events
    screen.print(f"Up to {events:,} events, {len(cases)} cases. {HOW_TO_READ_STORE}")
    findings: list[Finding] = []
    setting = StoreSetting(Sizes(events), folder / "store")
    setting.touch_memory()
    for case in cases:
        found = [replace(finding, case=case.name) for finding in case.run(setting)]
        findings += found
        screen.print(as_table(found))
    setting.close()
    screen.print(as_table(findings))
    if not asked.only and not asked.no_write:
        details = store_section(findings, cases, events, machine)
        path = write_section(STORE, details, figures_of(findings))
        screen.print(f"written to {path}")


def run_patterns(
    cases: Sequence[PatternCase],
    asked: argparse.Namespace,
    folder: Path,
    screen: Console,
    machine: Machine,
) -> None:
    """Run the pattern cases, and report."""
    events = asked.pattern_events
    screen.print(f"Up to {events:,} events, {len(cases)} cases. {HOW_TO_READ_STORE}")
    setting = PatternSetting(PatternSizes(events), folder / "patterns", rivals_of(asked))
    findings: list[Finding] = []
    for case in cases:
        found = [replace(finding, case=case.name) for finding in case.run(setting)]
        findings += found
        screen.print(as_table(found))
    screen.print(as_table(findings))
    if not asked.only and not asked.no_write:
        details = patterns_section(findings, cases, events, setting.versions, machine)
        path = write_section(PATTERNS, details, figures_of(findings))
        screen.print(f"written to {path}")
    setting.close()


def rivals_of(asked: argparse.Namespace) -> Path:
    """Return where rivals are installed; kept for the next run, for it takes minutes."""
    return Path(asked.folder or tempfile.gettempdir()) / "eventide-bench-rivals"


def run_index(
    series: Sequence[Series],
    asked: argparse.Namespace,
    folder: Path,
    screen: Console,
    machine: Machine,
) -> None:
    """Run the queries through the index, and report."""
    sizes = {
        READINGS.name: asked.index_events,
        CRIME.name: min(CRIME_EVENTS, asked.index_events),
    }
    screen.print(f"Up to {asked.index_events:,} events, {len(series)} series. {HOW_TO_READ_INDEX}")
    kept = asked.keep or folder / "index"
    kept.mkdir(parents=True, exist_ok=True)
    built: dict[str, tuple[Dataset, Built]] = {}
    answers: dict[str, list[Answered]] = {}
    for each in series:
        dataset = each.dataset
        database, spent = dataset.built(kept, sizes[dataset.name])
        if dataset.name not in built:
            built[dataset.name] = dataset, spent
            screen.print(buildings(built).for_screen())
        answers[each.name] = list(answered(each, database))
        report = Report(built, [each], answers)
        screen.print(report.speeds().for_screen(), report.choices().for_screen())
    report = Report(built, series, answers)
    screen.print(report.speeds().for_screen(), report.choices().for_screen())
    screen.print(report.verdicts().for_screen())
    if not asked.only and not asked.no_write:
        path = write_section(INDEX, report.section(machine), report.figures())
        screen.print(f"written to {path}")


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
