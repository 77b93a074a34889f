"""The picture of docs on standing queries. `python -m tests.golden.standing_picture` draws it anew.

standing.svg   two windows of a minute and their join: what is in them, from when until when
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import eventide as ev

FILE = Path(__file__).parents[2] / "docs" / "standing.svg"
VIEWS = [(1, "ann", "pen"), (5, "bob", "lamp"), (8, "ann", "lamp"), (20, "cat", "pen")]
BUYS = [(9, "ann", "lamp", 30), (52, "bob", "lamp", 30), (64, "cat", "pen", 3)]
ANSWERS = {
    "views [RANGE 1 MINUTE] v": "SELECT user, item FROM views [RANGE 1 MINUTE]",
    "buys [RANGE 1 MINUTE] b": "SELECT user, item, price FROM buys [RANGE 1 MINUTE]",
    "v JOIN b ON v.user = b.user AND v.item = b.item": """
        SELECT v.user, v.item, b.price
        FROM views [RANGE 1 MINUTE] v
        JOIN buys [RANGE 1 MINUTE] b ON v.user = b.user AND v.item = b.item""",
}


def clock(second: int) -> str:
    """Return a time in the morning of 2 March 2026."""
    return f"2026-03-02T08:{second // 60:02}:{second % 60:02}"


def drawn() -> str:
    """Return the lifetimes of what is in both windows, and of what the join makes of it."""
    with tempfile.TemporaryDirectory() as folder:
        db = ev.open(folder)
        views = db.create_stream("views", {"user": "string", "item": "string"})
        buys = db.create_stream("buys", {"user": "string", "item": "string", "price": "int64"})
        views.append([{"ts": clock(at), "user": u, "item": i} for at, u, i in VIEWS])
        buys.append([{"ts": clock(at), "user": u, "item": i, "price": p} for at, u, i, p in BUYS])
        changes = {title: list(db.replay(text)) for title, text in ANSWERS.items()}
    return ev.plot_lifetimes(changes).svg()


def regenerate() -> None:
    """Draw it anew."""
    FILE.write_text(drawn() + "\n")
    sys.stdout.write(f"{FILE.name}: {FILE.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    regenerate()
