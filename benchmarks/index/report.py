"""What the index cases found: tables for the screen and for its page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from rich import box
from rich.table import Table

from benchmarks.index.data import Built, Dataset
from benchmarks.index.patterns import ALL_CHOICES, ROUNDS, SHORT_SECONDS, Answered, errors_of
from benchmarks.index.queries import (
    MEAN_OVER_BEST,
    MOST_OF_CHOOSING,
    MOST_OVER_BEST,
    WITHIN_EVENTS,
    Series,
)
from benchmarks.promises import Figure
from benchmarks.race import Target
from benchmarks.report import Machine, as_line, facts

HOW_TO_READ_INDEX = (
    "A ratio is replay's time over that of the way chosen, choosing included, so higher is "
    "better; a target of ≥ is of the median. One of ≤ is of the chosen way's time over replay's, "
    "for the slowest query."
)


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: headings, those of numbers, and rows of text."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: frozenset[str] = frozenset({"Series", "Ways", "Stream", "Over all series", ""})

    def for_screen(self) -> Table:
        """Return it for a terminal."""
        table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
        for heading in self.headings:
            table.add_column(heading, justify="left" if heading in self.words else "right")
        for row in self.rows:
            table.add_row(*row)
        return table

    def lines(self) -> list[str]:
        """Return it as Markdown."""
        rules = [":--" if heading in self.words else "--:" for heading in self.headings]
        return [as_line(self.headings), as_line(rules), *map(as_line, self.rows)]


def speeds(series: Series, answers: Sequence[Answered]) -> list[str]:
    """Return the row of a series: how the chosen way compares with replay."""
    ratios = sorted(each.ratio for each in answers)
    found = series_figure(series, answers)
    return [
        series.name,
        f"{len(answers)}",
        f"{median(each.rows for each in answers):,.0f}",
        f"{median(each.replay.seconds for each in answers):.3g}",
        f"{median(each.seconds for each in answers):.3g}",
        f"{ratios[0]:.2f}",
        f"{median(ratios):.2f}",
        f"{ratios[-1]:.2f}",
        ways_chosen(answers),
        "" if found is None else str(found.target),
        "" if found is None else mark(met=found.met),
    ]


def series_figure(series: Series, answers: Sequence[Answered]) -> Figure | None:
    """Return the ratio that the target of a series is about, if it has one."""
    if series.target is None:
        return None
    ratios = [each.ratio for each in answers]
    value = median(ratios) if series.target.is_least else 1 / min(ratios)
    met = series.target.met_by(value)
    return Figure(series.name, ways_chosen(answers), "replay", series.target, value, met)


def ways_chosen(answers: Sequence[Answered]) -> str:
    """Return how often each way was chosen."""
    names = Counter(each.chosen.name for each in answers)
    return ", ".join(f"{count} {name}" for name, count in names.items())


def mark(*, met: bool) -> str:
    """Return the mark of a target."""
    return "✓" if met else "✗"


SPEEDS = (
    "Series", "Queries", "Matches", "Replay s", "Chosen s",
    "Least", "Median", "Most", "Ways", "Target", "",
)  # fmt: skip


def choices(series: Series, answers: Sequence[Answered]) -> list[str]:
    """Return the row of a series: how good the choice and the estimates were."""
    compared = [each for each in answers if each.others]
    over = [each.over_best for each in compared]
    ranks = ", ".join(f"{each.rank}/{len(each.trials)}" for each in compared)
    shares = [each.planning_share for each in answers if each.planning_share is not None]
    return [
        series.name,
        ranks,
        f"{fmean(over):.2f}" if over else "",
        f"{max(over):.2f}" if over else "",
        *spread(errors_of(answers, "blocks")),
        *spread(errors_of(answers, "rows")),
        f"{1e3 * median(each.planning for each in answers):.1f}",
        f"{100 * median(shares):.2g} %" if shares else "",
        f"{100 * max(shares):.2g} %" if shares else "",
    ]


CHOICES = (
    "Series", "Rank", "Chosen/best", "worst", "Leaves off by", "most", "Rows off by", "most ",
    "Choosing ms", "of what it saves", "most  ",
)  # fmt: skip


OVER_ALL = "over all series"


def overall(answers: Sequence[Answered]) -> list[tuple[str, float | None, Target]]:
    """Return what has to hold over all series; a run of few may have found nothing."""
    over = [each.over_best for each in answers if each.others]
    shares = [each.planning_share for each in answers if each.planning_share is not None]
    middle = median(shares) if shares else None
    return [
        ("chosen over best, mean", fmean(over) if over else None, MEAN_OVER_BEST),
        ("chosen over best, worst", max(over, default=None), MOST_OVER_BEST),
        ("choosing over what it saves, median", middle, MOST_OF_CHOOSING),
        ("choosing over what it saves, worst", max(shares, default=None), MOST_OF_CHOOSING),
    ]


def verdicts(answers: Sequence[Answered]) -> Grid:
    """Return how good the choices were over all series."""
    rows = [
        [what, "", str(target), ""]
        if found is None
        else [what, f"{found:.3g}", str(target), mark(met=target.met_by(found))]
        for what, found, target in overall(answers)
    ]
    return Grid(("Over all series", "Found", "Target", ""), rows)


def spread(errors: Sequence[float]) -> tuple[str, str]:
    """Return the middle and the largest of some errors."""
    if not errors:
        return "", ""
    return f"{100 * median(errors):.1f} %", f"{100 * max(errors):.0f} %"


def buildings(built: Mapping[str, tuple[Dataset, Built]]) -> Grid:
    """Return what it took to write the streams."""
    headings = ("Stream", "Events", "Bytes of an event", "Indexes", "s", "M events/s", "MB")
    rows = [
        [
            dataset.stream,
            f"{each.events:,}",
            f"{dataset.event_bytes}",
            f"{len(dataset.index)}",
            f"{each.seconds:.0f}",
            f"{each.events / each.seconds / 1e6:.2f}",
            f"{each.size / 1e6:,.0f}",
        ]
        for dataset, each in built.values()
    ]
    return Grid(headings, rows)


@dataclass(frozen=True, slots=True)
class Report:
    """All that was found in a run."""

    built: Mapping[str, tuple[Dataset, Built]]
    series: Sequence[Series]
    answers: Mapping[str, Sequence[Answered]]

    def speeds(self) -> Grid:
        """Return how the chosen ways compare with replay."""
        return Grid(SPEEDS, [speeds(each, self.answers[each.name]) for each in self.series])

    def choices(self) -> Grid:
        """Return how good the choices and the estimates were."""
        return Grid(CHOICES, [choices(each, self.answers[each.name]) for each in self.series])

    def all_answers(self) -> list[Answered]:
        """Return the queries of all series."""
        return [each for some in self.answers.values() for each in some]

    def verdicts(self) -> Grid:
        """Return how good the choices were over all series."""
        return verdicts(self.all_answers())

    def figures(self) -> list[Figure]:
        """Return the figures that have a target: of each series, then over all of them."""
        of_series = [series_figure(each, self.answers[each.name]) for each in self.series]
        over_all = [
            Figure(what, OVER_ALL, "", target, found, target.met_by(found))
            for what, found, target in overall(self.all_answers())
            if found is not None
        ]
        return [*(each for each in of_series if each is not None), *over_all]

    def section(self, machine: Machine) -> str:
        """Return the details about the index."""
        errors = errors_of(self.all_answers(), "blocks")
        far = sum(each > 0.3 for each in errors)
        lines = [
            *facts(machine),
            f"- Queries: over readings within {WITHIN_EVENTS} events, with gaps at about log2 of "
            "the symbols places; drawn at random, in every run the same",
            f"- Seconds: warm, median of {ROUNDS} runs where one takes less than "
            f"{SHORT_SECONDS:g} s; all ways have given the same rows",
            "",
            HOW_TO_READ_INDEX,
            "",
            *self.speeds().lines(),
            "",
            "How good the choice was. Ranks are among all choices of up to "
            f"{ALL_CHOICES} conditions, or a sample, and replay. Estimates are of all ways that "
            "were measured, as a share of what was really read.",
            "",
            *self.choices().lines(),
            "",
            *self.verdicts().lines(),
            "",
            f"Of {len(errors)} estimates of leaves, {far} were off by more than 30 %.",
            "",
            "What building the streams took:",
            "",
            *buildings(self.built).lines(),
            "",
            "What each series asks:",
            "",
            *(f"- **{each.name}**: {each.asked}" for each in self.series),
        ]
        return "\n".join(lines) + "\n"
