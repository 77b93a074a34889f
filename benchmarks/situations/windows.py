"""W2: A before B, B overlaps C in ever larger windows; seconds, and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.race import Finding, at_least, at_most, race
from benchmarks.situations.cases import SituationCase
from benchmarks.situations.data import ALIKE, Spans, drawn, shown
from benchmarks.situations.queries import BEFORE_OVERLAPS
from benchmarks.situations.scan import changing, scan_matches
from benchmarks.situations.setting import (
    SituationSetting,
    check_counts,
    matches_in,
    one_core,
    over_arrow,
)
from eventide.plan.situations.nodes import Detection

WINDOWS_S = (500, 2_000, 10_000, 20_000, 100_000)
LEAST_OF_WIDE_SCAN = at_least(14)
MOST_OF_MEMORY = at_most(1.12)
CHILD = "benchmarks.situations.child"
KINDS = (ALIKE, ALIKE, ALIKE)
SCANS = {"linear scan": False, "scan with early break": True}


def expected_matches(
    spans: Sequence[Spans], until_s: int, within_s: int, detection: Detection
) -> int:
    """Return how many matches the drawn situations have: a closed form, without any search.

    A situation B overlaps at most one C: the one under way when B ends. Then the match is certain,
    and over when C ends. All A count that are over before B begins, and began in the window.
    """
    (a_starts, a_ends), (b_starts, b_ends), (c_starts, c_ends) = spans
    c = np.maximum(np.searchsorted(c_starts, b_ends) - 1, 0)
    overlaps = (b_starts < c_starts[c]) & (c_starts[c] < b_ends) & (b_ends < c_ends[c])
    moments = b_ends if detection == "early" else c_ends[c]
    kept = overlaps & (moments < until_s)
    low = np.searchsorted(a_starts, moments[kept] - within_s)
    high = np.searchsorted(a_ends, b_starts[kept])
    return int(np.maximum(high - low, 0).sum())


def wide_windows(setting: SituationSetting) -> list[Finding]:
    """W2: how time grows with the window, early and against scans."""
    count = setting.sizes.of(0.2)
    spans = drawn(count, KINDS)
    events = shown(count, spans)
    bare = events.filter(pa.array(changing(BEFORE_OVERLAPS, events)))
    findings: list[Finding] = []
    for within_s in WINDOWS_S:
        expected: dict[Detection, int] = {
            "early": expected_matches(spans, count, within_s, "early"),
            "final": expected_matches(spans, count, within_s, "final"),
        }
        for what, read in (("", events), (", changes only", bare)):
            findings += in_window(within_s, what, read, expected)
    return findings


def in_window(
    within_s: int, what: str, events: pa.Table, expected: dict[Detection, int]
) -> list[Finding]:
    """Compare all numbers of matches in one window with the closed form, then time."""
    early = BEFORE_OVERLAPS.within(within_s)
    final = early.asking("count", "final")
    ours = {"early": early, "final": final, "visited": early.asking("visit", "final")}
    ways: dict[str, Callable[[], Any]] = {
        name: partial(over_arrow, ask, events) for name, ask in ours.items()
    }
    ways |= {
        name: partial(scan_matches, final, events, early_break=early_break)
        for name, early_break in SCANS.items()
    }
    with one_core():
        rows = {name: way() for name, way in ways.items()}
        counts = {name: matches_in(rows[name]) if name in ours else rows[name] for name in ways}
        check_counts(
            f"{early.name}, {within_s} s, early",
            {"closed form": expected["early"], "Eventide": counts.pop("early")},
        )
        check_counts(f"{final.name}, {within_s} s", {"closed form": expected["final"], **counts})
        del rows
        seconds = race(ways)
    target = LEAST_OF_WIDE_SCAN if within_s == WINDOWS_S[-1] else None
    window, read = f"w = {within_s:,} s", len(events)
    found = [Finding(f"{window}, early{what}", seconds["early"], events=read)]
    for name, how in (("final", "stretches added up"), ("visited", "each match visited")):
        line = partial(Finding, f"{window}, {how}{what}", seconds[name], events=read)
        linear, broken = SCANS
        found.append(line(linear, seconds[linear], target))
        found.append(line(broken, seconds[broken]))
    return found


def memory(setting: SituationSetting) -> list[Finding]:
    """W2: the most memory that a process of its own has, live, in a narrow and in wide windows."""
    events = setting.sizes.of(0.5)
    spans = drawn(events, KINDS)
    peaks = {}
    for within_s in WINDOWS_S:
        peaks[within_s], matches = peak_of(events, within_s)
        expected = expected_matches(spans, events, within_s, "early")
        what = f"memory, {within_s} s"
        check_counts(what, {"closed form": expected, "the process": matches})
    narrow = WINDOWS_S[0]
    return [
        Finding(
            f"MB, w = {within_s:,} s",
            peaks[within_s],
            f"MB, w = {narrow:,} s",
            peaks[narrow],
            MOST_OF_MEMORY if within_s == WINDOWS_S[-1] else None,
        )
        for within_s in WINDOWS_S[1:]
    ]


def peak_of(events: int, within_s: int) -> tuple[float, int]:
    """Return the megabytes of a process that answers, and how many matches it has found."""
    command = [sys.executable, "-m", CHILD, str(events), str(within_s)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    answer = json.loads(said.splitlines()[-1])
    return float(answer["peak_mb"]), int(answer["matches"])


WINDOW_CASES = (
    SituationCase(
        "W2 windows",
        "A before B, B overlaps C in ever larger windows, only counted; one core; of all events, "
        "and of those at which something begins or ends. The scans have bare arrays and visit "
        "each match. Eventide finds stretches of situations that all fit, and where only a number "
        "is asked for adds up their lengths: lines with stretches added up compare the answers' "
        "times, not like with like. Lines with each match visited ask for MAX(EPOCH(START(a))) "
        "too, so that Eventide also has to look at every match, and to keep a value of it. All "
        "numbers of matches, early ones too, equal a closed form over the situations as drawn",
        wide_windows,
    ),
    SituationCase(
        "W2 memory",
        "the same live in a process of its own: the most memory it has had; its number of matches "
        "equals the closed form",
        memory,
    ),
)
