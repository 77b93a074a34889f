"""Store a few events, query them, see how the answer is computed.

python examples/quickstart.py
"""

import tempfile

import eventide as ev

db = ev.open(tempfile.mkdtemp())  # a folder; no server
cars = db.create_stream("cars", {"car": "string", "speed": "float64"})
cars.append(
    [
        {"ts": "2026-03-02T08:00:01Z", "car": "anna", "speed": 48.0},
        {"ts": "2026-03-02T08:00:05Z", "car": "anna", "speed": 52.0},
        {"ts": "2026-03-02T08:00:12Z", "car": "ben", "speed": 131.0},
        {"ts": "2026-03-02T08:00:03Z", "car": "ben", "speed": 127.0},  # any order will do
    ]
)

MEANS = """SELECT car, window_start, AVG(speed) AS mean
           FROM cars GROUP BY car, TUMBLE(ts, INTERVAL '10' SECOND)"""

print(db.sql(MEANS + " ORDER BY car, window_start"))
print()
print(db.explain(MEANS))
