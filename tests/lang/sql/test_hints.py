"""What a hint suggests to write is accepted."""

from __future__ import annotations

import re

import pytest

import eventide
from eventide.engines.build import build_tree
from eventide.errors import BindError, EventideError, UnsupportedError
from eventide.lang.sql import plan_sql
from tests.golden.plans import CATALOG


def hint_of(query: str) -> str:
    with pytest.raises(EventideError) as caught:
        plan_sql(query, CATALOG)
    assert caught.value.hint
    return caught.value.hint


@pytest.mark.parametrize("text", ["ts + speed", "ts + speed * INTERVAL '1' SECOND", "ts + lane"])
def test_a_number_beside_a_time_gets_an_interval_that_works(text: str) -> None:
    written = re.search(r"write (.*)", hint_of(f"SELECT {text} AS x FROM cars"))
    assert written is not None
    assert written[1] not in text
    plan_sql(f"SELECT ts + {written[1]} AS x FROM cars", CATALOG)


def test_an_interval_is_not_divided() -> None:
    written = re.search(r"as in (.*)", hint_of("SELECT ts + INTERVAL '1' SECOND / 2 FROM cars"))
    assert written is not None
    plan_sql(f"SELECT ts + {written[1]} AS x FROM cars", CATALOG)


def test_a_column_of_a_group_is_taken_by_an_aggregate_that_is_there() -> None:
    query = "SELECT car, {} AS s, COUNT(*) AS n FROM cars [ROWS 3] GROUP BY car"
    for written in re.findall(r"m(?:in|ax)\([\w.]+\)", hint_of(query.format("speed"))):
        plan_sql(query.format(written), CATALOG)


def test_a_query_that_is_not_live_names_the_function_that_keeps_it() -> None:
    query = "SELECT car, md5(car) AS maker FROM cars WHERE lane > 1"
    with pytest.raises(UnsupportedError, match="does not run live") as caught:
        build_tree(plan_sql(query, CATALOG))
    assert caught.value.span is not None
    assert caught.value.span.of(query).startswith("md5(car")
    assert "ORDER BY" not in (caught.value.hint or "")
    with pytest.raises(UnsupportedError) as caught:
        build_tree(plan_sql("SELECT car FROM cars ORDER BY car", CATALOG))
    assert "ORDER BY" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("query", "place"),
    [
        (
            "SELECT car FROM cars [ROWS 3] ORDER BY car LIMIT 9223372036854775807",
            "9223372036854775807",
        ),
        ("SELECT car FROM cars [ROWS 3] ORDER BY car LIMIT 2000000", "2000000"),
        ("SELECT car FROM cars LIMIT 9223372036854775808", "9223372036854775808"),
        ("SELECT car FROM cars LIMIT 3 OFFSET 99999999999999999999", "99999999999999999999"),
        ("SELECT car FROM cars LIMIT 1.5", "1.5"),
        ("SELECT car FROM cars LIMIT 'a'", "'a'"),
        ("SELECT car FROM cars LIMIT -1", "1"),
        ("SELECT car FROM (SELECT car FROM cars LIMIT 99999999999999999999) c", "9" * 20),
    ],
)
def test_a_number_of_rows_is_one(query: str, place: str) -> None:
    with pytest.raises(BindError, match=r"LIMIT|OFFSET") as caught:
        plan_sql(query, CATALOG)
    assert caught.value.span is not None
    assert caught.value.span.of(query) == place


def test_a_text_is_cut_at_the_ends_of_integers() -> None:
    rows = [{"ts": 0, "s": "hello"}]
    far = 2**63 - 1
    query = f"SELECT substring(s, {far}, {far}) AS a, substring(s, 1, {far}) AS b FROM r"
    assert eventide.sql(query, r=rows).to_arrow().to_pylist() == [{"a": "", "b": "hello"}]
