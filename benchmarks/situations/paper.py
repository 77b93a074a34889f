"""W4 and W5: how much sooner early detection is, and how soon an event's results are there."""

from __future__ import annotations

from benchmarks.race import Finding, at_most
from benchmarks.situations.cases import SituationCase
from benchmarks.situations.data import ALIKE, drawn, shown
from benchmarks.situations.gains import NO_GAIN, SIMULATED, gains
from benchmarks.situations.queries import BEFORE_OVERLAPS
from benchmarks.situations.scan import changing
from benchmarks.situations.setting import (
    SituationSetting,
    Spent,
    arrivals,
    check_counts,
    matches_in,
    single_pushes,
    standing,
)
from benchmarks.situations.windows import expected_matches

MOST_OFF = at_most(0.05)
LATENCY_WINDOWS_S = (500, 10_000, 100_000)


def latency_gain(setting: SituationSetting) -> list[Finding]:
    """W4: how much sooner early detection is; every match at the moment that theory says."""
    findings = []
    for gain in gains(setting.sizes.of(0.015)):
        name = f"{gain.relation}, {gain.ratio}"
        if gain.relation in NO_GAIN:
            findings.append(Finding(f"{name}: gain, s", gain.mean_s, target=at_most(0)))
            continue
        findings.append(Finding(f"{name}: gain ÷ mean of B", gain.mean_s / gain.mean_b_s))
        simulated = SIMULATED.get((gain.relation, gain.ratio))
        if simulated is not None:
            off = abs(gain.mean_s - simulated) / simulated
            ours = Finding(f"{name}: gain, s", gain.mean_s, "simulated, s", simulated)
            findings += [ours, Finding(f"{name}: off from simulated", off, target=MOST_OFF)]
    return findings


def latency(setting: SituationSetting) -> list[Finding]:
    """W5: seconds from one event to its results, early and final, in several windows."""
    return [line for within_s in LATENCY_WINDOWS_S for line in latency_in(within_s, setting)]


def latency_in(within_s: int, setting: SituationSetting) -> list[Finding]:
    """Push single events once a window is full; their matches are those of the closed form."""
    warm = min(2 * within_s, setting.sizes.many) + 1_000
    count = warm + setting.sizes.singles
    spans = drawn(count, [ALIKE] * 3)
    events = shown(count, spans)
    before = arrivals(events, warm)[0]
    batches = arrivals(events, 1)[warm:]
    early = BEFORE_OVERLAPS.within(within_s)
    changed = changing(early, events)[warm:]
    spent: dict[str, Spent] = {}
    for ask in (early, early.asking("count", "final")):
        query = standing(ask, events.schema)
        first = matches_in(query.push(before).to_arrow())
        spent[ask.detection] = single_pushes(query, batches)
        live = first + spent[ask.detection].matches + matches_in(query.finish().to_arrow())
        expected = expected_matches(spans, count, within_s, ask.detection)
        what = f"one by one, {within_s} s, {ask.detection}"
        check_counts(what, {"closed form": expected, "live": live})
    busy = {name: each.busy(changed) for name, each in spent.items()}
    findings = []
    for name, both in (("in all", spent), ("with changes or rows", busy)):
        which = f"{both['early'].kept.sum():,} {name}"
        theirs = both["final"].percentiles
        findings += [
            Finding(f"w = {within_s:,} s, early, {which}, {place}", ours, "final", theirs[place])
            for place, ours in both["early"].percentiles.items()
            if place in theirs
        ]
    return findings


PAPER_CASES = (
    SituationCase(
        "W4 latency gain",
        "each relation alone within 1,000 s: the mean of how much sooner a match is reported than "
        "when it is over; the moment of every single match is compared with the closed form",
        latency_gain,
    ),
    SituationCase(
        "W5 latency",
        "A before B, B overlaps C: seconds until an event's results are there; of all events, of "
        "which most change nothing, and of those at which a situation begins or ends or that give "
        "rows; the number of matches equals the closed form",
        latency,
    ),
)
