"""Ask in CEL which events follow one another: over history, live, and inside SQL.

python examples/algebra.py
"""

import tempfile

import eventide as ev

db = ev.open(tempfile.mkdtemp())
readings = db.create_stream("readings", {"sensor": "string", "degrees": "float64"})
doors = db.create_stream("doors", {"sensor": "string", "kind": "string"})

# Three rises of one sensor in a row, above 4 degrees; the result has a name and can be followed.
warming = """
SELECT sensor, degrees_1 AS low, degrees AS high
FROM FILTER{n = 3} (
         (SELECT *, 0 AS n FROM FILTER{degrees > 4} readings)
         FOLD{$2.sensor = $.sensor, $2.degrees > $.degrees AND DUR <= 1 h, $.n + 1 AS n} readings)
PUBLISH warming
"""
# What opened next, within ten minutes?
blamed = """
SELECT sensor, high, kind
FROM (SELECT sensor AS warm, high FROM warming)
     NEXT{warm = sensor AND $2.ts - $1.ts <= 10 min AND DUR <= 2 h} doors
"""

MINUTE = 60_000_000  # ts may be an integer: microseconds since 1970
degrees = [4.2, 4.6, 5.1, 5.9, 5.0]
readings.append(
    [{"ts": n * MINUTE, "sensor": "a", "degrees": each} for n, each in enumerate(degrees)]
)
doors.append([{"ts": 4 * MINUTE, "sensor": "a", "kind": "hatch"}])

print(db.cel(warming))  # over history; published from now on
live = db.subscribe(blamed, on_result=print, lateness="0 s")
readings.append(
    [{"ts": (60 + n) * MINUTE, "sensor": "b", "degrees": each} for n, each in enumerate(degrees)]
)
doors.append([{"ts": 65 * MINUTE, "sensor": "b", "kind": "door"}])
live.finish()

print(db.sql(f"SELECT kind, MAX(high) AS most FROM CEL ({blamed}) GROUP BY kind ORDER BY kind"))
