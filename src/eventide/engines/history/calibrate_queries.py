"""The queries by which a machine is measured, each for one or two weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SIZE = "INTERVAL '{} SECOND'"


@dataclass(frozen=True, slots=True)
class Probe:
    """A query over the stream `probe` and the way it is answered.

    Its events are a second apart; a, b, c and d are random from 0 to 1, and a and b have indexes.
    """

    name: str
    way: Literal["replay", "index", "intervals"]
    sql: str
    looked_up: tuple[str, ...] = ()
    """The attributes whose conditions are looked up."""


def windows(calls: str, size: int, slide: int) -> str:
    """Return a query for aggregates of windows."""
    window = f"HOP(ts, {SIZE.format(slide)}, {SIZE.format(size)})"
    return f"SELECT window_start, {calls} FROM probe GROUP BY {window}"  # noqa: S608 - our own words


def pattern(clauses: str, within: int) -> str:
    """Return a query for the matches of a pattern."""
    found = "MEASURES FIRST(ts) AS since, LAST(ts) AS until"
    parts, _, defines = clauses.partition(" DEFINE ")
    within_text = f"WITHIN {SIZE.format(within)}"
    asked = f"{found} PATTERN ({parts}) {within_text} DEFINE {defines}"
    return f"SELECT * FROM probe MATCH_RECOGNIZE ({asked})"  # noqa: S608 - our own words


FOUR = "SUM(a) AS a, SUM(b) AS b, SUM(c) AS c, SUM(d) AS d"
TWO = "A B DEFINE A AS a > 0.5, B AS b > 0.5"
SEARCH = "A B+ C DEFINE A AS a < 0.2, B AS b > A.b, C AS c > B.c"
RARE = "A B DEFINE A AS a < 0.0005, B AS c < 0.5"
COMMON = "A B DEFINE A AS a < 0.02, B AS b < 0.02"
NO_INDEX = "A B DEFINE A AS c < 0.0005, B AS d < 0.5"

PROBES = (
    Probe("events counted", "replay", windows("COUNT(*) AS n", 20_000, 20_000)),
    Probe("events added up", "replay", windows(FOUR, 20_000, 20_000)),
    Probe("short windows", "replay", windows("SUM(a) AS a", 4, 4)),
    Probe("overlapping windows", "replay", windows("SUM(a) AS a", 400, 4)),
    Probe("windows of whole leaves", "index", windows("SUM(a) AS a", 2_000_000, 2_000_000)),
    Probe("windows that cut some leaves", "index", windows("SUM(a) AS a", 40_000, 40_000)),
    Probe("windows that cut all leaves", "index", windows("SUM(a) AS a", 500, 500)),
    Probe("four attributes of cut leaves", "index", windows(FOUR, 500, 500)),
    Probe("short windows by the index", "index", windows("SUM(a) AS a", 4, 4)),
    Probe("overlapping windows by the index", "index", windows("SUM(a) AS a", 400, 4)),
    Probe("a pattern of two rows", "replay", pattern(TWO, 60)),
    Probe("a pattern of more rows", "replay", pattern(TWO.replace("A B ", "A B C D ", 1), 60)),
    Probe("a pattern to search for", "replay", pattern(SEARCH, 60)),
    Probe("a pattern by the map", "intervals", pattern(TWO, 60)),
    Probe("few rows by their index", "intervals", pattern(RARE, 60), ("a",)),
    Probe("many rows by their index", "intervals", pattern(COMMON, 60), ("a",)),
    Probe("rows by two indexes", "intervals", pattern(COMMON, 60), ("a", "b")),
    Probe("rows without an index", "intervals", pattern(NO_INDEX, 60), ("c",)),
)
