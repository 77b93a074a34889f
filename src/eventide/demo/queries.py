"""The questions of the demo, by kind."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """A query, with what it asks for in words."""

    name: str
    words: str
    text: str


MINUTES = DemoQuestion(
    "minute by minute",
    "The average and the top speed of every car in every minute.",
    """SELECT car, window_start, window_end,
       AVG(speed) AS mean, MAX(speed) AS top, COUNT(*) AS reports
FROM cars
GROUP BY car, TUMBLE(ts, INTERVAL '1' MINUTE)""",
)

BRAKING = DemoQuestion(
    "hard braking",
    "Half minutes, starting every 10 seconds, in which a car braked harder than 5 m/s².",
    """SELECT car, window_start, window_end,
       COUNT(*) AS reports, MIN(accel) AS hardest
FROM cars
WHERE accel < -5
GROUP BY car, HOP(ts, INTERVAL '10' SECOND, INTERVAL '30' SECOND)""",
)

SUDDEN = DemoQuestion(
    "much faster than lately",
    "Reports of a car that is 100 km/h above its own average of the last five minutes.",
    """SELECT car, ts, speed, lately
FROM (
  SELECT ts, car, speed, AVG(speed) OVER (
    PARTITION BY car ORDER BY ts
    RANGE BETWEEN INTERVAL '5' MINUTE PRECEDING AND CURRENT ROW) AS lately
  FROM cars) AS reports
WHERE speed > lately + 100""",
)

SPEEDING = DemoQuestion(
    "who speeds most",
    "The ten cars with the most minutes above 140 km/h.",
    """WITH fast AS (
  SELECT car, window_start, COUNT(*) AS reports, MAX(speed) AS top
  FROM cars
  WHERE speed > 140
  GROUP BY car, TUMBLE(ts, INTERVAL '1' MINUTE))
SELECT car, COUNT(*) AS minutes, MAX(top) AS top
FROM fast
GROUP BY car
ORDER BY minutes DESC, car
LIMIT 10""",
)

STOPS = DemoQuestion(
    "emergency stop",
    "A car that brakes from above 100 km/h to below 20 within ten seconds.",
    """SELECT *
FROM cars MATCH_RECOGNIZE (
  PARTITION BY car ORDER BY ts
  MEASURES FIRST(ts) AS begins, LAST(ts) AS ends, FAST.speed AS before, COUNT(*) AS reports
  PATTERN (FAST SLOWER+ SLOW) WITHIN INTERVAL '10' SECOND
  DEFINE FAST AS speed > 100, SLOWER AS speed < PREV(speed) - 15, SLOW AS speed < 20)""",
)

HURRY = DemoQuestion(
    "in a hurry",
    "A car that gets fast while it speeds up sharply, and brakes hard before it is slow again.",
    """FROM cars PARTITION BY car
DEFINE surge AS accel > 1 AT LEAST 5 s,
       fast AS speed > 100 AT LEAST 10 s,
       brake AS accel < -5
PATTERN surge overlaps fast AND fast overlaps brake
WITHIN 5 MINUTES
RETURN MAX(fast.speed) AS top, MIN(brake.accel) AS hardest""",
)

SLIPPERY = DemoQuestion(
    "slippery road",
    "Two cars in one area that brake hard within half a minute of each other.",
    """ISTREAM (
  SELECT a.car, b.car AS other, a.accel, b.accel AS other_accel
  FROM cars [RANGE 30 SECONDS] a JOIN cars [RANGE 30 SECONDS] b
    ON a.car < b.car AND ABS(a.lat - b.lat) < 0.1 AND ABS(a.lon - b.lon) < 0.1
  WHERE a.accel < -6 AND b.accel < -6)""",
)

HOURS = DemoQuestion(
    "hour by hour",
    "The average and the top speed of all cars in an hour, every half hour.",
    """SELECT window_start, AVG(speed) AS mean, MAX(speed) AS top, COUNT(*) AS reports
FROM cars
GROUP BY HOP(ts, INTERVAL '30' MINUTE, INTERVAL '1' HOUR)""",
)

KINDS = {
    "windows": (MINUTES, BRAKING, SUDDEN, SPEEDING),
    "a row pattern": (STOPS,),
    "a temporal pattern": (HURRY,),
    "a standing join": (SLIPPERY,),
}
INDEXED = HOURS
"""The question that is asked through the index, and by a replay of all events."""
LIVE = (MINUTES, SLIPPERY)
"""The questions that are asked again while the events arrive."""
