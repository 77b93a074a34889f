"""Run a query live: results come when they are complete, late events are counted.

python examples/live.py
"""

import tempfile

import eventide as ev

db = ev.open(tempfile.mkdtemp())
cars = db.create_stream("cars", {"car": "string", "speed": "float64"})

means = db.subscribe(
    """SELECT car, window_start, AVG(speed) AS mean
       FROM cars GROUP BY car, TUMBLE(ts, INTERVAL '10' SECOND)""",
    on_result=print,
    lateness="5 s",  # events may be this much out of order
)

SECOND = 1_000_000  # ts may be an integer too: microseconds since 1970
cars.append([{"ts": 2 * SECOND, "car": "anna", "speed": 48.0}])
cars.append([{"ts": 12 * SECOND, "car": "anna", "speed": 66.0}])
cars.append([{"ts": 8 * SECOND, "car": "anna", "speed": 52.0}])  # out of order, but in time
cars.append([{"ts": 16 * SECOND, "car": "anna", "speed": 70.0}])  # now 0 to 10 s is complete
cars.append([{"ts": 1 * SECOND, "car": "anna", "speed": 10.0}])  # too late for the live query
means.finish()

print(f"{means.late_count} event came too late; {len(cars)} are stored")
