"""The expected cost of each choice of conditions, for many choices at once.

The model assumes that rows that meet a condition are spread evenly over the units where the map
says they can be, and independently of others. Then the wait from a block for the next one is
exponential, and the candidates are the first blocks from which all others are met in time. Periods
overlap as random intervals do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from eventide.engines.history.patterns.candidates import SymbolRange, blocks_of
from eventide.engines.history.patterns.conditions import Clause, Condition, Shape
from eventide.engines.history.weights import Weights
from eventide.kernels.compiled import Bools, Floats
from eventide.store.reading.hits import Reach

STEPS = 24
"""Into how many steps WITHIN is divided to add up waiting times."""
RARE = 1e-12
SPARED = 0.75
"""The share of the time for an entry that is for putting it in order, and decoding it anew."""


@dataclass(frozen=True, slots=True)
class PatternFacts:
    """What is known before anything is read. Times and rows are those the map has kept."""

    shape: Shape
    within_us: int
    numbered: bool
    rows: int
    units: int
    time_us: float
    columns: int
    row_seconds: float
    """How long the matcher takes for a row."""
    begin_seconds: float
    """The time before anything is looked up."""
    keys: int
    """The number of keys if periods are looked for by key; else 1."""
    reaches: Sequence[Reach]
    """Of each condition of the shape."""
    shares: Floats
    """The share of rows that meets each condition, where the map says that some can."""
    profiles: Floats
    """How much more or less often each condition is met in each part of time; 1 is the average. A
    row for each part; all parts have as many rows."""
    sparse: bool = False
    """Whether only the rows are read that meet chosen conditions, if each symbol has one."""


@dataclass(frozen=True, slots=True)
class Estimates:
    """For each choice: how many periods, units and rows it leaves, and the seconds it takes."""

    intervals: Floats
    units: Floats
    rows: Floats
    entries: Floats
    lookup_seconds: Floats
    seconds: Floats


def estimates(facts: PatternFacts, chosen: Bools, weights: Weights) -> Estimates:
    """Return the cost of choices: a row of `chosen` for each, a column for each condition."""
    parts = len(facts.profiles)
    intervals, rows, units = (np.zeros(len(chosen)) for _ in range(3))
    for profile in facts.profiles:
        shares = np.minimum(facts.shares * profile, 1.0)
        expected = expected_periods(facts, shares, chosen)
        count, length = expected.count, expected.length
        density = count / max(facts.time_us, 1.0)
        unit_us = facts.time_us / max(1, facts.units)
        covered = 1 - np.exp(-density / facts.keys * length)
        touched = (1 - np.exp(-density * (length + unit_us))) * facts.units
        inside = covered * facts.rows
        if facts.sparse:
            inside = sparse_rows(facts, shares, chosen, inside, expected)
            touched = np.minimum(touched, inside)
        rows += inside / parts
        units += touched / parts
        intervals += count * (1 - covered) / parts
    none = ~chosen.any(axis=1)
    rows[none], units[none], intervals[none] = facts.rows, facts.units, 1.0
    entries = np.array([reach.entries for reach in facts.reaches], np.float64)
    asked = lookup_seconds(facts, chosen, weights)
    seconds = (
        facts.begin_seconds
        + asked
        + units * (weights.period_unit + facts.columns * weights.period_column)
        + rows * (weights.period_row + facts.row_seconds)
        + intervals * weights.period
    )
    # The map alone leaves long runs of units, which are read as in a replay.
    seconds[none] = facts.begin_seconds + facts.rows * facts.row_seconds
    return Estimates(intervals, units, rows, chosen @ entries, asked, seconds)


def sparse_rows(
    facts: PatternFacts, met: Floats, chosen: Bools, inside: Floats, expected: ExpectedPeriods
) -> Floats:
    """Return how many of the rows inside periods are read, where chosen conditions say which.

    A row of the first or last symbol is inside if the others follow or precede it in time. Each
    candidate has a row of every symbol between; what else is in its period is there by chance.
    """
    conditions, last = facts.shape.conditions, len(facts.shape.skeleton.symbols) - 1
    clauses = list(dict.fromkeys(each.clause for each in conditions))
    found, covered = np.zeros(len(chosen)), np.ones(len(chosen), np.bool_)
    asked: list[Bools] = []
    for symbol in range(last + 1):
        own = [number for number, each in enumerate(conditions) if each.symbol == symbol]
        covered &= chosen[:, own].any(axis=1)
        hits = facts.rows * np.where(chosen[:, own], met[own], 1.0).prod(axis=1)
        if symbol in (0, last):
            rows = hits * (expected.back if symbol else expected.ahead)
        else:
            rows = np.minimum(hits, hits * inside / max(1, facts.rows) + expected.count)
        wanted = np.zeros((len(chosen), len(clauses)), np.bool_)
        wanted[:, [clauses.index(conditions[number].clause) for number in own]] = chosen[:, own]
        # Symbols with the same conditions have the same rows: then any of them may be inside.
        fresh = np.ones(len(chosen), np.bool_)
        for before in asked:
            fresh &= (wanted != before).any(axis=1)
        found += np.where(fresh, rows, np.minimum(rows, expected.count))
        asked.append(wanted)
    return np.where(covered, np.minimum(found, inside), inside)


def lookup_seconds(facts: PatternFacts, chosen: Bools, weights: Weights) -> Floats:
    """Return the time each choice takes to look things up; equal lookups are done once."""
    seconds = np.zeros(len(chosen))
    clauses: dict[Clause, list[int]] = {}
    for number, condition in enumerate(facts.shape.conditions):
        clauses.setdefault(condition.clause, []).append(number)
    for numbers in clauses.values():
        reach = facts.reaches[numbers[0]]
        once = (
            reach.lookups * weights.lookup
            + (reach.entries - SPARED * reach.in_time) * weights.entry
            + reach.read_rows * weights.column_row
        )
        wanted = chosen[:, numbers]
        seconds += wanted.any(axis=1) * once + wanted.sum(axis=1) * reach.events * weights.hit
    return seconds


@dataclass(frozen=True, slots=True)
class ExpectedPeriods:
    """For each choice: how many periods there are before they are merged, and their length.

    `ahead` is how likely the others follow a first block in time, `back` how likely they precede a
    last one.
    """

    count: Floats
    length: Floats
    ahead: Floats
    back: Floats


def expected_periods(facts: PatternFacts, met: Floats, chosen: Bools) -> ExpectedPeriods:
    """Return what periods each choice makes.

    `met` is the share of rows that meets each condition.
    """
    shape, within = facts.shape, float(facts.within_us)
    blocks = blocks_of(shape, shape.conditions, numbered=facts.numbered)
    if not blocks:
        nothing = np.zeros(len(chosen))
        return ExpectedPeriods(nothing, nothing, nothing, nothing)
    shares, active = block_shares(shape, met, blocks, chosen)
    numbers = np.arange(len(blocks))
    first = np.where(active, numbers, len(blocks)).min(axis=1)
    last = np.where(active, numbers, -1).max(axis=1)
    known = facts.numbered
    starts = known and shape.skeleton.begins and blocks[0].first == 0
    ends = known and shape.skeleton.ends and blocks[-1].last == len(shape.skeleton.symbols) - 1
    begins = (first == 0) & starts
    finishes = (last == len(blocks) - 1) & ends
    step_us = facts.time_us * facts.keys / max(1, facts.rows)
    rates = shares / max(step_us, RARE)
    ahead = chances(rates, active, within)
    back = chances(rates[:, ::-1], active[:, ::-1], within)
    backwards = finishes & ~begins
    chance, mean = (np.where(backwards, b, a) for a, b in zip(ahead, back, strict=True))
    places = np.arange(len(chosen))
    from_first = shares[places, np.minimum(first, len(blocks) - 1)]
    from_last = shares[places, np.maximum(last, 0)]
    count = facts.rows * np.where(backwards, from_last, from_first) * chance
    alone = first >= last
    # Up to the latest last block in time: as far from the end as the first one is from the
    # begin.
    rate = np.maximum(rates[places, np.maximum(last, 0)], RARE / within)
    decay = np.exp(-np.minimum(rate * within, 700.0))
    wait = 1 / rate - within * decay / np.maximum(1 - decay, RARE)
    spanned = (len(shape.skeleton.symbols)) * step_us
    length = np.where(
        begins & finishes,
        np.where(alone, spanned, within - np.clip(wait, 0, within)),
        np.where(begins | finishes, within, 2 * within - mean),
    )
    return ExpectedPeriods(count, length, ahead[0], back[0])


def block_shares(
    shape: Shape, met: Floats, blocks: Sequence[SymbolRange], chosen: Bools
) -> tuple[Floats, Bools]:
    """Return the share of rows that begin each block, by its chosen conditions."""
    shares = np.ones((len(chosen), len(blocks)))
    active = np.zeros((len(chosen), len(blocks)), np.bool_)
    for number, condition in enumerate(shape.conditions):
        place = next(n for n, block in enumerate(blocks) if condition.symbol in block.chosen)
        shares[:, place] *= np.where(chosen[:, number], met[number], 1.0)
        active[:, place] |= chosen[:, number]
    return shares, active


def chances(rates: Floats, active: Bools, within: float) -> tuple[Floats, Floats]:
    """Return how likely all blocks are met within some time of the first, and the mean time then.

    The time is a sum of exponential waits. Its distribution is computed step by step, one block
    after another, which also works if rates are equal.
    """
    met = np.ones((STEPS + 1, len(rates)))
    begun = np.zeros(len(rates), np.bool_)
    for block in range(rates.shape[1]):
        waits = active[:, block] & begun
        if waits.any():
            stay = np.exp(-np.minimum(rates[waits, block] * within / STEPS, 700.0))
            before = met[:, waits]
            after = np.zeros_like(before)
            for step in range(1, STEPS + 1):
                here = (before[step] + before[step - 1]) / 2
                after[step] = stay * after[step - 1] + (1 - stay) * here
            met[:, waits] = after
        begun |= active[:, block]
    chance = met[-1]
    area = (met.sum(axis=0) - (met[0] + met[-1]) / 2) * within / STEPS
    mean = within - area / np.maximum(chance, RARE)
    return chance, np.clip(mean, 0.0, within)


def all_choices(count: int) -> Bools:
    """Return every choice of some conditions, a row for each, the empty one first."""
    numbers: npt.NDArray[np.int64] = np.arange(2**count)
    return np.asarray((numbers[:, None] >> np.arange(count)) & 1, np.bool_)


def as_choice(conditions: Sequence[Condition], chosen: Sequence[Condition]) -> Bools:
    """Return some of the conditions as a choice."""
    return np.array([[each in chosen for each in conditions]], np.bool_)
