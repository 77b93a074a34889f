"""Standing queries of every kind, and histories of streams to ask them over."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

from hypothesis import strategies as st

from eventide.schema import Schema
from tests.naive.standing.answers import Question, Streams
from tests.naive.standing.windows import SECOND, Window
from tests.naive.windows import Event

EVENT = Schema.of({"k": "string", "g": "int64", "v": "int64", "f": "float64"})
VERSION = replace(Schema.of({"k": "string", "w": "int64", "deleted": "bool"}), key=("k",))
CATALOG: Mapping[str, Schema] = {**dict.fromkeys("abcd", EVENT), "r": VERSION}


def asking(name: str, select: str, sql: str = "", /, **windows: str | Window) -> Question:
    """A question whose windows are written `stream RANGE 4 SECONDS`."""
    read = {
        alias: said if isinstance(said, Window) else Window(said[:1], said[2:])
        for alias, said in windows.items()
    }
    return Question(name, select, read, sql=sql)


RELATION = Window("r", relation=("k",))
A4, B6, C3, D5 = "a RANGE 4 SECONDS", "b RANGE 6 SECONDS", "c RANGE 3 SECONDS", "d RANGE 5 SECONDS"

FILTER = asking("filter", "SELECT x.k, x.v /*, x._id*/ FROM {x} WHERE x.v > 1 OR x.g = 1", x=A4)
PROJECT = asking("project", "SELECT x.k, x.v * 2 + 1 AS w, x.ts /*, x._id*/ FROM {x}", x=A4)
UNION = asking(
    "union",
    "SELECT x.k, x.v /*, x._id*/ FROM {x} UNION ALL "
    "SELECT y.k, y.v /*, y._id*/ FROM {y} WHERE y.v > 0",
    x=A4, y="b RANGE 4 SECONDS",
)  # fmt: skip
UNEQUAL_UNION = replace(UNION, name="unequal_union", windows=asking("", "", x=A4, y=B6).windows)
JOIN = asking(
    "join",
    "SELECT x.k, x.v, y.v AS w /*, x._id, y._id*/ FROM {x} JOIN {y} ON x.k = y.k",
    x=A4,
    y=B6,
)
EQUAL_JOIN = replace(
    JOIN, name="equal_join", windows=asking("", "", x=A4, y="b RANGE 4 SECONDS").windows
)
JOIN_3 = asking(
    "join_3",
    "SELECT x.k, x.v, z.v AS w /*, x._id, y._id, z._id*/ "
    "FROM {x} JOIN {y} ON x.k = y.k JOIN {z} ON y.k = z.k",
    x=A4, y=B6, z=C3,
)  # fmt: skip
JOIN_4 = asking(
    "join_4",
    "SELECT x.k, u.v /*, x._id, y._id, z._id, u._id*/ FROM {x} JOIN {y} ON x.k = y.k "
    "JOIN {z} ON z.k = x.k JOIN {u} ON u.k = z.k WHERE u.v >= x.v",
    x=A4, y="b RANGE 3 SECONDS", z=C3, u=D5,
)  # fmt: skip
TWO_KEYS = asking(
    "two_keys",
    "SELECT x.k, x.g, y.v /*, x._id, y._id*/ FROM {x} JOIN {y} ON x.k = y.k AND x.g = y.g",
    x=A4, y=B6,
)  # fmt: skip
RESIDUAL = asking(
    "residual",
    "SELECT x.v, y.v AS w /*, x._id, y._id*/ FROM {x} JOIN {y} ON x.k = y.k AND x.v < y.v",
    x=A4, y=B6,
)  # fmt: skip
BAND = asking(
    "band",
    "SELECT x.v, y.v AS w /*, x._id, y._id*/ FROM {x} JOIN {y} "
    "ON x.v BETWEEN y.v - 1 AND y.v + 1 AND x.g = y.g",
    x=A4, y=B6,
)  # fmt: skip
KEYLESS_BAND = asking(
    "keyless_band",
    "SELECT x.v, y.v AS w /*, x._id, y._id*/ FROM {x} JOIN {y} ON abs(x.v - y.v) <= 1",
    x=A4, y="b RANGE 3 SECONDS",
)  # fmt: skip
FLOAT_BAND = asking(
    "float_band",
    "SELECT x.v, y.v AS w /*, x._id, y._id*/ FROM {x} JOIN {y} "
    "ON x.f BETWEEN y.f - 1 AND y.f + 1",
    x=A4, y=B6,
)  # fmt: skip
TIME_BAND = asking(
    "time_band",
    "SELECT x.k, x.ts, y.ts AS later /*, x._id, y._id*/ FROM {x} JOIN {y} ON x.k = y.k "
    "AND y.ts BETWEEN x.ts AND x.ts + INTERVAL '2' SECOND",
    x=A4, y=B6,
)  # fmt: skip
CHAIN = asking(
    "chain",
    "SELECT x.v, z.v AS w /*, x._id, y._id, z._id*/ "
    "FROM {x} JOIN {y} ON x.k = y.k JOIN {z} ON y.g = z.g",
    x=A4, y=B6, z=C3,
)  # fmt: skip
SELF_JOIN = asking(
    "self_join",
    "SELECT x.v, y.v AS w /*, x._id, y._id*/ FROM {x} JOIN {y} ON x.k = y.k AND x._seq < y._seq",
    x=A4, y="a RANGE 2 SECONDS",
)  # fmt: skip
FLOAT_KEYS = asking(
    "float_keys",
    "SELECT x.f, x.v, y.v AS w /*, x._id, y._id*/ FROM {x} JOIN {y} ON x.f = y.f",
    x=A4, y=B6,
)  # fmt: skip
FILTERED_JOIN = asking(
    "filtered_join",
    "SELECT x.k, x.v + y.v AS total /*, x._id, y._id*/ FROM {x} JOIN {y} ON x.k = y.k "
    "WHERE x.v > 0 AND y.g = 1 AND x.v + y.v > 2",
    x=A4, y=B6,
)  # fmt: skip

RELATION_JOIN = asking(
    "relation_join", "SELECT x.k, x.v, r.w FROM {x} JOIN {r} ON x.k = r.k", x=A4, r=RELATION
)
LATEST_JOIN = asking(
    "join_latest",
    "SELECT x.k, x.v, y.v AS w FROM {x} JOIN {y} ON x.k = y.k",
    x=A4, y="b LATEST BY k",
)  # fmt: skip
NEWEST = (
    "SELECT x.k, x.v, y.{value} /*, x._id, y._id*/ FROM {{x}} {kind} JOIN LATERAL "
    "(SELECT * FROM {{y}} WHERE y.k = x.k AND y.ts {sign} x.ts ORDER BY y.ts DESC, y._seq DESC "
    "LIMIT 1) y ON {condition}"
)
SYSTEM_TIME = asking(
    "system_time",
    "SELECT x.k, x.v, y.w FROM {x} JOIN r FOR SYSTEM_TIME AS OF x.ts AS y ON x.k = y.k",
    NEWEST.format(kind="", sign="<=", value="w", condition="y.deleted IS NOT TRUE"),
    x=A4, y=Window("r"),
)  # fmt: skip
AS_OF = asking(
    "as_of",
    "SELECT x.k, x.v, y.v AS w FROM {x} ASOF JOIN {y} ON x.k = y.k AND y.ts <= x.ts",
    NEWEST.format(kind="", sign="<=", value="v AS w", condition="true"),
    x=A4, y=Window("b"),
)  # fmt: skip
AS_OF_LEFT = asking(
    "as_of_left",
    "SELECT x.k, x.v, y.v AS w FROM {x} ASOF LEFT JOIN {y} ON x.k = y.k AND y.ts < x.ts",
    NEWEST.format(kind="LEFT", sign="<", value="v AS w", condition="true"),
    x=A4, y=Window("b"),
)  # fmt: skip

LEFT = asking("left", "SELECT x.k, x.v, y.v AS w FROM {x} LEFT JOIN {y} ON x.k = y.k", x=A4, y=B6)
LEFT_OF_LEFT = asking(
    "left_of_left",
    "SELECT x.k, x.v, y.v AS w, z.v AS u FROM {x} LEFT JOIN {y} ON x.k = y.k AND y.v > 0 "
    "AND x.g = 1 LEFT JOIN {z} ON y.g = z.g",
    x=B6, y=A4, z=C3,
)  # fmt: skip
LEFT_FILTERED = asking(
    "left_filtered",
    "SELECT x.k, x.v, y.v AS w, r.w AS u FROM {x} JOIN {y} ON x.g = y.g LEFT JOIN {r} ON x.k = r.k "
    "WHERE x.v > 0 AND (r.w IS NULL OR r.w > y.v)",
    x=A4, y=C3, r=RELATION,
)  # fmt: skip
RIGHT_BAND = asking(
    "right_band",
    "SELECT u.v, x.v AS w, y.k FROM {u}, {x} RIGHT JOIN {y} ON abs(x.v - y.v) <= 1",
    u="d RANGE 2 SECONDS", x="a ROWS 2", y=C3,
)  # fmt: skip
FULL_CONDITIONS = asking(
    "full_conditions",
    "SELECT x.v, x.g, y.v AS w, y.g AS h FROM {x} FULL JOIN {y} "
    "ON x.k = y.k AND y.v > 0 AND x.g = 1",
    x="a ROWS 4", y="b PARTITION BY k ROWS 2",
)  # fmt: skip
FULL_RESIDUAL = asking(
    "full_residual",
    "SELECT x.k, x.v, y.k AS j, y.v AS w FROM {x} FULL JOIN {y} ON x.k = y.k AND x.v <= y.v",
    x=B6, y=C3,
)  # fmt: skip
FULL_GROUP = asking(
    "full_group",
    "SELECT k, COUNT(x.v) AS n, COUNT(y.v) AS m FROM {x} FULL JOIN {y} USING (k) GROUP BY k",
    x=A4, y=B6,
)  # fmt: skip
OUTER = (
    LEFT, LEFT_OF_LEFT, LEFT_FILTERED, RIGHT_BAND, FULL_CONDITIONS, FULL_RESIDUAL, FULL_GROUP,
)  # fmt: skip

PREDICATE_WINDOW = asking(
    "predicate_window", "SELECT x.k, x.v FROM {x} WHERE x.v > 1", x="a LATEST BY k"
)

DISTINCT = asking("distinct", "SELECT DISTINCT x.k, x.g FROM {x}", x=A4)
DISTINCT_FLOATS = asking("distinct_floats", "SELECT DISTINCT x.f FROM {x}", x=A4)
DISTINCT_JOIN = asking(
    "distinct_join", "SELECT DISTINCT x.g, y.g AS h FROM {x} JOIN {y} ON x.k = y.k", x=A4, y=B6
)
DISTINCT_UNION = asking(
    "distinct_union", "SELECT x.k FROM {x} UNION SELECT y.k FROM {y}", x=A4, y=B6
)
DISTINCT_ROWS = asking("distinct_rows", "SELECT DISTINCT x.k FROM {x}", x="a ROWS 3")
EXCEPT_ALL = asking(
    "except_all", "SELECT x.k, x.g FROM {x} EXCEPT ALL SELECT y.k, y.g FROM {y}", x=A4, y=B6
)
EXCEPT_OF_JOIN = asking(
    "except_of_join",
    "SELECT x.k FROM {x} JOIN {z} ON x.g = z.g EXCEPT ALL SELECT y.k FROM {y}",
    x=A4, z=C3, y="b RANGE 3 SECONDS",
)  # fmt: skip
EXCEPT = asking("except", "SELECT x.k FROM {x} EXCEPT SELECT y.k FROM {y}", x=A4, y=C3)
INTERSECT = asking(
    "intersect", "SELECT x.k, x.g FROM {x} INTERSECT SELECT y.k, y.g FROM {y}", x=A4, y=C3
)
INTERSECT_CHAIN = asking(
    "intersect_chain",
    "SELECT x.k FROM {x} INTERSECT ALL SELECT y.k FROM {y} INTERSECT ALL SELECT z.k FROM {z}",
    x=A4, y=B6, z="c ROWS 5",
)  # fmt: skip
NOT_EXISTS = asking(
    "not_exists",
    "SELECT x.k, x.v FROM {x} WHERE NOT EXISTS (SELECT 1 FROM {y} WHERE y.k = x.k)",
    x=A4, y=C3,
)  # fmt: skip
EXISTS = asking(
    "exists",
    "SELECT x.k, x.v FROM {x} WHERE EXISTS (SELECT 1 FROM {y} WHERE y.k = x.k AND y.v > 0)",
    x=A4, y=B6,
)  # fmt: skip

GROUP = asking(
    "group",
    "SELECT x.k, COUNT(*) AS n, COUNT(x.v) AS m, SUM(x.v) AS s, AVG(x.v) AS mean, "
    "MIN(x.v) AS low, MAX(x.v) AS high, STDDEV(x.v) AS spread, MIN(x.f) AS least "
    "FROM {x} GROUP BY x.k",
    x=A4,
)  # fmt: skip
HOLISTIC = asking(
    "holistic",
    "SELECT x.g, COUNT(DISTINCT x.k) AS kinds, MEDIAN(x.v) AS middle, QUANTILE(x.v, 0.9) AS high "
    "FROM {x} GROUP BY x.g",
    x=A4,
)  # fmt: skip
TOP_K = asking(
    "top_k",
    "SELECT x.g, TOP_K(x.v, 2) AS best FROM {x} GROUP BY x.g",
    "SELECT x.g, '[' || coalesce(string_agg('[' || v || ', ' || n || ']', ', ' "
    "ORDER BY n DESC, v), '') || ']' AS best "
    "FROM (SELECT DISTINCT x.g FROM {x}) x LEFT JOIN (SELECT x.g, x.v, count(*) AS n, "
    "row_number() OVER (PARTITION BY x.g ORDER BY count(*) DESC, x.v) AS place "
    "FROM {x} WHERE x.v IS NOT NULL GROUP BY x.g, x.v) y "
    "ON y.g IS NOT DISTINCT FROM x.g AND y.place <= 2 GROUP BY x.g",
    x=A4,
)  # fmt: skip
FREQUENT = asking(
    "frequent",
    "SELECT x.g, FREQUENT(x.v, 0.3), COUNT(*) AS n FROM {x} GROUP BY x.g",
    "SELECT x.g, x.v, count(*) AS lower, count(*) AS upper, t.n FROM {x} JOIN "
    "(SELECT x.g, count(*) AS n, count(x.v) AS m FROM {x} GROUP BY x.g) t "
    "ON t.g IS NOT DISTINCT FROM x.g WHERE x.v IS NOT NULL GROUP BY x.g, x.v, t.n, t.m "
    "HAVING count(*) * 10 > t.m * 3",
    x=A4,
)  # fmt: skip
TOTAL = asking(
    "total", "SELECT COUNT(*) AS n, SUM(x.v) AS s FROM {x} /*!HAVING count(*) > 0*/", x=A4
)
GROUP_FLOATS = asking("group_floats", "SELECT x.f, SUM(x.f) AS s FROM {x} GROUP BY x.f", x=A4)
HAVING = asking(
    "having",
    "SELECT x.k, SUM(x.v) AS s FROM {x} WHERE x.v >= 0 GROUP BY x.k HAVING COUNT(*) >= 2",
    x="a RANGE 6 SECONDS",
)  # fmt: skip
GROUP_JOIN = asking(
    "group_join",
    "SELECT x.k, COUNT(*) AS n, MAX(y.v) AS high FROM {x} JOIN {y} ON x.k = y.k GROUP BY x.k",
    x=A4, y=B6,
)  # fmt: skip
GROUP_EXCEPT = asking(
    "group_except",
    "SELECT q.k, COUNT(*) AS n FROM "
    "(SELECT x.k, x.g FROM {x} EXCEPT ALL SELECT y.k, y.g FROM {y}) q GROUP BY q.k",
    x=A4, y=C3,
)  # fmt: skip
GROUP_ROWS = asking(
    "group_rows", "SELECT x.g, COUNT(*) AS n, MIN(x.v) AS low FROM {x} GROUP BY x.g", x="a ROWS 4"
)
EXTREMES = (
    "SELECT q.k, MIN(q.f) AS a, MAX(q.f) AS b, MIN(q.v) AS c, MAX(q.v) AS d, MEDIAN(q.v) AS e, "
    "COUNT(DISTINCT q.f) AS n FROM (%s) q GROUP BY q.k"
)
EXTREMES_JOIN = asking(
    "extremes_join",
    EXTREMES % "SELECT x.k, x.f, y.v FROM {x} JOIN {y} ON x.k = y.k",
    x=A4, y=B6,
)  # fmt: skip
EXTREMES_UNION = asking(
    "extremes_union",
    EXTREMES % "SELECT x.k, x.f, x.v FROM {x} UNION ALL SELECT y.k, y.f, y.v FROM {y}",
    x=A4, y="b RANGE 9 SECONDS",
)  # fmt: skip
EXTREMES_ROWS = asking("extremes_rows", EXTREMES % "SELECT x.k, x.f, x.v FROM {x}", x="a ROWS 6")
WEIGHT = "pow(0.5, date_diff('microsecond', {time}, {{now}}) / 3e6)"
DECAYED = asking(
    "decayed",
    "SELECT x.k, DECAYED_SUM(x.v, '3 s') AS s, DECAYED_COUNT('3 s') AS n, COUNT(*) AS m, "
    "DECAYED_AVG(x.v, INTERVAL '3' SECOND) AS mean, MAX(x.v) AS high, SUM(x.f) AS t "
    "FROM {x} GROUP BY x.k",
    "SELECT x.k, sum(x.v * {w}) AS s, sum({w}) AS n, count(*) AS m, "
    "sum(x.v * {w}) / sum({w}) FILTER (WHERE x.v IS NOT NULL) AS mean, max(x.v) AS high, "
    "sum(x.f) AS t "
    "FROM {{x}} GROUP BY x.k".format(w=WEIGHT.format(time="x.ts")),
    x=A4,
)  # fmt: skip
DECAYED_EVER = replace(
    DECAYED, name="decayed_ever", windows=asking("", "", x="a RANGE UNBOUNDED").windows
)
DECAYED_JOIN = asking(
    "decayed_join",
    "SELECT x.g, DECAYED_SUM(y.v + 1, '3 s') AS s FROM {x} JOIN {y} ON x.k = y.k GROUP BY x.g",
    "SELECT x.g, sum((y.v + 1) * {w}) AS s FROM {{x}} JOIN {{y}} ON x.k = y.k GROUP BY x.g".format(
        w=WEIGHT.format(time="greatest(x.ts, y.ts)")
    ),
    x=A4, y=B6,
)  # fmt: skip
TOP = asking(
    "top",
    "SELECT x.k, x.v FROM {x} "
    "ORDER BY x.v DESC NULLS LAST, x.k = 'p' NULLS LAST, x.k = 'q' LIMIT 3",
    x=A4,
)  # fmt: skip
TOP_GROUPS = asking(
    "top_groups",
    "SELECT x.k, COUNT(*) AS n FROM {x} GROUP BY x.k "
    "ORDER BY n DESC, x.k = 'p' NULLS LAST, x.k = 'q' LIMIT 2",
    x=A4,
)  # fmt: skip
SCALAR = asking(
    "scalar",
    "SELECT x.k, x.v FROM {x} WHERE x.g >= 0 AND x.v > (SELECT AVG(y.v) + 1 FROM {y})",
    x=A4, y=B6,
)  # fmt: skip
TOP_BY_KEY = asking(
    "top_by_key",
    "SELECT q.g, q.k, q.v FROM (SELECT x.g, x.k, x.v, ROW_NUMBER() OVER (PARTITION BY x.g "
    "ORDER BY x.v DESC NULLS LAST, x.k = 'p' NULLS LAST, x.k = 'q') AS place FROM {x}) q "
    "WHERE q.place <= 2",
    x=A4,
)  # fmt: skip
TOP_BY_KEY_JOIN = asking(
    "top_by_key_join",
    "SELECT q.k, q.v, q.w FROM (SELECT x.k, x.v, y.v AS w, ROW_NUMBER() OVER (PARTITION BY x.k "
    "ORDER BY x.v, y.v DESC NULLS LAST) AS place FROM {x} JOIN {y} ON x.k = y.k) q "
    "WHERE q.v IS NOT NULL AND q.place = 1",
    x=A4, y="b ROWS 3",
)  # fmt: skip
TOP_TIES = asking(
    "top_ties",
    "SELECT x.g, x.ts FROM {x} ORDER BY x.g NULLS LAST /*!, x.ts*/ LIMIT 3",
    x=A4,
)  # fmt: skip
NESTED = asking(
    "nested",
    "SELECT q.k, q.n, y.v FROM (SELECT x.k, COUNT(*) AS n FROM {x} GROUP BY x.k) q "
    "JOIN {y} ON q.k = y.k WHERE q.n > 1",
    x=A4, y=C3,
)  # fmt: skip
NESTED_DISTINCT = asking(
    "nested_distinct",
    "SELECT q.k, y.v FROM (SELECT DISTINCT x.k FROM {x}) q JOIN {y} ON q.k = y.k",
    x=A4, y=C3,
)  # fmt: skip
NESTED_UNION = asking(
    "nested_union",
    "SELECT q.k, z.v /*, q._id, z._id*/ FROM (SELECT x.k /*, x._id*/ FROM {x} UNION ALL "
    "SELECT y.k /*, y._id*/ FROM {y}) q JOIN {z} ON q.k = z.k",
    x=A4, y=B6, z=C3,
)  # fmt: skip


def windowed(name: str, window: str, strict: bool = False) -> tuple[Question, Question]:
    """A query over one window, alone and joined with another."""
    alone = "SELECT x.k, x.v /*, x._id*/ FROM {x}"
    joined = "SELECT x.k, x.v, y.v AS w /*, x._id, y._id*/ FROM {x} JOIN {y} ON x.k = y.k"
    if strict:
        alone, joined = (text.split(" /*")[0] + text.split("*/")[1] for text in (alone, joined))
    return (
        asking(name, alone, x=f"a {window}"),
        asking(f"{name}_join", joined, x=f"a {window}", y=C3),
    )


WINDOWS = (
    *windowed("unbounded", "RANGE UNBOUNDED"),
    *windowed("jump", "RANGE 5 SECONDS JUMP 3 SECONDS"),
    *windowed("tumble", "TUMBLE 4 SECONDS"),
    *windowed(
        "since", "SINCE TIMESTAMP '1970-01-01 00:00:02' UNTIL TIMESTAMP '1970-01-01 00:00:07'"
    ),
    *windowed("now", "NOW"),
    *windowed("rows", "ROWS 3", strict=True),
    *windowed("partition_rows", "PARTITION BY k ROWS 2", strict=True),
    *windowed("latest", "LATEST BY k", strict=True),
    *windowed("session", "SESSION 2 SECONDS", strict=True),
    *windowed("partition_session", "PARTITION BY k SESSION 3 SECONDS", strict=True),
)

PLAIN = (
    FILTER, PROJECT, UNION, UNEQUAL_UNION, JOIN, EQUAL_JOIN, JOIN_3, JOIN_4, TWO_KEYS, RESIDUAL,
    BAND, KEYLESS_BAND, TIME_BAND, CHAIN, SELF_JOIN, FLOAT_KEYS, FILTERED_JOIN, RELATION_JOIN,
    LATEST_JOIN, SYSTEM_TIME, AS_OF, AS_OF_LEFT, DISTINCT, DISTINCT_FLOATS, DISTINCT_JOIN,
    DISTINCT_UNION, DISTINCT_ROWS, EXCEPT_ALL, EXCEPT_OF_JOIN, EXCEPT, INTERSECT, NOT_EXISTS,
    EXISTS, GROUP, HOLISTIC, TOP_K, TOTAL, GROUP_FLOATS, HAVING, GROUP_JOIN, GROUP_EXCEPT,
    GROUP_ROWS, EXTREMES_JOIN, EXTREMES_UNION, EXTREMES_ROWS, TOP, TOP_GROUPS, TOP_TIES, TOP_BY_KEY,
    TOP_BY_KEY_JOIN, SCALAR, NESTED, NESTED_DISTINCT, NESTED_UNION, *WINDOWS, *OUTER,
    PREDICATE_WINDOW, FLOAT_BAND, INTERSECT_CHAIN,
)  # fmt: skip
"""Queries whose answer is that of the present windows."""

SLIDING = tuple(
    question.sliding(2)
    for question in (
        FILTER, UNEQUAL_UNION, JOIN, JOIN_3, AS_OF, SYSTEM_TIME, RELATION_JOIN, DISTINCT,
        DISTINCT_JOIN, EXCEPT_ALL, NOT_EXISTS, GROUP, GROUP_JOIN, GROUP_FLOATS, TOTAL, HAVING,
        TOP_GROUPS, NESTED, FULL_RESIDUAL, DECAYED, DECAYED_EVER, DECAYED_JOIN, FREQUENT,
    )
)  # fmt: skip
INTERNAL = (
    FILTER.internally("x"),
    JOIN.internally("x", "y"),
    JOIN.internally("x"),
    JOIN_3.internally("y", "z"),
    UNEQUAL_UNION.internally("x", "y"),
    GROUP.internally("x"),
    JOIN.internally("x", "y").sliding(2),
)
OUTPUT_WINDOWS = (
    FILTER.reporting("WSTREAM", "[ROWS 3]"),
    JOIN.reporting("WSTREAM", "[ROWS 3]"),
    JOIN.reporting("WSTREAM", "[RANGE 3 SECONDS]"),
    GROUP.reporting("WSTREAM", "[ROWS 4]"),
)
REPORTED = (
    FILTER, UNEQUAL_UNION, JOIN, AS_OF, DISTINCT, DISTINCT_JOIN, EXCEPT_ALL, NOT_EXISTS, GROUP,
    TOP_GROUPS, RELATION_JOIN, SYSTEM_TIME, LEFT,
)  # fmt: skip
REPORTS = (
    *(question.reporting(report) for question in REPORTED for report in ("ISTREAM", "DSTREAM")),
    *(question.reporting("RSTREAM") for question in (JOIN, DISTINCT, GROUP)),
    *(
        question.sliding(3).reporting(report)
        for question in (JOIN, DISTINCT, GROUP_JOIN, EXCEPT_ALL)
        for report in ("ISTREAM", "DSTREAM", "RSTREAM", "ISTREAM RESTORE")
    ),
    LEFT.sliding(3).reporting("ISTREAM RESTORE"),
    # The last value of each key at regular instants.
    PREDICATE_WINDOW.sliding(3).reporting("RSTREAM"),
    *(question.sliding(3).reporting("RSTREAM RESTORE") for question in (FILTER, JOIN, JOIN_3)),
)
ANSWERED = (*PLAIN, *SLIDING, *INTERNAL)


def events_of(choose: random.Random, most: int, delay: int) -> list[Event]:
    """Some events in order: bursts at one instant, gaps, nulls, and some twice."""
    tick, events = delay - 4, list[Event]()
    for _ in range(choose.randint(most // 2, most)):
        tick += choose.choice((0, 0, 0, 0, 1, 1, 2, 4))
        values = {
            "k": choose.choice(("p", "p", "q", "q", "s", None)),
            "g": choose.choice((1, 1, 2, None)),
            "v": choose.choice((0, 1, 2, 3, 5, None)),
            "f": choose.choice((0.0, -0.0, 1.5, float("nan"), None)),
        }
        if events and choose.random() < 0.2:
            values = {name: events[-1][name] for name in values}
        events.append({"ts": tick * SECOND, "_seq": len(events), **values})
    return events


def versions_of(choose: random.Random) -> list[Event]:
    """Versions of the rows of a relation: changed, deleted, put back."""
    tick, versions = -4, list[Event]()
    for _ in range(choose.randint(0, 14)):
        tick += choose.choice((0, 1, 1, 2, 4))
        key, value = choose.choice(("p", "q", "q", None)), choose.choice((1, 2, 3, None))
        gone = choose.random() < 0.3
        row = {"k": key, "w": value, "deleted": gone}
        versions.append({"ts": tick * SECOND, "_seq": len(versions), **row})
    return versions


def history(seed: int) -> Streams:
    """Streams with some events each; one is often idle or far behind the others."""
    choose = random.Random(seed)
    most = choose.choice((2, 10, 16, 24))
    slow = choose.choice("abcdr")
    delay = choose.choice((0, 3, 8))
    streams = {name: events_of(choose, most, delay if name == slow else 0) for name in "abcd"}
    if delay == 8:
        streams[slow] = []
    return {**streams, "r": versions_of(choose)}


def histories() -> st.SearchStrategy[Streams]:
    """Histories to draw from."""
    return st.integers(0, 2**32).map(history)


@st.composite
def events_drawn(draw: st.DrawFn) -> list[Event]:
    """A few events of one stream, which shrink to fewer and simpler ones."""
    some = st.tuples(
        st.integers(0, 3),
        st.sampled_from(("p", "q", None)),
        st.sampled_from((1, 2, None)),
        st.sampled_from((0, 1, 2, None)),
    )
    tick, events = 0, list[Event]()
    for later, k, g, v in draw(st.lists(some, max_size=9)):
        tick += later
        values = {"k": k, "g": g, "v": v, "f": None}
        events.append({"ts": tick * SECOND, "_seq": len(events), **values})
    return events
