"""Row patterns that every engine has to agree on, over the cars of scenarios.py, and their twin."""

from __future__ import annotations

from dataclasses import dataclass

from eventide.lang.sql import plan_sql
from eventide.plan.nodes import Filter, Project, Scan
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.situations.nodes import Situations, TemporalPattern
from eventide.plan.tree import Plan
from tests.engines.scenarios import SCHEMA
from tests.naive.patterns.rows import naive_match, of_row
from tests.naive.situations.matches import by_closed_form
from tests.naive.situations.runs import naive_situations
from tests.naive.windows import Event, in_order

MOST_TESTS = 5_000_000


@dataclass(frozen=True)
class PatternQuery:
    """A query text, and how it can be asked."""

    text: str
    bounded: bool = True
    """Whether a live query forgets by itself; otherwise it warns."""

    def answer(self, events: list[Event]) -> list[Event]:
        """Return what the twins say."""
        return naive_rows(plan_sql(self.text, {"cars": SCHEMA}), events)


def naive_rows(plan: Plan, events: list[Event]) -> list[Event]:
    """Return the rows of a plan with a pattern, from the twins."""
    match plan:
        case Scan():
            return in_order(events)
        case Filter(source=source, condition=condition):
            rows = naive_rows(source, events)
            return [row for row in rows if of_row(condition, row, None) is True]
        case Project(source=source, items=items):
            return [
                {item.name: of_row(item.expression, row, None) for item in items}
                for row in naive_rows(source, events)
            ]
        case MatchRecognize(source=source):
            return naive_match(plan, numbered(naive_rows(source, events)), MOST_TESTS)
        case TemporalPattern(source=source):
            return by_closed_form(plan, numbered(naive_rows(source, events)))
        case Situations(source=source):
            return naive_situations(plan, numbered(naive_rows(source, events)))
        case _:
            raise AssertionError(plan)


def numbered(rows: list[Event]) -> list[Event]:
    """Rows in order as events: a query inside need not pass on their `_seq`."""
    return [{"_seq": number, **row} for number, row in enumerate(rows)]


# A streaming run on Spark has no end: its last event, far ahead and of a key of its own, lets
# deadlines pass, but what waits for the end of its key (`$`, or a greedy end without WITHIN)
# never comes. So all of these end in a variable that tells itself from the one before, or have
# WITHIN; and those that read rows behind a match (NEXT) are left out.

ROW_LOCAL = """
SELECT * FROM cars MATCH_RECOGNIZE (
  PARTITION BY car
  MEASURES MATCH_NUMBER() AS number, FIRST(ts) AS began, LAST(ts) AS ended, COUNT(B.*) AS n,
    C.lane AS lane, SUM(B.speed) AS total, STDDEV(speed) AS spread, PREV(A._seq) AS before
  PATTERN (A B+ C)
  DEFINE A AS speed < 1, B AS speed BETWEEN 3 AND 60 OR lane = 2,
    C AS lane = 1 AND (speed IS NULL OR speed > 1000)
)"""

ALL_ROWS = """
SELECT * FROM cars MATCH_RECOGNIZE (
  PARTITION BY car
  MEASURES CLASSIFIER() AS part, COUNT(*) AS n, FINAL LAST(B.speed) AS last, PREV(speed) AS before
  ALL ROWS PER MATCH
  AFTER MATCH SKIP TO NEXT ROW
  PATTERN (A {- C? -} B+) WITHIN INTERVAL '15' SECOND
  DEFINE A AS speed > PREV(speed), B AS speed < 60
)"""

MATCH_STATE = """
SELECT * FROM cars MATCH_RECOGNIZE (
  PARTITION BY car
  MEASURES A._seq AS began, LAST(_seq) AS ended, AVG(B.speed) AS mean, MATCH_NUMBER() AS number
  PATTERN (A B+ C) WITHIN INTERVAL '40' SECOND
  DEFINE B AS speed >= A.speed, C AS speed < AVG(B.speed) AND COUNT(*) < 9
)"""

MEDIANS = """
SELECT * FROM cars MATCH_RECOGNIZE (
  PARTITION BY car
  MEASURES A._seq AS began, LAST(_seq) AS ended, MEDIAN(B.speed) AS middle, COUNT(*) AS n
  PATTERN (A B+ C) WITHIN INTERVAL '40' SECOND
  DEFINE B AS speed >= MEDIAN(B.speed) AND VAR_POP(B.speed) >= 0,
    C AS speed < QUANTILE_DISC(B.speed, 0.5) OR ARG_MAX(B.lane, B.speed) < MODE(lane)
)"""

PERMUTED = """
SELECT * FROM cars MATCH_RECOGNIZE (
  MEASURES FIRST(_seq) AS began, LAST(_seq) AS ended, FIRST(CLASSIFIER()) AS led, A.car AS car
  AFTER MATCH SKIP TO LAST C
  PATTERN (X PERMUTE(A, B+, C)) WITHIN INTERVAL '5' SECOND
  DEFINE A AS lane = 1, B AS lane = 2, C AS lane IS NULL AND PREV(lane) IS NOT NULL
)"""

UNMATCHED = """
SELECT * FROM cars MATCH_RECOGNIZE (
  PARTITION BY car, lane
  MEASURES MATCH_NUMBER() AS number, CLASSIFIER() AS part, FINAL MAX(speed) AS top
  ALL ROWS PER MATCH WITH UNMATCHED ROWS
  PATTERN (A B* | C{2}) WITHIN INTERVAL '12' SECOND
  DEFINE A AS speed > 1000, B AS speed < 60, C AS speed = 50.25
)"""

ABSENCE = """
SELECT * FROM cars MATCH_RECOGNIZE (
  PARTITION BY car
  MEASURES A._seq AS began, C._seq AS ended, LAST(D._seq) AS sure, COUNT(*) AS n
  AFTER MATCH SKIP TO NEXT ROW
  STRATEGY skip_till_next
  PATTERN (A NOT B C | A D{2} NOT B) WITHIN INTERVAL '20' SECOND
  DEFINE A AS speed < 0, B AS speed > 1000, C AS lane <> A.lane, D AS speed > A.speed
)"""

EVERY_WAY = """
SELECT * FROM cars MATCH_RECOGNIZE (
  PARTITION BY car
  MEASURES A._seq AS began, B._seq AS went_on, C._seq AS ended
  AFTER MATCH SKIP TO NEXT ROW
  STRATEGY skip_till_any
  PATTERN (A B C) WITHIN INTERVAL '8' SECOND
  DEFINE A AS speed < 1, B AS speed > A.speed, C AS speed > B.speed
)"""

TIMEOUTS = """
SELECT * FROM cars MATCH_RECOGNIZE (
  PARTITION BY car
  MEASURES FIRST(_seq) AS began, LAST(_seq) AS ended, CLASSIFIER() AS part,
    MATCH_NUMBER() AS number
  TIMEOUT ROWS
  STRATEGY skip_till_next
  PATTERN (A B{2} C) WITHIN INTERVAL '10' SECOND
  DEFINE A AS speed < 1, B AS lane = 1, C AS speed > 1000
)"""

TIES = """
SELECT * FROM cars MATCH_RECOGNIZE (
  PARTITION BY car ORDER BY ts, lane DESC, speed
  MEASURES CLASSIFIER() AS part, COUNT(*) AS n
  ALL ROWS PER MATCH
  PATTERN (A B C)
  DEFINE B AS lane < PREV(lane) OR speed > PREV(speed), C AS lane IS NULL
)"""

BELOW_AND_ABOVE = """
SELECT name, high - low AS rise, n * 2 AS twice FROM (
  SELECT ts, _seq, COALESCE(car, 'none') AS name, speed * 3.6 AS kmh FROM cars
  WHERE speed IS NOT NULL AND speed < 1000
) MATCH_RECOGNIZE (
  PARTITION BY name
  MEASURES A.kmh AS low, LAST(B.kmh) AS high, COUNT(*) AS n
  PATTERN (A B+) WITHIN INTERVAL '30' SECOND
  DEFINE B AS kmh >= PREV(kmh)
) WHERE n > 2 AND high > low"""

PAIRS = """
SELECT * FROM cars MATCH_RECOGNIZE (
  PARTITION BY car
  MEASURES A.ts AS began, B.ts AS ended, B.speed - A.speed AS gain
  PATTERN (A B) DEFINE B AS speed IS NOT NULL
)"""

PATTERNS = {
    "row_local": PatternQuery(ROW_LOCAL, bounded=False),
    "all_rows": PatternQuery(ALL_ROWS, bounded=False),
    "match_state": PatternQuery(MATCH_STATE, bounded=False),
    "medians": PatternQuery(MEDIANS),
    "permuted": PatternQuery(PERMUTED),
    "unmatched": PatternQuery(UNMATCHED, bounded=False),
    "absence": PatternQuery(ABSENCE),
    "every_way": PatternQuery(EVERY_WAY),
    "timeouts": PatternQuery(TIMEOUTS, bounded=False),
    "ties": PatternQuery(TIES),
    "below_and_above": PatternQuery(BELOW_AND_ABOVE),
    "pairs": PatternQuery(PAIRS),
}
