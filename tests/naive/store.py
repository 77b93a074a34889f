"""The obvious event store: a list of rows, sorted when asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from eventide.batch import ALL_TIME, TimeRange

Row = dict[str, object]


@dataclass
class NaiveStream:
    """Rows with `ts` in microseconds and `seq`, in order of arrival."""

    rows: list[Row] = field(default_factory=list)
    commit_ids: set[str] = field(default_factory=set)

    def append(self, rows: Sequence[Row], commit_id: str | None = None) -> int:
        """Add rows unless the commit id was seen; return how many were added."""
        if commit_id in self.commit_ids:
            return 0
        if commit_id is not None:
            self.commit_ids.add(commit_id)
        self.rows += [{**row, "seq": len(self.rows) + at} for at, row in enumerate(rows)]
        return len(rows)

    def scan(
        self, columns: Sequence[str], time_range: TimeRange = ALL_TIME
    ) -> list[tuple[object, ...]]:
        """Return the rows of a time range in order of (ts, seq)."""
        inside = [
            row for row in self.rows if time_range.start_us <= number(row["ts"]) < time_range.end_us
        ]
        inside.sort(key=lambda row: (number(row["ts"]), number(row["seq"])))
        return [tuple(row[column] for column in columns) for row in inside]


def number(value: object) -> int:
    """Return a value that is an int."""
    assert isinstance(value, int)
    return value
