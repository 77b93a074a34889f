"""Find V shapes in a stream of prices: over history, live, and drawn as text.

python examples/patterns.py
"""

import tempfile

import eventide as ev

PRICES = [10, 8, 7, 9, 12, 11, 8, 13, 13, 12, 10, 14]
SECOND = 1_000_000

db = ev.open(tempfile.mkdtemp())
ticks = db.create_stream("ticks", {"n": "int64", "price": "int64"})

V_SHAPES = """
    SELECT *
    FROM ticks MATCH_RECOGNIZE (
      MEASURES TOP.n AS begins, LAST(DOWN.n) AS bottom, LAST(UP.n) AS ends,
               LAST(UP.price) - LAST(DOWN.price) AS rise
      AFTER MATCH SKIP TO LAST UP
      PATTERN (TOP DOWN+ UP+) WITHIN INTERVAL '1' MINUTE
      DEFINE DOWN AS price < PREV(price), UP AS price > PREV(price))"""


def tell(found: ev.Result) -> None:
    """Say which matches have just become certain."""
    for row in found.rows():
        print(f"live: from {row['begins']} down to {row['bottom']}, up to {row['ends']}")


query = db.subscribe(V_SHAPES, tell)
for n, price in enumerate(PRICES):
    ticks.append([{"ts": n * SECOND, "n": n, "price": price}])
query.finish()

shapes = db.sql(V_SHAPES)  # the same text, over what is stored by now
print(shapes)
print()

for level in range(max(PRICES), min(PRICES) - 1, -1):
    print(f"{level:3} " + "".join("  ●" if price == level else "  ·" for price in PRICES))
for shape in shapes.rows():
    width = 3 * (shape["ends"] - shape["begins"]) - 1
    print(" " * (6 + 3 * shape["begins"]) + f"└{'─' * width}┘ +{shape['rise']}")
