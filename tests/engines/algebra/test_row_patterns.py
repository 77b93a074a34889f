"""Which queries of the event algebra mean the same as a row pattern, and which do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pytest

import eventide as ev
from tests.engines import engines
from tests.engines.compositions import SECOND, arrivals
from tests.engines.scenarios import as_bag
from tests.engines.test_compositions import tables
from tests.naive.windows import Event

When = Literal["always", "without ties", "never"]


@dataclass(frozen=True)
class Pair:
    """The same question in both languages, and when the answers are equal."""

    name: str
    cel: str
    pattern: str
    equal: When


def rows(measures: str, pattern: str, keys: str = "PARTITION BY car ") -> str:
    car = "car, " if keys else ""
    names = ", ".join(part.split(" AS ")[1] for part in measures.split(", "))
    # A partition may have the key null, which is equal to nothing.
    source = "(SELECT * FROM cars WHERE car IS NOT NULL)" if keys else "cars"
    return (
        f"SELECT {car}{names} FROM {source} MATCH_RECOGNIZE ({keys}ORDER BY ts MEASURES {measures}"
        f" AFTER MATCH SKIP TO NEXT ROW {pattern})"
    )


SKIPPING = "STRATEGY skip_till_next PATTERN"
PAIRS = (
    Pair(
        "two steps",
        "SELECT car, speed_1 AS a, speed AS b FROM cars"
        " NEXT{$1.car = $2.car AND $2.speed > $1.speed} cars",
        rows("A.speed AS a, B.speed AS b", f"{SKIPPING} (A B) DEFINE B AS speed > A.speed"),
        "without ties",
    ),
    Pair(
        "two steps, whose key is a condition",
        "SELECT car_1 AS car, speed_1 AS a, speed AS b FROM cars"
        " NEXT{$1.car = $2.car AND $2.speed > $1.speed} cars",
        rows(
            "A.car AS car, A.speed AS a, B.speed AS b",
            f"{SKIPPING} (A B) DEFINE B AS car = A.car AND speed > A.speed",
            keys="",
        ),
        "without ties",
    ),
    Pair(
        "three steps, nested on the left",
        "SELECT car, speed_1_1 AS a, speed_1 AS b, speed AS c FROM cars"
        " NEXT{$1.car = $2.car AND $2.speed > $1.speed} cars"
        " NEXT{$1.car = $2.car AND $2.speed < $1.speed} cars",
        rows(
            "A.speed AS a, B.speed AS b, C.speed AS c",
            f"{SKIPPING} (A B C) DEFINE B AS speed > A.speed, C AS speed < B.speed",
        ),
        "without ties",
    ),
    Pair(
        "a bound of time",
        "SELECT car, speed_1 AS a, speed AS b FROM cars"
        " NEXT{$1.car = $2.car AND $2.speed > $1.speed AND DUR <= 3 s} cars",
        rows(
            "A.speed AS a, B.speed AS b",
            f"{SKIPPING} (A B) WITHIN INTERVAL '3' SECOND DEFINE B AS speed > A.speed",
        ),
        "without ties",
    ),
    Pair(
        "the very next row",
        "SELECT car, a, b FROM FILTER{b > a} (SELECT car, speed_1 AS a, speed AS b FROM cars"
        " NEXT{$1.car = $2.car} cars)",
        rows("A.speed AS a, B.speed AS b", "PATTERN (A B) DEFINE B AS speed > A.speed"),
        "without ties",
    ),
    Pair(
        "three steps, nested on the right",
        "SELECT a, b, c FROM (SELECT speed AS a FROM cars) NEXT{b > a}"
        " (SELECT speed_1 AS b, speed AS c FROM cars NEXT{$2.speed < $1.speed} cars)",
        rows(
            "A.speed AS a, B.speed AS b, C.speed AS c",
            f"{SKIPPING} (A B C) DEFINE B AS speed > A.speed, C AS speed < B.speed",
            keys="",
        ),
        "never",
    ),
    Pair(
        "chains and the longest of them",
        "SELECT car, speed_1 AS a, speed AS b FROM cars"
        " FOLD{$2.car = $.car AND $2.speed > $.speed} cars",
        rows(
            "A.speed AS a, LAST(B.speed) AS b",
            f"{SKIPPING} (A B+) DEFINE B AS speed > COALESCE(LAST(B.speed, 1), A.speed)",
        ),
        "never",
    ),
    Pair(
        "chains and every combination",
        "SELECT car, speed_1 AS a, speed AS b FROM cars"
        " FOLD{$2.car = $.car AND $2.speed > $.speed AND DUR <= 2 s} cars",
        rows(
            "A.speed AS a, LAST(B.speed) AS b",
            "STRATEGY skip_till_any PATTERN (A B+) WITHIN INTERVAL '2' SECOND"
            " DEFINE B AS speed > COALESCE(LAST(B.speed, 1), A.speed)",
        ),
        "never",
    ),
)


def apart(streams: dict[str, list[Event]]) -> dict[str, list[Event]]:
    """The same events, of which no two are at one instant."""
    found = {}
    for name, events in streams.items():
        ordered = sorted(events, key=lambda each: (each["ts"], each["_seq"]))
        later = {each["_seq"]: place for place, each in enumerate(ordered)}
        found[name] = [{**each, "ts": each["ts"] + later[each["_seq"]]} for each in events]
    return found


def answers(pair: Pair, streams: dict[str, list[Event]]) -> tuple[list[object], list[object]]:
    given = tables(streams)
    cel = engines.plain(ev.cel(pair.cel, **given).to_arrow())
    shown = [{name: each[name] for name in each if name not in ("ts", "start_ts")} for each in cel]
    matches = engines.plain(ev.sql(pair.pattern, **given).to_arrow())
    return [*as_bag(shown)], [*as_bag(matches)]


@pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")
@pytest.mark.parametrize("pair", PAIRS, ids=[pair.name for pair in PAIRS])
def test_equal_or_not(pair: Pair) -> None:
    with_ties, without_ties = [], []
    for seed in range(3):
        streams = arrivals(seed, 60)
        assert len({each["ts"] for each in streams["cars"]}) < len(streams["cars"])
        with_ties.append(answers(pair, streams))
        without_ties.append(answers(pair, apart(streams)))
    assert all(one for one, _ in with_ties)
    assert all(one == other for one, other in with_ties) == (pair.equal == "always")
    assert all(one == other for one, other in without_ties) == (pair.equal != "never")


def test_a_row_pattern_sees_when_events_end_and_not_when_they_begin() -> None:
    """The second event began before the first one had ended."""
    events = [{"ts": 5 * SECOND, "start_ts": 1 * SECOND, "n": 1}]
    events.append({"ts": 6 * SECOND, "start_ts": 3 * SECOND, "n": 2})
    kind = pa.timestamp("us")
    schema = pa.schema({"ts": kind, "start_ts": kind, "n": pa.int64()})
    table = pa.Table.from_pylist(events, schema=schema)
    pattern = "SELECT * FROM e MATCH_RECOGNIZE (ORDER BY ts MEASURES B.n AS n PATTERN (A B))"
    assert len(ev.sql(pattern, e=table)) == 1
    assert len(ev.cel("e NEXT{} e", e=table)) == 0
