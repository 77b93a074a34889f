"""Functions of texts and times, as the docs describe them, on DuckDB and on Spark."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import eventide
from eventide.engines.history.rest import run_rest
from eventide.errors import BindError, EventideError, UnsupportedError
from eventide.lang.sql import plan_sql
from eventide.lang.sql.rest.text import said
from eventide.plan.nodes import Project, Relational
from eventide.schema import Schema
from tests.operators.expressions.test_evaluate import (
    LIKE_DUCKDB,
    ROWS,
    SCHEMA,
    at,
    batch,
    bound,
    by_us,
)
from tests.operators.expressions.test_evaluate import _plain as plain_value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DOCS = (Path(__file__).parents[3] / "docs" / "sql.md").read_text()
CATALOG = {"r": SCHEMA, "one": Schema.of({"k": "int64"})}
ODD = [
    ("1900-01-02 03:04:05.000006", 1900, "\u00a0 a\t"),
    ("2100-12-31 23:59:59.999999", 2100, " e\u0301a "),
    ("2038-01-19 03:14:08", 2038, " \u3000"),
]
"""Times beyond 32 bits of seconds, and texts whose characters are not what one sees."""
EVENTS = pa.Table.from_batches(
    [batch([*ROWS, *((at(ts), a, a, *ROWS[0][3:6], s, *ROWS[0][7:]) for ts, a, s in ODD)])]
)
ONE = pa.table({"ts": pa.array([0], pa.timestamp("us")), "k": pa.array([1])})
GAPS = {"CAST(x AS VARCHAR)", "CAST(z AS VARCHAR)", r"'a\xAAb'::BLOB"}
"""Expressions of tests/golden/functions.txt that are not handed to Spark."""


def _rows_of_docs() -> dict[str, list[str]]:
    """Return the expressions of the table in docs/sql.md by what it says of them."""
    table = _DOCS.partition("## Functions of texts and times")[2].partition("## ")[0]
    found: dict[str, list[str]] = {}
    for line in table.splitlines():
        row = re.fullmatch(r"\| (.+) \| (ours|handed over|embedded|refused) \|", line)
        if row is not None:
            texts = re.findall(r"`([^`]+)`", row[1])
            found.setdefault(row[2], []).extend(each.replace("\\|", "|") for each in texts)
    return found


DOCS = _rows_of_docs()


def around(*texts: str) -> str:
    """Return a query in which the engine's SQL has to compute the texts."""
    items = ", ".join(f"{text} AS v{place}" for place, text in enumerate(texts))
    return f"SELECT a AS number, {items} FROM r JOIN (SELECT k FROM one) o ON TRUE"


def plain(value: object) -> Any:  # noqa: ANN401
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return plain_value(value)


def columns(table: pa.Table) -> list[list[Any]]:
    rows = [
        [plain(value) for value in table.column(name).to_pylist()] for name in table.column_names
    ]
    order = sorted(range(table.num_rows), key=lambda place: str(rows[0][place]))
    return [[column[place] for place in order] for column in rows[1:]]


def by_duckdb(texts: list[str]) -> list[list[Any]]:
    plan = plan_sql(around(*texts), CATALOG)
    assert isinstance(plan, Relational)
    tables = [EVENTS, ONE]
    inputs = {
        name: table.select(list(source.row))
        for (name, source), table in zip(plan.inputs, tables, strict=True)
    }
    return columns(run_rest(plan.duckdb_sql, inputs))


def test_the_table_of_the_docs_is_there() -> None:
    assert {kind: len(texts) >= 4 for kind, texts in DOCS.items()} == dict.fromkeys(
        ("ours", "handed over", "embedded", "refused"), True
    )


@pytest.mark.parametrize("text", DOCS["ours"])
def test_what_is_ours_is_a_block(text: str) -> None:
    assert isinstance(plan_sql(f"SELECT {text} AS v FROM r", CATALOG), Project)


@pytest.mark.parametrize("text", [*DOCS["ours"], "rtrim(s)", "trim(BOTH FROM s)"])
def test_what_is_ours_is_the_same_when_duckdb_computes_it(text: str) -> None:
    rows = EVENTS.combine_chunks().to_batches()[0]
    order = sorted(range(len(rows)), key=lambda place: str(rows["a"][place].as_py()))
    found = by_us(bound(text), rows)
    assert [found[place] for place in order] == by_duckdb([text])[0]


def test_texts_are_trimmed_and_reversed_by_characters() -> None:
    expected = {
        "trim(s)": ["\u00a0 a\t", "\u3000", "e\u0301a"],
        "ltrim(s)": ["\u00a0 a\t", "\u3000", "e\u0301a "],
        "rtrim(s)": ["\u00a0 a\t", " \u3000", " e\u0301a"],
        "reverse(s)": ["\ta \u00a0", "\u3000 ", " a\u0301e "],
    }
    where = [str(each) for each in sorted(EVENTS["a"].to_pylist(), key=str)]
    for text, values in expected.items():
        found = dict(zip(where, by_duckdb([text])[0], strict=True))
        assert [found["1900"], found["2038"], found["2100"]] == values, text


@pytest.mark.parametrize("text", [*DOCS["handed over"], *DOCS["embedded"]])
def test_what_is_not_ours_runs_on_duckdb(text: str) -> None:
    plan = plan_sql(f"SELECT {text} AS v FROM r", CATALOG)
    handed = text in DOCS["handed over"]
    assert len(by_duckdb([text])[0]) == EVENTS.num_rows
    if isinstance(plan, Relational):
        assert (plan.spark_gap is None) == handed


@pytest.mark.parametrize("text", DOCS["embedded"])
def test_a_gap_of_spark_has_a_place(text: str) -> None:
    plan = plan_sql(around(text), CATALOG)
    assert isinstance(plan, Relational)
    assert plan.spark_gap is not None
    assert plan.spark_gap.span is not None
    assert plan.spark_gap.hint


@pytest.mark.parametrize("text", DOCS["refused"])
def test_what_is_refused_has_a_place_and_a_hint(text: str) -> None:
    with pytest.raises(EventideError) as caught:
        plan_sql(f"SELECT {text} AS v FROM r", CATALOG)
    assert caught.value.span is not None
    assert caught.value.hint


def _all_for_spark() -> list[str]:
    ours = [text for line in LIKE_DUCKDB.splitlines() for text in map(str.strip, line.split(";"))]
    units = ("hour", "minute", "second", "millisecond", "microsecond")
    more = [f"date_diff('{unit}', ts, TIMESTAMP '2026-03-02')" for unit in units]
    more.append("strftime(TIMESTAMP '9999-12-31' + INTERVAL '1' DAY * abs(b), '%Y')")
    more += [
        "CAST(ts AS TIMESTAMP)",
        "TIMESTAMP '2026-03-02'",
        "CAST(CAST(ts AS DATE) AS TIMESTAMP)",
    ]
    more += [f"date_trunc('{unit}', CAST(ts AS DATE))" for unit in ("year", "week", "day")]
    starts = ("2026-03-02 01:02:0", "12:30:0", "2026-02-30 01:02:0")
    more += [f"TRY_CAST(concat('{start}', abs(a) % 10) AS TIMESTAMP)" for start in starts]
    more.append("TRY_CAST(concat('2026-03-02 01:02:0', abs(a) % 10, '+02:00') AS TIMESTAMP)")
    texts = [*ours, *DOCS["ours"], *DOCS["handed over"], *more]
    return [text for text in dict.fromkeys(texts) if text and text not in GAPS]


@pytest.mark.spark
def test_spark_gives_what_duckdb_gives(spark: SparkSession) -> None:
    from eventide.engines.spark.rest import around as run_around
    from eventide.engines.spark.types import INSTANT, spark_schema

    texts = _all_for_spark()
    expected = by_duckdb(texts)
    plan = plan_sql(around(*texts), CATALOG)
    assert isinstance(plan, Relational)
    assert plan.spark_gap is None
    inputs = []
    for (name, source), table in zip(plan.inputs, [EVENTS, ONE], strict=True):
        read = table.select(list(source.row))
        labelled = [
            field.with_type(INSTANT) if pa.types.is_timestamp(field.type) else field
            for field in read.schema
        ]
        schema = spark_schema(read.schema)
        inputs.append((name, spark.createDataFrame(read.cast(pa.schema(labelled)), schema)))
    before = spark.conf.get("spark.sql.session.timeZone")
    assert before is not None
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        answer = run_around(spark, plan.spark_sql, inputs)
        found = columns(answer.toArrow())
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    wrong = {
        text: (theirs, ours)
        for text, theirs, ours in zip(texts, found, expected, strict=True)
        if theirs != ours
    }
    assert wrong == {}
    kinds = [kind for _, kind in answer.dtypes[1:]]
    zoneless = [text for text, kind in zip(texts, kinds, strict=True) if kind == "timestamp_ntz"]
    assert zoneless == []


@pytest.mark.spark
def test_spark_refuses_with_a_place(spark: SparkSession) -> None:
    frames = {"r": spark.createDataFrame([(0, "a")], "ts long, s string")}
    with pytest.raises(UnsupportedError, match="is not handed to Spark") as caught:
        eventide.spark(spark).sql("SELECT levenshtein(s, 'x') AS n FROM r", **frames)
    assert "^^^" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("FIRST(x, 2)", None),
        ("LENGTH(s, 2)", "2"),
        ("DATE_TRUNC('hour', ts, 'UTC')", "'UTC'"),
        ("EPOCH_MS(ts, 2)", "2"),
        ("LEFT(s, 1, 2)", "2"),
        ("SUBSTRING(s, 1, 2, 3)", "3"),
        ("ROUND(x, 1, 2)", "2"),
        ("MOD(a, 2, 2)", "2"),
        ("LOG10(x, 1)", "1"),
        ("UPPER(s, t)", "t"),
        ("QUANTILE(x, 0.5, 3)", " 3"),
        ("REGEXP_MATCHES(s, 'a', 'i', TRUE)", None),
        ("WEEK(ts, 2)", "2"),
        ("SUM(a, 2)", "2"),
    ],
)
def test_no_argument_is_dropped(text: str, place: str | None) -> None:
    query = f"SELECT {text} AS v FROM r GROUP BY TUMBLE(ts, INTERVAL '1' SECOND)"
    with pytest.raises((BindError, UnsupportedError)) as caught:
        plan_sql(query, CATALOG)
    assert caught.value.span is not None
    assert place is None or caught.value.span.of(query) == place


@pytest.mark.parametrize(
    "query",
    [
        "SELECT {} AS v FROM r GROUP BY TUMBLE(ts, INTERVAL '1' SECOND)",
        "SELECT {} OVER (ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS v FROM r",
        "SELECT {} AS v FROM r [ROWS 3]",
        "SELECT * FROM r SITUATIONS (DEFINE f AS a > 1 RETURN {} AS v)",
        "SELECT {} AS v FROM r",
    ],
)
@pytest.mark.parametrize("call", ["FIRST(x, 2)", "LAST(x, 1)"])
def test_the_nth_value_is_refused_where_it_is_not_known(query: str, call: str) -> None:
    text = query.format(call)
    with pytest.raises(UnsupportedError) as caught:
        plan_sql(text, CATALOG)
    assert caught.value.span is not None
    assert call in caught.value.span.of(text)
    assert caught.value.hint


def test_an_argument_that_a_dialect_loses_is_an_error() -> None:
    import sqlglot

    tree = sqlglot.parse_one("SELECT REGEXP_REPLACE(s, 'a', 'b', 'g') FROM t", dialect="duckdb")
    with pytest.raises(UnsupportedError, match="this argument of REGEXP_REPLACE has no form"):
        said(tree, "spark")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("to_char(ts, 'YYYY-Q')", "Q"),
        ("to_char(ts, 'YYYY Month')", "Month"),
        ("to_char(ts, 'YYYY-MM-DDTHH24')", "THH"),
    ],
)
def test_an_element_of_a_format_has_its_place(text: str, place: str) -> None:
    query = f"SELECT {text} AS v FROM r"
    with pytest.raises(UnsupportedError, match="no element of a time's format") as caught:
        plan_sql(query, CATALOG)
    assert caught.value.span is not None
    assert caught.value.span.of(query) == place


def test_what_a_dialect_cannot_say_is_an_error_with_a_place() -> None:
    query = "SELECT soundex(s) AS v FROM r"
    with pytest.raises(UnsupportedError, match="has no form in DuckDB's SQL") as caught:
        plan_sql(query, CATALOG)
    assert caught.value.span is not None
    assert caught.value.span.of(query) == "soundex(s)"
