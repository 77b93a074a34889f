"""What a GROUP BY of a sliding query keeps of each pane and group, and what it reads."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from eventide.errors import UnsupportedError
from eventide.kernels.compiled import Bools, Int64s, frozen
from eventide.kernels.groups import reading
from eventide.kernels.groups import sliding as totals
from eventide.kernels.panes.reading import (
    FADED_COUNT,
    FADED_MEAN,
    FADED_SUM,
    FADING,
    FADING_ONES,
    HIGHEST,
    LOWEST,
    PANES,
    Kept,
)
from eventide.operators.standing.groups.plan import GroupPlan, Reader, WordColumn
from eventide.plan.aggregates import DECAYED, MOST_AGGREGATES
from eventide.plan.expressions import Aggregate, NamedAggregate

WORDS = {
    totals.COUNTED: 1,
    totals.INTEGERS: 3,
    totals.DOUBLES: 3,
    totals.SQUARES: 4,
    FADING: 1,
    FADING_ONES: 1,
}
"""How many words of an entry a part takes: a count and a sum, or a decayed value."""

_READ = {"decayed_count": FADED_COUNT, "decayed_sum": FADED_SUM, "decayed_avg": FADED_MEAN}


@dataclass(frozen=True, slots=True)
class KeptPart:
    """What is kept of a column: the kind, the column or -1, and the rest for decayed values."""

    kind: int
    column: int
    time: int = -1
    half_life_us: float = 1.0


@dataclass(slots=True)
class SlidePlan:
    """Columns, parts and readers of a list of aggregates that can be kept by pane."""

    columns: list[WordColumn] = field(default_factory=list)
    parts: list[KeptPart] = field(default_factory=list)
    readers: list[Reader] = field(default_factory=list)
    kinds: list[tuple[int, int]] = field(default_factory=list)
    """By reader: its kind and part, as kernels know them."""
    width: int = 1
    queues: bool = False
    """Whether panes wait in a queue of all groups; staircases alone need none."""

    @classmethod
    def of(cls, aggregates: tuple[NamedAggregate, ...], *, in_order: bool) -> SlidePlan:
        """Return the plan of these aggregates; an error if one cannot be maintained.

        `in_order` says that tuples expire in the order in which they come.
        """
        if len(aggregates) > MOST_AGGREGATES:
            message = f"a GROUP BY of a standing query has at most {MOST_AGGREGATES} aggregates"
            raise UnsupportedError(message, hint="ask two queries")
        plan = cls()
        for item in aggregates:
            if item.aggregate.function in DECAYED:
                plan._add_decayed(item.aggregate)
            else:
                plan._add(item)
        if plan.counts_rows or any(part.kind in WORDS for part in plan.parts):
            plan.queues = in_order and not plan.fades
            if not plan.queues:
                plan.parts.append(KeptPart(PANES, -1))
        return plan

    @property
    def counts_rows(self) -> bool:
        """Whether an aggregate needs the number of rows of a group."""
        return any(kind == reading.ROWS for kind, _ in self.kinds)

    @property
    def fades(self) -> bool:
        """Whether a value changes with every refresh."""
        return any(part.time >= 0 for part in self.parts)

    @property
    def lists(self) -> Bools:
        """Which parts are lists of entries."""
        return np.array([part.kind in (HIGHEST, LOWEST, PANES) for part in self.parts], np.bool_)

    @property
    def slabs(self) -> Int64s:
        """How much of the slab of a part is needed: the contents of lists, all of sums."""
        return np.where(self.lists, totals.BUCKETS, totals.DOUBLES)

    @property
    def entry_words(self) -> int:
        """How many words an entry of the list of panes has."""
        words = sum(WORDS.get(part.kind, 0) for part in self.parts)
        return 1 + int(self.queues) + int(self.counts_rows) + int(self.fades) + words

    @property
    def kept(self) -> Kept:
        """The plan, as kernels take it."""
        place, rows, ref = 1 + int(self.queues), -1, -1
        if self.counts_rows:
            rows, place = place, place + 1
        if self.fades:
            ref, place = place, place + 1
        parts = []
        for part in self.parts:
            parts.append((part.kind, part.column, place, part.time))
            place += WORDS.get(part.kind, 0)
        readers = [
            (*kind, reader.word) for kind, reader in zip(self.kinds, self.readers, strict=True)
        ]
        scales = [reader.scale for reader in self.readers]
        return Kept(
            frozen(np.array(parts, np.int64).reshape(-1, 4)),
            frozen(np.array([place, rows, ref, int(self.queues)], np.int64)),
            frozen(np.array([part.half_life_us for part in self.parts], np.float64)),
            frozen(np.array([*readers, (0, 0, self.width)], np.int64)),
            frozen(np.array(scales, np.float64)),
        )

    def _add(self, item: NamedAggregate) -> None:
        """Add an aggregate that is also kept without panes: the same words make the same row."""
        alone = GroupPlan.of((item,))
        reader = alone.readers[0]
        parts = [
            KeptPart(kind, self._column(alone.columns[column])) for kind, column in alone.parts
        ]
        if reader.kind in (reading.SMALLEST, reading.LARGEST):
            kind = HIGHEST if reader.kind == reading.LARGEST else LOWEST
            parts = [KeptPart(kind, parts[0].column)]
        self._read(item.aggregate, reader.kind, parts, reader.kind, reader.width)

    def _add_decayed(self, aggregate: Aggregate) -> None:
        half_life, time = aggregate.parameter, aggregate.time
        assert isinstance(half_life, int | float)
        assert time is not None
        at = self._column(WordColumn(time, "integer"))
        argument = aggregate.argument
        parts = [KeptPart(FADING_ONES, -1, at, half_life)]
        if argument is not None:
            value = self._column(WordColumn(argument, "double"))
            counted = KeptPart(totals.COUNTED, value)
            parts = [counted, KeptPart(FADING, value, at, half_life)]
            if aggregate.function == "decayed_avg":
                parts.append(KeptPart(FADING_ONES, value, at, half_life))
        # Rows are made as those of other doubles.
        self._read(aggregate, _READ[aggregate.function], parts, reading.DOUBLE_SUM, 1)

    def _read(
        self, aggregate: Aggregate, kind: int, parts: list[KeptPart], reader: int, width: int
    ) -> None:
        """Add a reader of consecutive parts."""
        self.kinds.append((kind, self._place(parts)))
        self.readers.append(Reader(aggregate, reader, 0, self.width, width))
        self.width += width

    def _place(self, parts: list[KeptPart]) -> int:
        for place in range(len(self.parts) - len(parts) + 1):
            if self.parts[place : place + len(parts)] == parts:
                return place
        self.parts += parts
        return len(self.parts) - len(parts)

    def _column(self, column: WordColumn) -> int:
        if column not in self.columns:
            self.columns.append(column)
        return self.columns.index(column)
