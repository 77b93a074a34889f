"""A query reaches only the streams it names: no files, settings, clock or random numbers."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import eventide
from eventide.engines.history.rest import run_rest
from eventide.errors import BindError, EventideError
from eventide.lang.sql import plan_sql
from tests.golden.plans import CATALOG

FILE = "'/etc/passwd'"
ATTEMPTS = [
    f"SELECT * FROM {FILE}",
    f"SELECT * FROM read_csv({FILE})",
    f"SELECT * FROM cars, read_csv({FILE})",
    f"SELECT * FROM cars, LATERAL read_csv({FILE})",
    f"SELECT * FROM cars, LATERAL (SELECT * FROM read_text({FILE}))",
    f"SELECT car FROM cars LIMIT (SELECT 1 FROM {FILE})",
    f"SELECT car FROM cars ORDER BY (SELECT 1 FROM {FILE})",
    f"SELECT car FROM cars UNION ALL FROM {FILE}",
    f"SELECT read_csv({FILE}) AS x FROM cars",
    f"WITH x AS (FROM {FILE}) SELECT * FROM x",
    f"SELECT * FROM (cars CROSS JOIN read_csv({FILE}))",
    f"SELECT * FROM (PIVOT {FILE} ON a USING count(*))",
    "SELECT * INTO x FROM cars",
    "WITH x AS (DELETE FROM cars RETURNING *) SELECT * FROM x",
    f"COPY cars TO {FILE}",
    f"SELECT car FROM cars; COPY cars TO {FILE}",
    "ATTACH 'x.db'",
    "INSTALL httpfs",
    "PRAGMA version",
    "SET threads = 1",
    "SELECT getenv('HOME') AS x FROM cars",
    "SELECT current_setting('threads') AS x FROM cars",
    "SELECT version() AS x FROM cars",
    "SELECT random() AS x FROM cars",
    "SELECT uuid() AS x FROM cars",
    "SELECT * FROM cars USING SAMPLE 1",
    "SELECT localtimestamp AS x FROM cars",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM information_schema.tables",
]


@pytest.mark.parametrize("query", ATTEMPTS)
def test_what_reaches_outside_is_refused_before_anything_runs(query: str) -> None:
    with pytest.raises(EventideError) as caught:
        plan_sql(query, CATALOG)
    assert caught.value.hint is not None


def test_duckdb_itself_is_locked(tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    inputs = {"t": pa.table({"a": [1]})}
    for text in (
        f"SELECT * FROM '{secret}'",
        f"SELECT * FROM read_csv('{secret}')",
        f"COPY t TO '{tmp_path / 'out.csv'}'",
        f"ATTACH '{tmp_path / 'out.db'}'",
        "SET enable_external_access = true",
    ):
        with pytest.raises(BindError):
            run_rest(text, inputs)
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


def test_a_limit_may_ask_a_stream() -> None:
    cars = pa.table({"ts": [0, 1, 2], "n": [1, 2, 2]})
    text = "SELECT ts FROM cars LIMIT (SELECT MAX(n) FROM cars)"
    assert len(eventide.sql(text, cars=cars)) == 2


def test_a_cte_may_be_called_as_we_call_our_inputs() -> None:
    cars = pa.table({"ts": [0, 1, 2], "n": [1, 2, 3]})
    text = "WITH eventide_0 AS (SELECT 5 AS x) SELECT x, n FROM eventide_0, cars"
    assert [row["n"] for row in eventide.sql(text, cars=cars)] == [1, 2, 3]
