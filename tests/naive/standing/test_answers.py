"""The twin of standing queries, on examples small enough to be checked by hand."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from tests.engines.standing.queries import JOIN_3, history
from tests.naive.standing.answers import Question, Truth
from tests.naive.standing.windows import SECOND, Window
from tests.naive.windows import Event


def events(*ticks: int) -> list[Event]:
    blank = {"k": "p", "g": 1, "f": 0.0}
    return [
        {"ts": tick * SECOND, "_seq": seq, "v": tick, **blank} for seq, tick in enumerate(ticks)
    ]


@pytest.mark.parametrize(
    ("text", "now", "held"),
    [
        ("RANGE 4 SECONDS", 3, [0, 1, 3]),
        ("RANGE 4 SECONDS", 4, [1, 3]),
        ("RANGE 4 SECONDS JUMP 3 SECONDS", 5, [0, 1, 3]),  # 0 and 1 stay until 6
        ("RANGE 4 SECONDS JUMP 3 SECONDS", 6, [3, 6]),
        ("TUMBLE 3 SECONDS", 2, [0, 1]),
        ("TUMBLE 3 SECONDS", -1, [-2]),
        ("ROWS 2", 3, [1, 3]),
        ("ROWS 2", -2, [-2]),
        ("SESSION 3 SECONDS", 3, [-2, 0, 1, 3]),
        ("SESSION 3 SECONDS", 6, [6]),  # at 6 the session has lasted its gap
        ("SESSION 3 SECONDS", 9, []),
        ("NOW", 3, [3]),
        ("NOW", 4, []),
        ("RANGE UNBOUNDED", 2, [-2, 0, 1]),
        ("SINCE TIMESTAMP '1970-01-01 00:00:01' UNTIL TIMESTAMP '1970-01-01 00:00:03'", 9, [1]),
    ],
)
def test_windows(text: str, now: int, held: list[int]) -> None:
    rows = Window("a", text).holds(events(-2, 0, 1, 3, 6), now * SECOND)
    assert [row["v"] for row in rows] == held


JOIN = Question(
    "join",
    "SELECT x.v, y.v AS w /*, x._id, y._id*/ FROM {x} JOIN {y} ON x.k = y.k",
    {"x": Window("a", "RANGE 3 SECONDS"), "y": Window("b", "RANGE 4 SECONDS")},
)
STREAMS = {"a": events(0, 4), "b": events(2)}  # (0, 2) lives in [2, 3), (4, 2) in [4, 6)


def test_a_join_with_all_that_is_said_of_it() -> None:
    assert JOIN.text == (
        "SELECT x.v, y.v AS w  FROM a [RANGE 3 SECONDS] x JOIN b [RANGE 4 SECONDS] y ON x.k = y.k"
    )
    truth = Truth(JOIN, STREAMS)
    said = [sorted(truth.answer(tick * SECOND)) for tick in range(7)]
    assert said == [[], [], [(0, 2)], [], [(4, 2)], [(4, 2)], []]
    assert truth.names() == ["v", "w"]
    born, died = (
        Truth(JOIN.reporting(report), STREAMS).reports(9 * SECOND)
        for report in ("ISTREAM", "DSTREAM")
    )
    assert sorted(born) == [(2 * SECOND, 0, 2), (4 * SECOND, 4, 2)]
    assert sorted(died) == [(3 * SECOND, 0, 2), (6 * SECOND, 4, 2)]


def test_what_came_and_went_between_refreshes_is_restored() -> None:
    sliding = JOIN.sliding(3)  # refreshed at 0, 3, 6, …
    assert Truth(sliding.reporting("ISTREAM"), STREAMS).reports(9 * SECOND) == {}
    restored = Truth(sliding.reporting("RSTREAM RESTORE"), STREAMS).reports(9 * SECOND)
    assert sorted(restored) == [(3 * SECOND, False, 0, 2), (6 * SECOND, False, 4, 2)]


def test_internal_windows_keep_their_results() -> None:
    both = Truth(JOIN.internally("x", "y"), STREAMS)
    assert sorted(both.answer(9 * SECOND)) == [(0, 2), (4, 2)]
    one = Truth(JOIN.internally("x"), STREAMS)  # results go with b's event, at 6
    assert sorted(one.answer(5 * SECOND)) == [(0, 2), (4, 2)]
    assert one.answer(6 * SECOND) == {}


@pytest.mark.parametrize("seed", range(6))
def test_results_of_a_join_live_while_all_their_parts_do(seed: int) -> None:
    streams, lives = history(seed), Counter[tuple[object, ...]]()
    for x, y, z in product(streams["a"], streams["b"], streams["c"]):
        at = max(x["ts"], y["ts"], z["ts"])
        exp = min(x["ts"] + 4 * SECOND, y["ts"] + 6 * SECOND, z["ts"] + 3 * SECOND)
        if x["k"] is not None and x["k"] == y["k"] == z["k"] and at < exp:
            lives[at, exp, x["k"], x["v"], z["v"]] += 1
    assert Truth(JOIN_3, streams).lifetimes(99 * SECOND) == lives
