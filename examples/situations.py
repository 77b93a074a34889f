"""Find aggressive drivers: while they drive, over history, and drawn.

python examples/situations.py
"""

import tempfile
from pathlib import Path
from typing import Any

import eventide as ev

# How each car accelerates: seconds, and metres a second each second.
DRIVES = {
    "anna": [(4, 0.2), (5, 3.6), (6, 0.1), (4, -5.5), (5, 0.4)],
    "ben": [(6, 0.4), (8, 0.9), (8, -0.2), (2, -1.5)],
    "cleo": [(7, 0.3), (4, 3.9), (3, 0.6), (6, -3.8), (4, 0.2)],
}
SECOND = 1_000_000
MORNING = 1_772_438_400 * SECOND  # 2 March 2026, 08:00

AGGRESSIVE = """
    FROM cars
    PARTITION BY car
    DEFINE speedup AS accel > 2.5,
           fast    AS speed > 33,
           brake   AS accel < -3
    PATTERN speedup overlaps fast; speedup meets fast
        AND fast meets brake; fast overlaps brake; fast contains brake; fast finished by brake
    WITHIN 1 MINUTE
    CONFIRM
    RETURN MAX(fast.speed) AS top, MIN(brake.accel) AS hardest, DURATION(fast) AS held"""


def reports() -> list[dict[str, Any]]:
    """Return what the cars report each second, in order of time."""
    rows: list[dict[str, Any]] = []
    for car, parts in DRIVES.items():
        speed, second = 18.0, 0
        for seconds, accel in parts:
            for _ in range(seconds):
                speed += accel
                ts = MORNING + second * SECOND
                rows.append({"ts": ts, "car": car, "speed": round(speed, 1), "accel": accel})
                second += 1
    return sorted(rows, key=lambda row: row["ts"])


def tell(found: ev.Result) -> None:
    """Say who was just found, and what became of it."""
    for row in found.rows():
        what = "was fast for" if row["confirmed"] else "brakes, and has been fast for"
        seconds = row["held"].total_seconds()
        print(f"live: {row['ts']:%H:%M:%S} {row['car']} {what} {seconds:g} s, {row['top']:g} m/s")


db = ev.open(tempfile.mkdtemp())
cars = db.create_stream("cars", {"car": "string", "speed": "float64", "accel": "float64"})

query = db.subscribe(AGGRESSIVE, tell)
for report in reports():
    cars.append([report])
query.finish()

found = db.tpstream(AGGRESSIVE.replace("CONFIRM", ""))  # over what is stored by now
print()
print(found)
print()
print(found.plot().text(90))

page = Path(tempfile.mkdtemp()) / "drivers.html"
found.plot(page)
print(f"\nthe same for a browser: {page}")
