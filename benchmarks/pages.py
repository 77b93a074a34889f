"""The files that are written: a page for each section, and results.md over all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.promises import Figure, promises

HERE = Path(__file__).parent
PROMISE_HEADINGS = ("Case", "Eventide", "Rival", "Target", "Found", "Met")
RIGHT = ("Target", "Found")
PROMISES, DETAILS = "\n## Promises\n", "\n## Details\n"
HOW_TO_READ_PROMISES = (
    "A promise is a target that a case has to meet against one rival. With a target of ≥, what was "
    "found is the rival's time over Eventide's; with ≤, Eventide's over the rival's, or without a "
    "rival a number of seconds, or what the section says. Where a case has several figures, the "
    "least and the most are shown, and all of them have to meet the target."
)


@dataclass(frozen=True, slots=True)
class Section:
    """Benchmarks that are run together, and have a page."""

    title: str
    file: str
    about: str

    def path(self, place: Path = HERE) -> Path:
        """Return the file of its page."""
        return place / "results" / self.file


QUERIES = Section(
    "Queries", "queries.md", "windows in SQL against DuckDB, Polars and Spark SQL; live queries"
)
STORE = Section(
    "Store", "store.md", "ingest, scans, late events, range aggregates and recovery of the store"
)
PATTERNS = Section(
    "Patterns", "patterns.md", "`MATCH_RECOGNIZE` against pandas-match-recognize, Flink and Spark"
)
WINDOWS = Section(
    "Windows from the index", "windows.md", "hopping windows through the index against replay"
)
INDEX = Section(
    "Index", "index.md", "row patterns through the index against replay, and how good the choice is"
)
SITUATIONS = Section(
    "Situations", "situations.md", "temporal patterns against DuckDB, Flink and scans"
)
STANDING = Section(
    "Standing queries",
    "standing.md",
    "joins, distinct rows, negation and groups over windows, in three executions, and against "
    "Spark and Flink",
)
ALGEBRA = Section(
    "CEL", "algebra.md", "sequences and iterations of CEL, one query each, and double tops"
)
KEYS = Section(
    "Ever-new keys", "keys.md", "time and memory of live queries over a million keys; no rival"
)
FOLLOWING = Section(
    "Following", "following.md", "how soon rows of appends come, and what that costs; no rival"
)
SHARED_WINDOWS = Section(
    "Windows of many queries",
    "shared_windows.md",
    "time windows of many live queries in one operator, against one operator for each",
)
PREDICATES = Section(
    "Conditions of many queries",
    "predicates.md",
    "which of up to a million conditions are true on each event, against each condition alone",
)
QUERY_SETS = Section(
    "Sets of queries",
    "query_sets.md",
    "up to 400,000 live queries from their texts to their rows, against Siddhi; what a document "
    "on such systems reports, measured here",
)
PERIODIC = Section(
    "Periodic queries",
    "periodic.md",
    "thousands of dashboards in one set, against a query for each, and against DuckDB",
)
XML = Section(
    "XML", "xml.md", "10,000 distinct paths over items of feeds, against lxml with each path"
)
XML_JOINS = Section(
    "Joins of XML documents",
    "xml_joins.md",
    "up to 100,000 joins of documents by equal values, together and each by itself",
)
SECTIONS = (
    *(QUERIES, STORE, PATTERNS, WINDOWS, INDEX, SITUATIONS),
    *(STANDING, ALGEBRA, KEYS, FOLLOWING, SHARED_WINDOWS, PREDICATES),
    *(QUERY_SETS, PERIODIC, XML, XML_JOINS),
)


def write_section(
    section: Section, details: str, figures: Sequence[Figure] = (), place: Path = HERE
) -> Path:
    """Write the page of a section, and results.md anew; return the page."""
    path = section.path(place)
    path.parent.mkdir(exist_ok=True)
    path.write_text(section_page(section, details, figures), encoding="utf-8")
    (place / "results.md").write_text(summary(place), encoding="utf-8")
    return path


def section_page(section: Section, details: str, figures: Sequence[Figure]) -> str:
    """Return the page of a section: its promises, and below all that was measured."""
    about = section.about[0].upper() + section.about[1:]
    page = f"# {section.title}\n\n{about}. [All results](../results.md)\n"
    if figures:
        rows = [each.cells() for each in promises(figures)]
        page += f"{PROMISES}\n" + "\n".join(table(PROMISE_HEADINGS, rows)) + "\n"
    return f"{page}{DETAILS}\n{details}"


def summary(place: Path = HERE) -> str:
    """Return results.md: the promises of all pages that there are, in one table, and links."""
    written = [section for section in SECTIONS if section.path(place).exists()]
    pages = {section: section.path(place).read_text(encoding="utf-8") for section in written}
    rows = []
    for section, page in pages.items():
        linked = [f"[{section.title}](results/{section.file})"]
        for row in promise_rows(page):
            rows.append([*(linked or [""]), *row])
            linked = []
    met = sum(row[-1] == "✓" for row in rows)
    lines = [
        "# Results",
        "",
        "Written by `make bench`. No number here is typed by hand. "
        f"Of {len(rows)} promises {met} are met, {len(rows) - met} are not.",
        "",
        HOW_TO_READ_PROMISES,
        "",
        *table(("Section", *PROMISE_HEADINGS), rows),
        "",
        "## Details",
        "",
        *table(
            ("Section", "What is measured", "When"),
            [
                (f"[{each.title}](results/{each.file})", each.about, measured_at(page))
                for each, page in pages.items()
            ],
        ),
    ]
    return "\n".join(lines) + "\n"


def promise_rows(page: str) -> list[list[str]]:
    """Return the rows of the promises of a page."""
    _, found, rest = page.partition(PROMISES)
    if not found:
        return []
    lines = [line for line in rest.partition(DETAILS)[0].splitlines() if line.startswith("|")]
    return [line.removeprefix("| ").removesuffix(" |").split(" | ") for line in lines[2:]]


def measured_at(page: str) -> str:
    """Return the date of a page."""
    return page.partition("\n- Date: ")[2].partition("\n")[0]


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table as Markdown."""
    rules = ["--:" if heading in RIGHT else ":--" for heading in headings]
    return [f"| {' | '.join(row)} |" for row in (headings, rules, *rows)]
