"""The questions of the demo."""

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

QUESTIONS = (MINUTES, BRAKING, SUDDEN, SPEEDING)
LIVE = MINUTES
"""The question that is asked again while the events arrive."""
