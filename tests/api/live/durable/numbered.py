"""Two streams, and a receiver that looks at the numbers of rows."""

from __future__ import annotations

from pathlib import Path

import eventide as ev
from eventide.api.live.row_queue import LiveRows

SECOND = 1_000_000
PLAIN = "SELECT car, speed FROM cars"


class Receiver:
    """Keeps rows by number; the same number always has the same row."""

    def __init__(self) -> None:
        self.rows: dict[int, str] = {}
        self.again = 0

    def __call__(self, rows: LiveRows) -> None:
        for number, row in enumerate(rows, rows.first_row):
            self.again += number in self.rows
            assert self.rows.setdefault(number, repr(row)) == repr(row)

    def whole(self) -> list[str]:
        """All rows, in order; no number is missing."""
        assert sorted(self.rows) == list(range(len(self.rows)))
        return [self.rows[number] for number in range(len(self.rows))]


def opened(folder: Path) -> ev.Database:
    """Return a database with two streams."""
    db = ev.open(folder)
    if "cars" not in db.streams():
        db.create_stream("cars", {"car": "string", "speed": "float64"}, durability="none")
        db.create_stream("trucks", {"car": "string", "weight": "float64"}, durability="none")
    return db


def append(db: ev.Database, start: int, end: int) -> None:
    """Append an event a second, one after the other."""
    for second in range(start, end):
        db.stream("cars").append([{"ts": second * SECOND, "car": "a", "speed": float(second)}])
