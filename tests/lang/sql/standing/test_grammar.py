"""Windows in square brackets and ISTREAM are parsed, and other SQL stays as it is."""

from __future__ import annotations

import pytest

from eventide.errors import BindError
from eventide.lang.sql import plan_sql
from eventide.plan.nodes import Filter, Project, Relational, Scan
from eventide.plan.standing.joins import AsOfJoin, Band, Existence, WindowJoin
from eventide.plan.standing.nodes import GroupAggregate, Standing
from eventide.plan.standing.windows import (
    PeriodWindow,
    RangeWindow,
    RowsWindow,
    SessionWindow,
    SinceWindow,
    StreamWindow,
    Unbounded,
    Windowed,
)
from eventide.plan.tree import Plan
from eventide.schema import FLOAT64, INT64, STRING
from tests.lang.sql.standing.test_plans import CATALOG

SECOND = 1_000_000


def planned(text: str) -> Standing:
    plan = plan_sql(text, CATALOG)
    assert isinstance(plan, Standing)
    return plan


def nodes(plan: Plan) -> list[Plan]:
    return [plan, *(node for source in plan.children for node in nodes(source))]


def windows(text: str) -> list[Windowed]:
    return [node for node in nodes(planned(text)) if isinstance(node, Windowed)]


WINDOWS: list[tuple[str, StreamWindow]] = [
    ("RANGE 60 SECONDS", RangeWindow(60 * SECOND)),
    ("range 1 min 30 s", RangeWindow(90 * SECOND)),
    ("RANGE INTERVAL '1' MINUTE", RangeWindow(60 * SECOND)),
    ("RANGE INTERVAL '1 minute'", RangeWindow(60 * SECOND)),
    ("RANGE '90 seconds'", RangeWindow(90 * SECOND)),
    ("RANGE 1 MINUTE JUMP 10 SECONDS", RangeWindow(60 * SECOND, 10 * SECOND)),
    ("RANGE INTERVAL '1 minute' JUMP 10 SECONDS", RangeWindow(60 * SECOND, 10 * SECOND)),
    ("RANGE UNBOUNDED", Unbounded()),
    ("NOW", RangeWindow(1)),
    ("ROWS 10", RowsWindow(10)),
    ("PARTITION BY car ROWS 10", RowsWindow(10, ("car",))),
    ("PARTITION BY CAR, x ROWS 10", RowsWindow(10, ("car", "x"))),
    ("LATEST BY car", RowsWindow(1, ("car",))),
    ('LATEST BY "car"', RowsWindow(1, ("car",))),
    ("TUMBLE 1 HOUR", PeriodWindow(3600 * SECOND)),
    ("LANDMARK 1 HOUR", PeriodWindow(3600 * SECOND)),
    ("SINCE TIMESTAMP '1970-01-01 00:00:01'", SinceWindow(SECOND)),
    ("SINCE '1970-01-01 00:00:01' UNTIL '1970-01-02'", SinceWindow(SECOND, 86400 * SECOND)),
    ("SESSION 30 SECONDS", SessionWindow(30 * SECOND)),
    ("PARTITION BY car SESSION 30 SECONDS", SessionWindow(30 * SECOND, ("car",))),
]


@pytest.mark.parametrize(("text", "expected"), WINDOWS, ids=[text for text, _ in WINDOWS])
def test_every_window_is_read_before_and_behind_the_alias(
    text: str, expected: StreamWindow
) -> None:
    for source in (f"cars [{text}]", f"cars [{text}] AS c", f"cars c [{text}]", f"cars[{text}] c"):
        (found,) = windows(f"SELECT * FROM {source}")
        assert found.window == expected
        assert not found.internal
        assert found.alias == ("cars" if source == f"cars [{text}]" else "c")


@pytest.mark.parametrize("text", [each for each, window in WINDOWS if window != RangeWindow(1)])
def test_slide_and_internal_stand_behind_any_window(text: str) -> None:
    for ends in ("SLIDE 2 SECONDS INTERNAL", "INTERNAL SLIDE 2 SECONDS"):
        plan = planned(f"SELECT car FROM cars [{text} {ends}]")
        assert plan.slide_us == 2 * SECOND
        assert all(node.internal for node in nodes(plan) if isinstance(node, Windowed))


@pytest.mark.parametrize(
    ("text", "report", "restore"),
    [
        ("ISTREAM (%s)", "istream", False),
        ("DSTREAM (%s)", "dstream", False),
        ("rstream(%s)", "rstream", False),
        ("ISTREAM RESTORE (%s)", "istream", True),
        ("RSTREAM RESTORE ((%s))", "rstream", True),
        ("(ISTREAM (%s))", "istream", False),
        ("%s", "current", False),
    ],
)
def test_reports(text: str, report: str, restore: bool) -> None:
    plan = planned(text % "SELECT car FROM cars [RANGE 1 MINUTE SLIDE 10 SECONDS]")
    assert (plan.report, plan.restore, plan.output_window) == (report, restore, None)
    expected = {"current": ["car"], "rstream": ["at", "live", "car"]}
    told = expected.get(report, ["at", "car"])
    assert list(plan.row) == (told if restore or report == "current" else ["at", "car"])


@pytest.mark.parametrize(
    ("text", "window"), [("ROWS 10", RowsWindow(10)), ("RANGE 1 s", RangeWindow(SECOND))]
)
def test_an_output_window_makes_the_others_internal(text: str, window: StreamWindow) -> None:
    plan = planned(
        "WSTREAM (SELECT a.car FROM cars a [ROWS 3], cars b [RANGE 3 s] WHERE a.car = b.car) "
        f"[{text}]"
    )
    assert (plan.report, plan.output_window) == ("current", window)
    assert all(node.internal for node in nodes(plan) if isinstance(node, Windowed))


def test_some_windows_may_be_internal_where_only_time_takes_rows_away() -> None:
    plan = "SELECT a.car FROM cars a [RANGE 1 s INTERNAL], cars b [RANGE 2 s] WHERE a.car = b.car"
    assert [each.internal for each in windows(plan)] == [True, False]


def test_a_band_is_how_far_apart_two_values_may_be() -> None:
    bands = {
        "ABS(a.x - b.x) <= 5": 5,
        "5 > abs(b.x - a.x)": 5,
        "a.x BETWEEN b.x - 2 AND b.x + 7": 7,
        "a.x - 2 <= b.x AND b.x < a.x + 1": 2,
        "ABS(a.speed - b.speed) < 0.5": 0.5,
        "a.ts BETWEEN b.ts - INTERVAL '1' SECOND AND b.ts + INTERVAL '2' SECOND": 2 * SECOND,
    }
    for condition, width in bands.items():
        plan = planned(
            "SELECT a.car FROM cars a [ROWS 3], cars b [ROWS 4] "
            f"WHERE a.car <> b.car AND {condition}"
        )
        (join,) = [node for node in nodes(plan) if isinstance(node, WindowJoin)]
        assert isinstance(join.band, Band), condition
        assert join.band.width == width
        assert {str(join.band.left.type), str(join.band.right.type)} <= {
            "int64", "float64", "timestamp",
        }  # fmt: skip
        assert join.condition is not None


@pytest.mark.parametrize(
    "condition",
    [
        "a.x <= b.x + 5",
        "ABS(a.x - b.x) >= 5",
        "ABS(a.x - b.x) <= 5 OR a.car = b.car",
        "ABS(a.x - b.x) <= a.x",
        "a.car = b.car AND ABS(a.x - b.x) <= 5",
    ],
)
def test_other_conditions_are_no_band(condition: str) -> None:
    plan = planned(f"SELECT a.car FROM cars a [ROWS 3], cars b [ROWS 4] WHERE {condition}")
    (join,) = [node for node in nodes(plan) if isinstance(node, WindowJoin)]
    assert join.band is None


def test_aggregates_of_standing_queries_have_their_types_and_parameters() -> None:
    plan = planned(
        "SELECT COUNT(DISTINCT car), MEDIAN(x), QUANTILE(speed, 0.9), TOP_K(car, 3), "
        "APPROX_COUNT_DISTINCT(x), APPROX_QUANTILE(x, 0.5), APPROX_TOP_K(x, 2) FROM cars [ROWS 3]"
    )
    (groups,) = [node for node in nodes(plan) if isinstance(node, GroupAggregate)]
    found = {
        item.aggregate.function: (item.aggregate.type, item.aggregate.parameter)
        for item in groups.aggregates
    }
    assert found == {
        "count": (INT64, None),
        "median": (FLOAT64, None),
        "quantile_cont": (FLOAT64, 0.9),
        "top_k": (STRING, 3),
        "approx_count_distinct": (INT64, None),
        "approx_quantile": (FLOAT64, 0.5),
        "approx_top_k": (STRING, 2),
    }
    assert [item.aggregate.distinct for item in groups.aggregates] == [True] + [False] * 6


def test_not_in_is_never_true_where_a_comparison_is_unknown() -> None:
    plan = planned("SELECT car FROM cars [ROWS 3] WHERE car NOT IN (SELECT src FROM link1)")
    found = [node for node in nodes(plan) if isinstance(node, Existence)]
    assert [len(node.left_keys) for node in found] == [1, 0, 1]
    assert all(node.negated for node in found)


def test_conditions_on_the_right_of_asof_join_do_not_change_what_is_newest() -> None:
    plan = planned(
        "SELECT t.sym FROM trades t [RANGE 1 s] ASOF JOIN quotes q "
        "ON t.sym = q.sym AND t.ts >= q.ts WHERE q.price > 3 AND t.n > 1"
    )
    (join,) = [node for node in nodes(plan) if isinstance(node, AsOfJoin)]
    assert isinstance(join.right, Windowed)
    assert any(isinstance(node, Filter) and node.source is join for node in nodes(plan))


@pytest.mark.parametrize("name", ["at", "EXP", "sign", "live"])
def test_names_of_changes_are_free_inside_and_taken_outside(name: str) -> None:
    inner = f"SELECT x AS {name} FROM cars [ROWS 3]"
    assert list(planned(f"SELECT {name} + 1 AS y FROM ({inner})").row) == ["y"]
    with pytest.raises(BindError, match="cannot be called"):
        planned(inner)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT car FROM cars",
        "SELECT a.car FROM cars a, cars b WHERE a.car = b.car",
        "SELECT car, count(*) FROM cars GROUP BY car",
        "SELECT DISTINCT car FROM cars",
        "SELECT car FROM cars UNION SELECT src FROM link1",
        "SELECT [1, 2][1] AS one, car FROM cars",
        "SELECT car AS istream FROM cars",
        "SELECT t.sym FROM trades t ASOF JOIN quotes q ON t.sym = q.sym AND t.ts >= q.ts",
        "WITH istream AS (SELECT car FROM cars) SELECT * FROM istream",
    ],
)
def test_queries_without_windows_stay_as_they_are(text: str) -> None:
    plan = plan_sql(text, CATALOG)
    assert isinstance(plan, Project | Relational)
    scans = [node for node in nodes(plan) if isinstance(node, Scan)]
    assert scans
    assert not any(isinstance(node, Standing | Windowed) for node in nodes(plan))
