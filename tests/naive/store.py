"""The obvious event store: a list of rows, sorted when asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from eventide.instants import ALL_TIME, TimeRange
from eventide.store.index.ranges import ValueRange
from tests.naive.ranges import qualifies
from tests.naive.summaries import answer

Row = dict[str, object]


@dataclass
class NaiveStream:
    """Rows with `ts` in microseconds and `_seq`, in order of arrival."""

    rows: list[Row] = field(default_factory=list)
    commit_ids: set[str] = field(default_factory=set)
    producers: dict[str, int] = field(default_factory=dict)
    next_seq: int = 0

    def append(self, rows: Sequence[Row], commit_id: str | None = None) -> int:
        """Add rows unless the commit id was seen; return how many were added."""
        if commit_id in self.commit_ids:
            return 0
        if commit_id is not None:
            self.commit_ids.add(commit_id)
        self.rows += [{**row, "_seq": self.next_seq + at} for at, row in enumerate(rows)]
        self.next_seq += len(rows)
        return len(rows)

    def produce(self, rows: Sequence[Row], producer: str, sequence: int) -> int:
        """Add rows unless the producer has come as far before; return how many were added."""
        if sequence <= self.producers.get(producer, -1):
            return 0
        self.producers[producer] = sequence
        return self.append(rows)

    def drop(self, time_range: TimeRange) -> None:
        """Take out the rows of a time range."""
        gone = {id(row) for row in self.inside(time_range)}
        self.rows = [row for row in self.rows if id(row) not in gone]

    def scan(
        self,
        columns: Sequence[str],
        time_range: TimeRange = ALL_TIME,
        where: Mapping[str, ValueRange] | None = None,
    ) -> list[tuple[object, ...]]:
        """Return the rows of a time range that meet all conditions, in order of (ts, _seq)."""
        found = [
            row
            for row in self.inside(time_range)
            if all(qualifies(row.get(name), wanted) for name, wanted in (where or {}).items())
        ]
        found.sort(key=lambda row: (number(row["ts"]), number(row["_seq"])))
        return [tuple(row.get(column) for column in columns) for row in found]

    def aggregate(
        self, function: str, attribute: str | None, time_range: TimeRange = ALL_TIME
    ) -> object:
        """Return a function of an attribute, or the number of rows, by folding them."""
        if attribute is None:
            return len(self.inside(time_range))
        return answer(function, [value for (value,) in self.scan([attribute], time_range)])

    def inside(self, time_range: TimeRange) -> list[Row]:
        """Return the rows of a time range in order of arrival."""
        return [
            row for row in self.rows if time_range.start_us <= number(row["ts"]) < time_range.end_us
        ]


def number(value: object) -> int:
    """Return a value that is an int."""
    assert isinstance(value, int)
    return value
