"""Ask two live streams one question, and have the answer right at every instant.

python examples/standing.py
"""

import tempfile
from pathlib import Path
from typing import Any

import eventide as ev

SECOND = 1_000_000
MORNING = 1_772_438_400 * SECOND  # 2 March 2026, 08:00

SEEN = [
    (1, "ann", "pen"),
    (5, "bob", "lamp"),
    (8, "ann", "lamp"),
    (20, "cat", "pen"),
    (70, "bob", "pen"),
]
BOUGHT = [(9, "ann", "lamp"), (52, "bob", "lamp"), (64, "cat", "pen"), (75, "dan", "cup")]

SOLD = """
    SELECT v.user, v.item, i.price, b.ts - v.ts AS after
    FROM views [RANGE 1 MINUTE] v
    JOIN buys [RANGE 1 MINUTE] b ON v.user = b.user AND v.item = b.item
    JOIN items FOR SYSTEM_TIME AS OF b.ts AS i ON i.item = b.item"""
HESITANT = """
    SELECT v.user, v.item FROM views [RANGE 1 MINUTE] v
    WHERE NOT EXISTS (SELECT 1 FROM buys [RANGE 1 MINUTE] b
                      WHERE b.user = v.user AND b.item = v.item)"""


def events(rows: list[tuple[int, str, str]]) -> list[dict[str, Any]]:
    """Return events of the morning."""
    return [{"ts": MORNING + at * SECOND, "user": user, "item": item} for at, user, item in rows]


def second(event: dict[str, Any]) -> int:
    """Return the second of the morning at which an event was."""
    return int(event["ts"] - MORNING) // SECOND


def tell(changes: ev.Result) -> None:
    """Say what came into the answer, and until when it is there."""
    for row in changes.rows():
        bought = f"{row['user']} bought the {row['item']} for {row['price']}"
        print(f"live: {row['at']:%H:%M:%S} {bought}, counts until {row['exp']:%H:%M:%S}")


db = ev.open(tempfile.mkdtemp())
views = db.create_stream("views", {"user": "string", "item": "string"})
buys = db.create_stream("buys", {"user": "string", "item": "string"})
items = db.create_relation("items", {"item": "string", "price": "int64"}, key=["item"])
prices = {"pen": 2, "lamp": 30, "cup": 8}
items.upsert([{"item": item, "price": price} for item, price in prices.items()], at=MORNING)
items.upsert([{"item": "pen", "price": 3}], at=MORNING + 40 * SECOND)

sold = db.subscribe(SOLD, tell, from_history=True)  # the prices are history already
hesitant = db.subscribe(HESITANT)
for start, end in ((0, 60), (60, 130)):
    views.append([event for event in events(SEEN) if start <= second(event) < end])
    buys.append([event for event in events(BOUGHT) if start <= second(event) < end])
    for query in (sold, hesitant):
        query.advance(MORNING + end * SECOND)  # nothing earlier will come
        query.wait()
    waiting = sorted(f"{row['user']} ({row['item']})" for row in hesitant.current().rows())
    print(f"just before second {end}: {len(sold.current())} sold, waiting: {', '.join(waiting)}")

print()
print(
    db.sql("SELECT item, COUNT(*) AS views FROM views [RANGE 5 MINUTES] GROUP BY item ORDER BY 1")
)

lives = ev.plot_lifetimes(
    {
        "views": db.replay("SELECT user, item FROM views [RANGE 1 MINUTE]"),
        "buys": db.replay("SELECT user, item FROM buys [RANGE 1 MINUTE]"),
        "sold": db.replay(SOLD.replace(", b.ts - v.ts AS after", "")),
    }
)
print()
print(lives.text(90))
page = Path(tempfile.mkdtemp()) / "lives.html"
print(f"\nthe same for a browser: {lives.save(page)}")
