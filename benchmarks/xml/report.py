"""Joins of XML documents: the cases, and their page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from benchmarks.measure import collector_off
from benchmarks.pages import XML_JOINS, write_section
from benchmarks.promises import Figure, verdict
from benchmarks.race import Target, at_least, at_most
from benchmarks.report import Machine, facts
from benchmarks.sharing.windows import lines_of
from benchmarks.xml.feeds import ITEMS, FeedTimes, feed_values, path_s, timed_feed
from benchmarks.xml.joins import JoinTimes, Schema, check_joins, timed_joins

FLAT, NESTED = Schema("flat", 6), Schema("nested", 16, 4)
FEW, SOME, MANY = 10, 1_000, 100_000
WANTED = 100
LEAVES = (4, 12)
SKEWS = (0.0, 1.6)
EQUAL_VALUES = (2, 3, 4, 5)
FLAT_COUNTS = (10_000, 100_000)
HEADS = (
    *("Documents", "Queries", "most equal", "Zipf", "templates", "rows"),
    *("together µs", "joins", "each alone µs", "joins", "ratio"),
)
FEED_HEADS = ("Queries", "different", "views", "items", "rows of one", "s", "items/s")


@dataclass(frozen=True, slots=True)
class XmlSizes:
    """How much is measured."""

    queries: int = MANY
    items: int = ITEMS


@dataclass(frozen=True, slots=True)
class JoinsFound:
    """All that was measured."""

    counts: tuple[JoinTimes, ...]
    leaves: tuple[JoinTimes, ...]
    skews: tuple[JoinTimes, ...]
    equal: tuple[JoinTimes, ...]
    feeds: tuple[FeedTimes, ...]
    path_s: float

    @property
    def joins(self) -> tuple[JoinTimes, ...]:
        """All joins of pairs of documents."""
        return (*self.counts, *self.leaves, *self.skews, *self.equal)


def measured(sizes: XmlSizes) -> JoinsFound:
    """Measure all cases."""
    for schema in (FLAT, NESTED):
        check_joins(schema)
    counts = [min(count, sizes.queries) for count in (FEW, SOME, MANY)]
    some = min(SOME, sizes.queries)
    values = feed_values(sizes.items)
    feeds = [timed_feed(values, min(count, sizes.queries)) for count in FLAT_COUNTS]
    feeds.append(timed_feed(values, min(MANY, sizes.queries), view_entries=0))
    return JoinsFound(
        tuple(
            timed_joins(schema, count, most=4 if schema.fan else None)
            for schema in (FLAT, NESTED)
            for count in counts
        ),
        tuple(timed_joins(Schema("flat", leaves), some) for leaves in LEAVES),
        tuple(timed_joins(FLAT, some, skew=skew) for skew in SKEWS),
        tuple(timed_joins(NESTED, some, most=most) for most in EQUAL_VALUES),
        tuple(feeds),
        path_s(values, min(MANY, sizes.queries)),
    )


def figures(found: JoinsFound) -> list[Figure]:
    """Return what has to hold."""
    kept = []
    for each in found.counts:
        if each.queries > FEW:
            case = f"{each.queries:,} joins of {each.schema.name} documents"
            kept.append(_figure(case, "together", "each alone", at_least(WANTED), each.ratio))
    few, many = (each.joining_s[0] for each in found.leaves)
    name = f"{LEAVES[1]} leaves over {LEAVES[0]}"
    kept.append(_figure(name, "seconds, together", "", at_most(6), many / few))
    flat, large, without = found.feeds
    ratio = large.items_s / flat.items_s
    kept.append(
        _figure(
            f"{large.queries:,} queries over {flat.queries:,}", "speed", "", at_least(0.8), ratio
        )
    )
    ratio = without.join_s / large.join_s
    kept.append(_figure("feed items", "with views", "without", at_least(1), ratio))
    return kept


def _figure(case: str, ours: str, rival: str, target: Target, value: float) -> Figure:
    return Figure(case, ours, rival, target, value, target.met_by(value))


def run_xml_joins(screen: Console, machine: Machine, sizes: XmlSizes, *, write: bool) -> None:
    """Measure, and report."""
    with collector_off():
        found = measured(sizes)
    for row in (*(each.cells() for each in found.joins), *(each.cells() for each in found.feeds)):
        screen.print(" | ".join(row))
    screen.print(f"path stage: {found.path_s * 1e6:.1f} µs an item")
    if write:
        path = write_section(XML_JOINS, joins_section(found, machine), figures(found))
        screen.print(f"written to {path}")


def joins_section(found: JoinsFound, machine: Machine) -> str:
    """Return the details."""
    about = (
        "Microseconds of a processor for two documents with equal values leaf by leaf, the best of "
        "several rounds: of all queries together and of each by itself, with and without what "
        "documents cost that have no value in common. The ratio is of the times without. Rows are "
        "those of two documents before they are given to the queries that share them."
    )
    verdicts: Sequence[tuple[str, ...]] = [verdict(each) for each in figures(found)]
    what = ("Case", "What", "Against", "Target", "Found", "Met")
    join = found.feeds[1].join_s / found.feeds[1].items * 1e6
    lines = [
        *(*facts(machine), "", about, ""),
        *lines_of(HEADS, [each.cells() for each in found.joins]),
        *("", "Feed items, each joined with all before it; views are of so many entries:", ""),
        *lines_of(FEED_HEADS, [each.cells() for each in found.feeds]),
        "",
        f"The path stage takes {found.path_s * 1e6:.1f} µs an item, and the join {join:.1f} µs.",
        "",
        *lines_of(what, verdicts),
    ]
    return "\n".join(lines) + "\n"
