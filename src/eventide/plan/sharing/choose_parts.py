"""Which parts of queries are shared: those that several queries have which begin together.

Of the parts of a query that is shared which most queries have, of several such ones the largest.
Equal parts are found by their templates and constants, all queries of a template at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide.plan.expressions import Literal
from eventide.plan.meaning import digest_of
from eventide.plan.sharing.part_rows import PART_NUMBER
from eventide.plan.sharing.portion import Portion
from eventide.plan.sharing.share_parts import Constants, DividedPlan
from eventide.plan.sharing.template import TemplateQuery

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
FEWEST = 2
"""A part of so many queries is shared."""


@dataclass(slots=True)
class Offered:
    """A portion that may be divided, and its parts as each way to divide it has them."""

    portion: Portion
    cuts: Sequence[DividedPlan]
    parts: list[tuple[SameParts, int]] = field(default_factory=list)
    """For each cut the parts of its kind, and where those of the portion begin among them."""


@dataclass(slots=True)
class SameParts:
    """Parts that differ only in constants."""

    query: TemplateQuery
    tables: list[pa.RecordBatch] = field(default_factory=list)
    count: int = 0
    codes: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    """For each offered part, which of the different ones it is."""
    sharing: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    """How many queries have each of the different parts; if they are windows, on average."""
    numbers: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    """The numbers of the different parts, below zero for those that are not shared."""

    def add(self, constants: pa.RecordBatch) -> int:
        """Add parts; return the place of the first."""
        first = self.count
        self.tables.append(constants)
        self.count += constants.num_rows
        return first

    def tell_apart(self) -> None:
        """Find out which parts are equal."""
        table = pa.Table.from_batches(self.tables)
        codes = np.zeros(table.num_rows, np.int64)
        for name in table.column_names[1:]:
            column = table.column(name).combine_chunks()
            # A table of one column has chunks even when they are combined.
            array = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
            indices = np.asarray(array.dictionary_encode().indices, np.int64)
            _, codes = np.unique(codes * (int(indices.max()) + 1) + indices, return_inverse=True)
        self.codes = codes
        self.sharing = np.bincount(codes)
        self.numbers = np.full(len(self.sharing), -1, np.int64)

    def portion(self) -> Portion | None:
        """Return the parts that are shared."""
        wanted = np.flatnonzero(self.numbers >= 0)
        if not len(wanted):
            return None
        _, places = np.unique(self.codes, return_index=True)
        constants = pa.Table.from_batches(self.tables).take(pa.array(places[wanted]))
        window = self.query.window
        return Portion(
            self.query.template,
            self.numbers[wanted],
            constants.combine_chunks().to_batches()[0],
            self.query.conditions,
            () if window is None else (window,) * len(wanted),
        )


def with_shared_parts(
    given: Iterable[tuple[Portion, Sequence[DividedPlan]]], numbers: Iterator[int]
) -> list[Portion]:
    """Return queries that begin together, with parts of their own numbers where that pays."""
    kinds: dict[str, SameParts] = {}
    offers = [Offered(portion, cuts) for portion, cuts in given]
    if sum(len(offer.portion.numbers) for offer in offers) < FEWEST:
        return [offer.portion for offer in offers]
    for offer in offers:
        for cut in offer.cuts:
            kind = digest_of(cut.part.template.digest, cut.part.conditions, cut.part.window)
            same = kinds.setdefault(kind, SameParts(cut.part))
            constants = taken(offer.portion.constants, cut.part_constants)
            offer.parts.append((same, same.add(constants)))
    for same in kinds.values():
        same.tell_apart()
    spread_windows(kinds.values())
    chosen = [chosen_cuts(offer) for offer in offers]
    for same in kinds.values():
        used = np.flatnonzero(same.numbers >= 0)
        same.numbers[used] = [next(numbers) for _ in used]
    whole = {id(same): same.portion() for same in kinds.values()}
    found: list[Portion] = []
    for offer, (ways, left) in zip(offers, chosen, strict=True):
        for place, wanted in ways:
            same, first = offer.parts[place]
            parts = whole[id(same)]
            assert parts is not None
            own = same.numbers[same.codes[first : first + len(wanted)][wanted]]
            found.append(above(offer.portion, offer.cuts[place], wanted, own, parts))
        if left.all():
            found.append(offer.portion)
        elif left.any():
            found.append(offer.portion.only(left))
    return found


def spread_windows(kinds: Iterable[SameParts]) -> None:
    """Count windows by what they all have on average, whatever their sizes are.

    Windows of different sizes share reduced events. So all of them are parts or none is: otherwise
    events would be reduced for both.
    """
    alike: dict[str, list[SameParts]] = {}
    for same in kinds:
        if same.query.window is not None:
            alike.setdefault(same.query.template.digest, []).append(same)
    for group in alike.values():
        queries = sum(same.count for same in group)
        parts = sum(len(same.sharing) for same in group)
        for same in group:
            same.sharing[:] = queries // parts


def chosen_cuts(offer: Offered) -> tuple[list[tuple[int, Bools]], Bools]:
    """Return by which cut which queries are divided, and which ones are not; mark their parts."""
    count = len(offer.portion.numbers)
    left = np.ones(count, np.bool_)
    ways: list[tuple[int, Bools]] = []
    if not offer.parts:
        return ways, left
    codes = [same.codes[first : first + count] for same, first in offer.parts]
    sharing = [same.sharing[own] for own, (same, _) in zip(codes, offer.parts, strict=True)]
    # Of equal ones the first is taken, which is the largest part.
    best = np.argmax(sharing, axis=0)
    for place, (same, _) in enumerate(offer.parts):
        wanted = (best == place) & (sharing[place] >= FEWEST)
        if wanted.any():
            ways.append((place, wanted))
            same.numbers[codes[place][wanted]] = 0
            left &= ~wanted
    return ways, left


def above(
    portion: Portion, cut: DividedPlan, wanted: Bools, own: Int64s, parts: Portion
) -> Portion:
    """Return what is above the parts of some queries; `own` are the numbers of their parts."""
    constants = taken(portion.constants.filter(pa.array(wanted)), cut.above_constants)
    constants = constants.append_column(PART_NUMBER, pa.array(own))
    window = cut.above.window
    windows = () if window is None else (window,) * len(own)
    numbers = portion.numbers[wanted]
    return Portion(
        cut.above.template, numbers, constants, cut.above.conditions, windows, (parts,)
    ).with_own_parts()


def taken(constants: pa.RecordBatch, places: Constants) -> pa.RecordBatch:
    """Return constants of a part of a plan, given those of the whole plan."""
    count = constants.num_rows
    columns: dict[str, pa.Array] = {"$": pa.nulls(count)}
    for number, source in enumerate(places, 1):
        columns[f"${number}"] = (
            pa.array([source.value] * count, source.type.arrow)
            if isinstance(source, Literal)
            else constants.column(f"${source + 1}")
        )
    return pa.RecordBatch.from_pydict(columns)
