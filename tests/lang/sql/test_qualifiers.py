"""A name in front of a dot has to be in FROM, for columns and for stars alike."""

from __future__ import annotations

import pytest

from eventide.errors import BindError, UnsupportedError
from eventide.lang.sql import plan_sql
from tests.golden.plans import CATALOG

_PATTERN = "MATCH_RECOGNIZE (MEASURES A.ts AS t PATTERN (A B) DEFINE B AS TRUE)"


@pytest.mark.parametrize(
    ("query", "place", "hint"),
    [
        ("SELECT nosuch.* FROM cars", "nosuch.*", "its columns are cars.…, or plain"),
        ("SELECT DISTINCT nosuch.* FROM cars", "nosuch.*", "its columns are cars.…, or plain"),
        ("SELECT cars.* FROM cars c", "cars.*", "its columns are c.…, or plain"),
        ("SELECT x.cars.* FROM cars", "x.cars.*", "its columns are cars.…, or plain"),
        ("SELECT main.cars.car FROM cars", "main.cars.car", "its columns are cars.…, or plain"),
        ("SELECT z.* FROM cars c JOIN cars d USING (car)", "z.*", "there are c, d"),
        ("SELECT z.* FROM (SELECT * FROM cars) c", "z.*", "its columns are c.…, or plain"),
        ("SELECT z.* FROM cars c JOIN (SELECT 1) d ON TRUE", "z.*", "there are c, d"),
        ("SELECT z.car FROM cars c JOIN (SELECT 1) d ON TRUE", "z.car", "there are c, d"),
        ("WITH x AS (SELECT * FROM cars) SELECT x.* FROM x y", "x.*", "its columns are y.…"),
        ("SELECT z.* FROM cars [ROWS 2]", "z.*", "its columns are cars.…, or plain"),
        (f"SELECT cars.* FROM cars {_PATTERN} AS m", "cars.*", "its columns are m.…, or plain"),
        ("SELECT z.* FROM cars SITUATIONS (DEFINE f AS lane > 1)", "z.*", "its columns are cars"),
        ("SELECT ts FROM cars WHERE EXISTS (SELECT z.* FROM cars d)", "z.*", "its columns are d.…"),
        (
            "SELECT ts FROM cars c WHERE EXISTS (SELECT c.* FROM cars d)",
            "c.*",
            "its columns are d.…, or plain",
        ),
        ("SELECT COUNT(z.*) FROM cars", "z.*", "its columns are cars.…, or plain"),
    ],
)
def test_a_qualifier_that_is_not_in_from_is_refused(query: str, place: str, hint: str) -> None:
    with pytest.raises(BindError, match="no stream") as caught:
        plan_sql(query, CATALOG)
    assert caught.value.span is not None
    assert caught.value.span.of(query) == place
    assert (caught.value.hint or "").startswith(hint)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT C.* FROM cars c",
        "SELECT Cars.* FROM cars",
        "SELECT c.*, d.lane AS other FROM cars c JOIN cars d USING (car)",
        "SELECT ts FROM cars c WHERE EXISTS (SELECT 1 FROM cars d WHERE d.ts = c.ts)",
        "SELECT s.a, s.* FROM (SELECT {'a': lane} AS s FROM cars) x",
        "SELECT c.car, u.x FROM cars c, UNNEST([1, 2]) AS u(x)",
        f"SELECT cars.* FROM cars {_PATTERN}",
    ],
)
def test_a_qualifier_that_is_in_from_is_read(query: str) -> None:
    plan_sql(query, CATALOG)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * EXCLUDE (nosuch) FROM cars",
        "SELECT * EXCLUDE (nosuch) FROM cars [ROWS 2]",
    ],
)
def test_a_star_leaves_out_columns_that_it_has(query: str) -> None:
    with pytest.raises(BindError, match="no column 'nosuch' to exclude") as caught:
        plan_sql(query, CATALOG)
    assert caught.value.span is not None


@pytest.mark.parametrize("window", ["", " [ROWS 2]", " GROUP BY TUMBLE(ts, INTERVAL '1' SECOND)"])
def test_count_of_a_qualified_star_has_two_readings(window: str) -> None:
    bracket, group = (window, "") if "[" in window else ("", window)
    with pytest.raises(UnsupportedError, match="two readings") as caught:
        plan_sql(f"SELECT COUNT(c.*) AS n FROM cars AS c{bracket}{group}", CATALOG)
    assert "COUNT(*)" in (caught.value.hint or "")
