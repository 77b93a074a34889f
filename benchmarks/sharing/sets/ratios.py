"""How speed changes with queries, skew, selectivity and rules: ratios of the document.

`Ratio.document` is what it says of its own system.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache

from benchmarks.sharing.sets import cayuga, rumor, running
from benchmarks.sharing.sets.running import QuerySet, Running, Speed, rows_in
from eventide.plan.sharing.rules import ALL_RULES, SharingRules

FEW, FEW_BATCHES = 300, 5
"""Without a rule each event meets all queries, so there are few of them."""
NO_RULES = SharingRules(**{each.name: False for each in fields(SharingRules)})

Speeds = Mapping[str, Speed]


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of the document, and what was found."""

    name: str
    what: str
    document: str
    found: str

    def cells(self) -> tuple[str, ...]:
        """Return its row of the table."""
        return (self.name, self.what, self.document, self.found)


def ratios(most: int, speeds: Speeds) -> Iterator[Ratio]:
    """Yield all ratios; `speeds` are those of the templates with all subscriptions."""
    dynamic = speeds["LinearDyn"].events_s / speeds["LinearStat"].events_s
    yield Ratio("R1", "speed of LinearDyn / LinearStat", "about 1", f"{dynamic:.2f}")
    yield by_count(most, speeds)
    yield touched(most // 4)
    yield from merging(most)
    yield by_width(most // 4)
    yield from by_rules()
    yield by_language(most // 10)
    yield from by_windows(most // 4)


def speed(queries: QuerySet, count: int, rules: SharingRules = ALL_RULES) -> Speed:
    """Return how fast a few batches go through so many queries."""
    return running.speed(queries, count, rules, FEW_BATCHES)


def by_count(most: int, speeds: Speeds) -> Ratio:
    """All subscriptions against a quarter of them."""
    found = []
    for name in cayuga.TEMPLATES:
        quarter = speed(cayuga.template(name), most // 4)
        found.append(f"{name} {speeds[name].events_s / quarter.events_s:.2f}")
    what = f"speed with {most:,} subscriptions / {most // 4:,}"
    return Ratio("R2", what, "more than 1,000 events/s each", ", ".join(found))


def touched(count: int) -> Ratio:
    """Queries whose condition an event meets, of all."""
    followed = Running(cayuga.template("Filter"), count)
    events = 0
    for _ in range(10):
        arrived = next(followed.arriving)
        followed.take(arrived)
        events += rows_in(arrived)
    (shared,) = followed.many.shared
    runs = (run for state in shared.states for run in state.operators.runs)  # type: ignore[attr-defined]
    pairs = sum(run.done.rows_in for run in runs) / events - 1
    found = f"{pairs:.1f} of {count:,} queries, {pairs / count:.3%}"
    return Ratio(
        "R3", "what an event touches, of all (Filter)", "40 to 120 of 6,000 to 16,000", found
    )


def merging(count: int) -> Iterator[Ratio]:
    """Yield how many conditions are the same, and what skew does."""
    levels = cayuga.prefixes(cayuga.constants(count // 4))
    share = sum(levels) / (3 * (count // 4))
    said = ", ".join(f"{level:,}" for level in levels)
    what = f"different beginnings of {count // 4:,} subscriptions, of all"
    yield Ratio("R4", what, "0.72: 48, 71 and 96 thousand", f"{share:.2f}: {said}")
    firsts, found = [], []
    for skew in (1.4, 0.8):
        skews = (skew, *cayuga.SKEWS[1:])
        firsts.append(cayuga.prefixes(cayuga.constants(count // 2, skews))[0])
        found.append(speed(cayuga.template("Filter", skews), count // 2).events_s)
    shown = f"{firsts[0] / firsts[1]:.2f}; speed {found[0] / found[1]:.2f}"
    what = "different first conditions with skew 1.4 / 0.8; speed of Filter the same way"
    yield Ratio("R5", what, "0.36; speed rises", shown)


def by_width(count: int) -> Ratio:
    """Wider ranges hold for more events, and there are two in a condition."""
    widths = (0.35, 0.7, 1.0)
    found = [speed(cayuga.template("Filter", width=each), count).events_s for each in widths]
    shown = ", ".join(
        f"{each}: {events_s / found[1]:.2f}" for each, events_s in zip(widths, found, strict=True)
    )
    what = f"speed of {count:,} of Filter by the width of a range, over that of 0.7"
    return Ratio("R6", what, "as 1 / width², so 4, 1, 0.49", shown)


def by_rules() -> Iterator[Ratio]:
    """Yield what all rules and each of them save."""
    queries = cayuga.template("Filter")
    everything = speed(queries, FEW).events_s
    nothing = speed(queries, FEW, NO_RULES).events_s
    what = f"speed of {FEW:,} of Filter with all rules / without any"
    yield Ratio("R7", what, "a few orders of magnitude", f"{everything / nothing:,.0f}")
    found = []
    for name in ("lift_constants", "index_conditions", "share_followers"):
        without = speed(queries, FEW, replace(ALL_RULES, **{name: False})).events_s
        found.append(f"{name} {without / everything:.4f}")
    what = f"speed of {FEW:,} of Filter without a rule / with all"
    yield Ratio("R8", what, "merging near 1, indexes far below", ", ".join(found))


def by_language(count: int) -> Ratio:
    """What subscriptions to news cost by what they ask."""
    found = {name: speed(cayuga.news(name), count).events_s for name in cayuga.NEWS_TEXTS}
    shown = ", ".join(f"{name} {each / found['Stateless']:.2f}" for name, each in found.items())
    what = f"speed of {count:,} subscriptions to news / Stateless"
    return Ratio("R10", what, "below 1, Iteration above 100 events/s", shown)


def by_windows(most: int) -> Iterator[Ratio]:
    """Yield what sequences of two streams show."""

    @cache
    def found(name: str, skew: float, length: int | None, count: int) -> Speed:
        return speed(rumor.sequences(name, skew, length), count)

    counts = {"W1": (1_000, 10_000, most), "W2": (10, 100, 1_000)}
    shown = []
    for name, all_counts in counts.items():
        first, *others = (found(name, rumor.SKEW, None, each).events_s for each in all_counts)
        said = ", ".join(
            f"{each:,}: {events_s / first:.3f}"
            for each, events_s in zip(all_counts[1:], others, strict=True)
        )
        shown.append(f"{name} {said} of that with {all_counts[0]:,}")
    what = "speed by number of queries, W1 and W2"
    yield Ratio("R11", what, "falls as that of Cayuga", "; ".join(shown))
    skewed = found("W1", 2.0, None, most).events_s / found("W1", 1.2, None, most).events_s
    yield Ratio("R12", "speed of W1 with skew 2 / 1.2", "about 2", f"{skewed:.2f}")
    long = found("W1", rumor.SKEW, 1_000, most).events_s
    short = found("W1", rumor.SKEW, 10, most).events_s
    yield Ratio("R13", "speed of W1 with long windows / short", "about 1", f"{long / short:.2f}")
    rows = found("W1", rumor.SKEW, None, most).rows
    yield Ratio("R14", f"rows of an event, {most:,} of W1", "17", f"{rows:.1f}")
