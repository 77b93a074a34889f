"""Items of feeds through 10,000 distinct paths at once, against lxml, which tries each path.

Each item is a document of its own, of some 700 bytes and 14 nodes. Paths have two to five steps of
`/` and `//`, over 16 names of feeds, of which 10 occur, and `*`. lxml has each path compiled and
each document parsed once, and its nodes have to be the same. Seconds are those of the processor, on
one core.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from lxml import etree
from rich.console import Console

from benchmarks.guard import MismatchError
from benchmarks.measure import collector_off
from benchmarks.pages import XML, write_section
from benchmarks.promises import Figure
from benchmarks.race import Target, at_least
from benchmarks.report import Machine, as_line, facts
from eventide.documents.read import read_documents
from eventide.lang.xscl.parse import parse_pattern
from eventide.operators.xml.asked import AskedPattern
from eventide.operators.xml.stage import PathStage

ITEMS = 225_000
PATHS = 10_000
AT_ONCE = 1_000
SAMPLE = 30
"""So many items are searched by lxml; what all would take is found from these."""
ITEMS_A_SECOND = 15_000.0
TIMES_LXML = 100.0
NAMES = (
    *("rss", "channel", "item", "title", "link", "author", "category", "description", "pubDate"),
    *("guid", "enclosure", "image", "comments", "ttl", "language", "source", "*"),
)


def item(number: int) -> bytes:
    """Return an item of a feed."""
    draw = random.Random(number)
    channel, words = number % 418, " ".join(f"word{draw.randrange(5_000)}" for _ in range(40))
    return (
        f"<rss version='2.0'><channel><title>Channel {channel}</title>"
        f"<link>http://c{channel}.example/</link><item><title>News {draw.randrange(9_999)}</title>"
        f"<link>http://c{channel}.example/{number}</link><author>writer {number % 997}</author>"
        f"<category>{number % 13}</category><description>&lt;p&gt;{words}&lt;/p&gt;</description>"
        f"<pubDate>Mon, 02 Mar 2026 08:00:00 GMT</pubDate><guid>{number}</guid></item>"
        "</channel></rss>"
    ).encode()


def distinct_paths(count: int) -> list[str]:
    """Return paths, at random."""
    draw, found = random.Random(1), dict[str, None]()
    while len(found) < count:
        steps = (draw.choice(("/", "//")) + draw.choice(NAMES) for _ in range(draw.randint(2, 5)))
        found["".join(steps)] = None
    return list(found)


@dataclass(frozen=True, slots=True)
class PathsMeasured:
    """What the items take."""

    items: int
    paths: int
    built_s: float
    read_s: float
    """Seconds to parse all items."""
    found_s: float
    """Seconds for all paths in what was parsed."""
    nodes: int
    lxml_s: float
    """Seconds of lxml, as found from some items."""

    @property
    def items_a_second(self) -> float:
        """How many items go through the stage in a second."""
        return self.items / (self.read_s + self.found_s)


def nodes_by_path(stage: PathStage, items: Sequence[bytes]) -> Counter[int]:
    """Return how many nodes each path has in some items."""
    found: Counter[int] = Counter()
    for part in stage.find(items):
        numbers, places = np.unique(part.view, return_inverse=True)
        counts = np.bincount(places, part.count).astype(int)
        found.update(dict(zip(numbers.tolist(), counts.tolist(), strict=True)))
    return found


def lxml_seconds(paths: Sequence[str], items: Sequence[bytes]) -> tuple[float, Counter[int]]:
    """Return the seconds of lxml for some items, and how many nodes each path has."""
    compiled = [etree.XPath(path) for path in paths]
    found: Counter[int] = Counter()
    began = time.process_time()
    for each in items:
        tree = etree.fromstring(each).getroottree()
        for number, path in enumerate(compiled):
            nodes = path(tree)
            if nodes:
                found[number] += len(nodes)
    return time.process_time() - began, found


def measured(items: int, paths: int, sample: int) -> PathsMeasured:
    """Measure; an error if lxml finds other nodes."""
    written = distinct_paths(paths)
    began = time.process_time()
    roots = [parse_pattern(f"feeds{path}->x").pattern.root for path in written]
    stage = PathStage([AskedPattern.of_variables(root) for root in roots])
    built_s = time.process_time() - began
    some = [item(number) for number in range(sample)]
    lxml_s, expected = lxml_seconds(written, some)
    if nodes_by_path(stage, some) != expected:
        message = "lxml finds other nodes"
        raise MismatchError(message)
    read_s = found_s = 0.0
    nodes = 0
    for first in range(0, items, AT_ONCE):
        given = [item(number) for number in range(first, min(items, first + AT_ONCE))]
        began = time.process_time()
        tree = read_documents(given)
        read = time.process_time()
        nodes += sum(len(part.nodes) for part in stage.find_in(tree))
        read_s, found_s = read_s + read - began, found_s + time.process_time() - read
    return PathsMeasured(
        items, paths, built_s, read_s, found_s, nodes, lxml_s * items / max(1, sample)
    )


def figures(found: PathsMeasured) -> list[Figure]:
    """Return what has to hold."""
    case = f"{found.paths:,} paths"
    times = found.lxml_s / (found.read_s + found.found_s)
    return [
        _figure(f"{case}, items/s", "", at_least(ITEMS_A_SECOND), found.items_a_second),
        _figure(f"{case}, time", "lxml, each path", at_least(TIMES_LXML), times),
    ]


def _figure(case: str, rival: str, target: Target, value: float) -> Figure:
    return Figure(case, "one automaton", rival, target, value, target.met_by(value))


def lines(found: PathsMeasured) -> Iterator[tuple[str, str]]:
    """Yield what was measured, in words."""
    yield "items", f"{found.items:,}"
    yield "paths", f"{found.paths:,}"
    yield "s to read and combine the paths", f"{found.built_s:.2f}"
    yield "µs an item, parsing", f"{found.read_s / found.items * 1e6:.1f}"
    yield "µs an item, all paths", f"{found.found_s / found.items * 1e6:.1f}"
    yield "µs an item, lxml", f"{found.lxml_s / found.items * 1e6:,.0f}"
    yield "items a second", f"{found.items_a_second:,.0f}"
    yield "nodes found an item", f"{found.nodes / found.items:,.0f}"


def run_paths(screen: Console, machine: Machine, items: int, *, write: bool) -> None:
    """Measure, and report."""
    with collector_off():
        found = measured(items, PATHS, SAMPLE)
    for what, value in lines(found):
        screen.print(f"{what}: {value}")
    if write:
        details = paths_section(found, machine)
        screen.print(f"written to {write_section(XML, details, figures(found))}")


def paths_section(found: PathsMeasured, machine: Machine) -> str:
    """Return the details."""
    assert __doc__ is not None
    about = " ".join(__doc__.partition("\n\n")[2].split())
    table = [as_line(("What", "Found")), as_line((":--", "--:")), *map(as_line, lines(found))]
    heads, rules = (
        ("Case", "Against", "Target", "Found", "Met"),
        (":--", ":--", "--:", "--:", ":--"),
    )
    verdicts = [
        as_line((each.case, each.rival, str(each.target), str(each), "✓" if each.met else "✗"))
        for each in figures(found)
    ]
    parts = (about, "", *table, "", as_line(heads), as_line(rules), *verdicts, "")
    return "\n".join([*facts(machine), "", *parts])
