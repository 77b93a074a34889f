"""Aggregates × contexts: one value in every cell, or an error that says why there is none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

import eventide as ev
from eventide.api.database import Database
from eventide.errors import EventideError
from eventide.plan.aggregates import AGGREGATES, STANDING_ONLY
from tests.exploring import EXPLORING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {
    "v": "float64",
    "w": "float64",
    "i": "int64",
    "b": "bool",
    "t": "string",
    "d": "decimal(10,2)",
}
WILD = [1e200, 1e100, 1.0, -1e200, -1e100, 2.0]
SMALL = [1.0, 2.0, 10.0, 20.0, 2.0, None]
ROWS = [
    {
        "ts": f"2026-01-01T00:00:{n:02d}",
        "v": WILD[n],
        "w": SMALL[n],
        "i": n,
        "b": n > 0,
        "t": f"t{n % 3}",
        "d": Decimal(n) / 4,
    }
    for n in range(6)
]
END = {**ROWS[0], "ts": "2026-01-01T00:00:10", "i": 100}
"""The event that ends a situation."""
APART = [
    *(each for row in ROWS for each in (row, {**row, "ts": f"{row['ts']}.5", "i": 100})),
    {**ROWS[0], "ts": "2026-01-01T00:00:20", "i": 200},
]
"""Each event is a situation of its own, and then something else begins."""

OVER = "OVER (ORDER BY ts RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW)"
CONTEXTS = {
    "tumble": "SELECT {values} FROM s GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)",
    "hop": "SELECT {values} FROM s GROUP BY HOP(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE)",
    "session": "SELECT {values} FROM s GROUP BY SESSION(ts, INTERVAL '1' MINUTE)",
    "by count": "SELECT {values} FROM s GROUP BY TUMBLE(ROWS, 6)",
    "hop by count": "SELECT {values} FROM s GROUP BY HOP(ROWS, 4, 6)",
    "over": "SELECT {values} FROM s",
    "standing": "SELECT {values} FROM s [RANGE 1 MINUTE]",
    "standing rows": "SELECT {values} FROM s [ROWS 100]",
    "slide": "SELECT {values} FROM s [RANGE 1 MINUTE SLIDE 1 SECOND]",
    "measures": "SELECT {names} FROM s MATCH_RECOGNIZE (ORDER BY ts MEASURES {values} PATTERN (A+) "
    "DEFINE A AS true)",
    "all": "SELECT {values} FROM s",
    "all that": "SELECT {values} FROM s WHERE i > -1",
    "by key": "SELECT i < 100 AS k, {values} FROM s GROUP BY k",
    "situations": "SELECT {names} FROM ended SITUATIONS (DEFINE a AS i < 100 RETURN {values})",
    "return": "SELECT {names} FROM ended TPSTREAM (DEFINE a AS i < 100, c AS i < 100 "
    "PATTERN a equals c WITHIN 1 HOUR RETURN {values})",
    "matches": "SELECT {names} FROM apart TPSTREAM (DEFINE a AS i < 100, c AS i = 200 "
    "PATTERN a before c WITHIN 1 HOUR RETURN {values})",
}
_COLUMN = re.compile(r"\b(ts|[vwibtd])\b")


def asked(few: Sequence[str], context: str) -> str:
    """The query of some cells of a context, as x0, x1 and so on.

    RETURN names columns of a situation, or one value of each match.
    """
    if context == "over":
        few = [f"{each} {OVER}" for each in few]
    if context == "return":
        few = [_COLUMN.sub(r"a.\1", each).replace("(*)", "(a.*)") for each in few]
    if context == "matches":
        few = [_COLUMN.sub(r"FIRST(a.\1)", each) for each in few]
    names = [f"x{place}" for place in range(len(few))]
    values = ", ".join(f"{each} AS {name}" for each, name in zip(few, names, strict=True))
    return CONTEXTS[context].format(values=values, names=", ".join(names))


TABLE: dict[str, Any] = {
    "count(*)": 6,
    "count(w)": 5,
    "count_if(b)": 5,
    "count(*) FILTER (WHERE i > 1)": 4,
    "count(DISTINCT w)": 4,
    "sum(v)": 3.0,
    "sum(w)": 35.0,
    "sum(d)": Decimal("3.75"),
    "sum(w) FILTER (WHERE i > 1)": 32.0,
    "sum(DISTINCT w)": 33.0,
    "avg(v)": 0.5,
    "avg(DISTINCT i)": 2.5,
    "min(t)": "t0",
    "max(t)": "t2",
    "max(ts)": datetime(2026, 1, 1, 0, 0, 5),
    "min(w)": 1.0,
    "stddev(w)": 66.0**0.5,
    "stddev_samp(w)": 66.0**0.5,
    "stddev_pop(w)": 52.8**0.5,
    "variance(w)": 66.0,
    "var_samp(w)": 66.0,
    "var_pop(w)": 52.8,
    "first(w)": 1.0,
    "last(w)": None,
    "last(w) FILTER (WHERE w > 5)": 20.0,
    "arg_min(t, w)": "t0",
    "arg_max(t, i)": "t2",
    "max_by(i, w)": 3,
    "bool_and(b)": False,
    "every(b)": False,
    "bool_or(b)": True,
    "median(w)": 2.0,
    "median(d)": 0.625,
    "median(DISTINCT w)": 6.0,
    "quantile(w, 0.5) FILTER (WHERE i < 4)": 6.0,
    "quantile_cont(w, 0.25)": 2.0,
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY w)": 2.0,
    "quantile_disc(w, 0.5) FILTER (WHERE i < 4)": 2.0,
    "quantile_disc(t, 0.5)": "t1",
    "percentile_disc(0.5) WITHIN GROUP (ORDER BY t)": "t1",
    "mode(w)": 2.0,
    "mode(t)": "t0",
    "top_k(t, 2)": '[["t0", 2], ["t1", 2]]',
    "string_agg(t, '-')": "t0-t1-t2-t0-t1-t2",
    "string_agg(DISTINCT t, '-')": "t0-t1-t2",
    "listagg(t)": "t0,t1,t2,t0,t1,t2",
    "array_agg(w)": [1.0, 2.0, 10.0, 20.0, 2.0, None],
    "array_agg(t) FILTER (WHERE i > 3)": ["t1", "t2"],
    "array_agg(DISTINCT w ORDER BY ts)": [1.0, 2.0, 10.0, 20.0, None],
    "list(w)": [1.0, 2.0, 10.0, 20.0, 2.0, None],
    "corr(w, i)": 0.38924947208076144,
    "covar_pop(w, i)": 4.0,
    "covar_samp(w, i)": 5.0,
    "regr_slope(w, i)": 2.0,
    "approx_count_distinct(t)": 3,
    "approx_quantile(w, 0.5)": 1.9936617014173448,
    "approx_top_k(t, 1)": '[["t0", 2]]',
}


REFUSED = {("last(w) FILTER (WHERE w > 5)", "measures"): "choose rows with a variable's condition"}
"""In a match FIRST and LAST name rows."""
ORDERED = ("first(", "last(", "arg_", "max_by(", "string_agg(", "listagg(", "array_agg(", "list(")
REFUSED |= {
    (written, "matches"): "ORDER BY inside" if "ORDER BY ts" in written else "have no order"
    for written in TABLE
    if written.startswith(ORDERED)
}
"""Matches of one instant have no order."""


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Database:
    opened = ev.open(tmp_path_factory.mktemp("table"))
    opened.create_stream("s", COLUMNS).append(ROWS)
    opened.create_stream("ended", COLUMNS).append([*ROWS, END])
    opened.create_stream("apart", COLUMNS).append(APART)
    return opened


PARTS = range(len(TABLE) if EXPLORING else 8)
"""Into so many queries the aggregates are divided in each context: neighbours go apart."""


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("part", PARTS)
def test_an_aggregate_has_one_value_in_every_context(db: Database, part: int, context: str) -> None:
    few = [each for each in list(TABLE)[part :: len(PARTS)] if (each, context) not in REFUSED]
    if not few:
        return
    found = db.sql(asked(few, context)).to_arrow()
    for place, written in enumerate(few):
        value, wanted = found.column(f"x{place}")[-1].as_py(), TABLE[written]
        near = pytest.approx(wanted, rel=1e-15) if isinstance(value, float) else wanted
        assert value == near, written


@pytest.mark.parametrize(("written", "context"), REFUSED)
def test_an_aggregate_without_a_value_says_why(db: Database, written: str, context: str) -> None:
    with pytest.raises(EventideError, match=REFUSED[written, context]):
        db.sql(asked([written], context))


LISTED = ("top_k(", "approx_top_k(", "string_agg(", "listagg(", "array_agg(", "list(")
"""Aggregates that make a list, which a search cannot undo a row of."""


@pytest.mark.parametrize("written", TABLE)
def test_an_aggregate_has_the_same_value_in_a_condition(db: Database, written: str) -> None:
    wanted = TABLE[written]
    if isinstance(wanted, float):
        near = abs(wanted) * 1e-15
        holds = f"ABS({written} - CAST({wanted!r} AS double)) <= CAST({near!r} AS double)"
    elif isinstance(wanted, datetime):
        holds = f"{written} = TIMESTAMP '{wanted}'"
    else:
        literal = str(wanted) if isinstance(wanted, Decimal) else repr(wanted)
        holds = f"{written} = {literal}"
        if wanted is None or isinstance(wanted, list):
            holds = f"{written} IS NULL"
    query = (
        "SELECT n FROM s MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(*) AS n PATTERN (A* B) "
        f"DEFINE B AS i = 5 AND {holds})"
    )
    why = REFUSED.get((written, "measures")) or (
        "makes a list" if written.startswith(LISTED) else None
    )
    if why is not None:
        with pytest.raises(EventideError, match=why):
            db.sql(query)
        return
    assert db.sql(query).rows() == [{"n": 6}]


def test_every_aggregate_is_in_the_table() -> None:
    spelled = " ".join(TABLE)
    missing = [name for name in AGGREGATES if f"{name}(" not in spelled]
    assert {*missing} == {*STANDING_ONLY}


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT DECAYED_SUM(w, '1 s') FROM s GROUP BY TUMBLE(ROWS, 6)", "standing queries"),
        ("SELECT DECAYED_SUM(w, '1 s') FROM s [RANGE 1 MINUTE]", "without SLIDE"),
        ("SELECT FREQUENT(t, 0.1) FROM s GROUP BY TUMBLE(ROWS, 6)", "standing queries"),
        ("SELECT FREQUENT(t, 0.1) FROM s [RANGE 1 MINUTE]", "without SLIDE"),
        ("SELECT FREQUENT(t, 0.1) FROM s [ROWS 3 SLIDE 1 s]", "before its time"),
        (
            "SELECT x FROM s MATCH_RECOGNIZE (ORDER BY ts MEASURES 1 AS x PATTERN (A+) "
            "DEFINE A AS ARRAY_AGG(t) IS NULL)",
            "makes a list",
        ),
        ("SELECT STRING_AGG(t, '' ORDER BY w) FROM s GROUP BY TUMBLE(ROWS, 6)", "order of time"),
        ("SELECT CORR(DISTINCT w) FROM s GROUP BY TUMBLE(ROWS, 6)", "CORR"),
    ],
)
def test_a_pair_without_a_meaning_says_why(db: Database, query: str, why: str) -> None:
    with pytest.raises(EventideError, match=why):
        db.sql(query)


def test_aggregates_of_a_stream_are_the_same(db: Database) -> None:
    stream = db.stream("s")
    found = stream.aggregate(*TABLE, every="1 min").to_arrow()
    for each, wanted in TABLE.items():
        (value,) = found.column(each).to_pylist()
        assert value == (pytest.approx(wanted, rel=1e-15) if isinstance(value, float) else wanted)
    whole = stream.aggregate("quantile_disc(t, 0.5)", "count(*)").rows()
    assert whole == [{"quantile_disc(t, 0.5)": "t1", "count(*)": 6}]


@pytest.mark.parametrize(
    ("condition", "matched"),
    [
        ("COUNT(*) <= 2", [2, 2, 2]),
        ("SUM(w) < 12", [2, 1, 2]),
        ("BOOL_AND(b)", [5]),
        ("NOT BOOL_OR(b)", [1]),
    ],
)
def test_conditions_aggregate_the_match_so_far(
    db: Database, condition: str, matched: list[int]
) -> None:
    query = (
        "SELECT n FROM s MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(*) AS n PATTERN (A+) "
        f"DEFINE A AS {condition})"
    )
    assert [row["n"] for row in db.sql(query).rows()] == matched


@pytest.mark.spark
def test_without_a_window_spark_has_the_same_values(db: Database, spark: SparkSession) -> None:
    wanted = [each for each in TABLE if not each.startswith(("sum(DISTINCT", "approx_top"))]
    listed = ", ".join(f"{each} AS x{place}" for place, each in enumerate(wanted))
    for query in (
        f"SELECT i < 100 AS k, {listed} FROM s GROUP BY k",
        f"SELECT {listed} FROM s WHERE i > -1",
    ):
        found = ev.spark(spark, db.path).sql(query).toArrow().to_pylist()
        assert len(found) == 1
        (row,) = db.sql(query).rows()
        for place, each in enumerate(wanted):
            value, here = found[0][f"x{place}"], row[f"x{place}"]
            if isinstance(value, datetime):
                value = value.replace(tzinfo=None)
            assert value == here, each
    nothing = ev.spark(spark, db.path).sql("SELECT SUM(v) AS x, COUNT(*) AS n FROM s WHERE i > 100")
    assert nothing.toArrow().to_pylist() == [{"x": None, "n": 0}]
