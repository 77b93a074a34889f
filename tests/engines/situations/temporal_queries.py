"""Situations and temporal patterns that every engine has to agree on, over the cars of scenarios.

A streaming run on Spark has no end, but its last event ends every silence: so situations that are
open at the end are over in all engines if there is a GAP, and in none if there is not.
"""

from __future__ import annotations

from tests.engines.patterns.match_queries import PatternQuery

EARLY = """
FROM cars PARTITION BY car
DEFINE fast AS speed > 3, near AS lane = 1
PATTERN fast overlaps near; fast contains near; fast meets near; fast starts near
WITHIN 40 SECONDS
RETURN START(fast) AS began, END(fast) AS ended, COUNT(fast.*) AS n, SUM(fast.speed) AS total,
  MAX(near.speed) AS top, DURATION(near) AS lasted, LAST(fast.lane) AS lane"""

FINAL = """
FROM cars PARTITION BY car
DEFINE fast AS speed > 3 AT LEAST 1 SECOND, near AS lane = 1 AT MOST 20 SECONDS,
  lost AS lane IS NULL BETWEEN 1 SECOND AND 1 MINUTE
PATTERN fast before near; fast overlaps near AND near before lost; near meets lost
WITHIN 1 MINUTE
DETECT FINAL
RETURN START(fast) AS began, END(lost) AS ended, AVG(near.speed) AS mean, COUNT(lost.*) AS n"""

CONFIRMED = """
FROM cars PARTITION BY car
DEFINE slow AS speed < 4 AT LEAST 500 MILLISECONDS, known AS lane IS NOT NULL
GAP 30 SECONDS
PATTERN slow during known; slow overlaps known; slow contains known; slow finishes known;
  slow overlapped by known; slow before known
WITHIN 30 SECONDS
CONFIRM
LIMIT 9 PER KEY
RETURN START(slow) AS began, END(known) AS ended, DURATION(slow) AS lasted,
  MIN(slow.speed) AS least, COUNT(known.lane) AS n"""

ALONE = """
FROM cars
DEFINE fast AS speed > 3 AT LEAST 1 SECOND, near AS lane = 1, first AS car = 'a' AND lane = 2
PATTERN fast overlaps near; fast during near; near before fast AND near before first
WITHIN 12 SECONDS
RETURN START(fast) AS began, DURATION(first) AS lasted, MAX(fast.speed) AS top, MIN(near.ts) AS t"""

SILENT = """
FROM cars
DEFINE fast AS speed > 3, near AS lane = 1
GAP 2 SECONDS
PATTERN fast finishes near; fast finished by near; fast equals near
WITHIN 30 SECONDS
RETURN START(fast) AS began, END(near) AS ended, COUNT(near.*) AS n"""

SUMMARY = """
FROM cars PARTITION BY car
DEFINE fast AS speed > 3, near AS lane = 1
PATTERN fast before near
WITHIN 45 SECONDS
RETURN COUNT(*) AS n, MIN(START(fast)) AS began, SUM(MAX(near.speed)) AS total"""

ROWS = """
SELECT * FROM cars SITUATIONS (
  PARTITION BY car
  DEFINE fast AS speed > 3, near AS lane = 1 AT LEAST 1 SECOND, both AS speed > 3 AND lane = 2
  GAP 20 SECONDS
  RETURN MAX(speed) AS top, SUM(speed) AS total, COUNT(*) AS n, FIRST(lane) AS lane
)"""

ROWS_ALONE = """
SELECT situation, start_ts, end_ts FROM cars
SITUATIONS (DEFINE fast AS speed > 3, slow AS speed < 1 AT MOST 4 SECONDS)
WHERE start_ts < end_ts"""

BELOW_AND_ABOVE = """
SELECT name, n * 2 AS twice, began FROM (
  SELECT ts, _seq, COALESCE(car, 'none') AS name, lane, speed * 3.6 AS kmh FROM cars
  WHERE speed IS NOT NULL AND speed < 1000
) TPSTREAM (
  PARTITION BY name
  DEFINE fast AS kmh > 10, near AS lane = 1
  PATTERN fast overlaps near; near overlaps fast; near equals fast
  WITHIN 1 MINUTE
  RETURN START(near) AS began, COUNT(fast.*) AS n
) WHERE n > 1"""

PAIRS = """
FROM cars PARTITION BY car
DEFINE fast AS speed > 50, other AS lane = 1
PATTERN fast before other; fast meets other; fast starts other; fast equals other;
  fast started by other
WITHIN 1 MINUTE
RETURN START(fast) AS began, START(other) AS went_on"""

TEMPORAL = {
    "early": PatternQuery(EARLY),
    "final": PatternQuery(FINAL),
    "confirmed": PatternQuery(CONFIRMED),
    "alone": PatternQuery(ALONE),
    "silent": PatternQuery(SILENT),
    "summary": PatternQuery(SUMMARY),
    "rows": PatternQuery(ROWS),
    "rows_alone": PatternQuery(ROWS_ALONE),
    "below_and_above": PatternQuery(BELOW_AND_ABOVE),
    "pairs": PatternQuery(PAIRS),
}
