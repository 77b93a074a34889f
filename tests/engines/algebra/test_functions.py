"""Functions of users in conditions of CEL on two events, and in what chains carry."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import eventide as ev
from eventide.errors import EvaluationError
from tests.engines import engines
from tests.engines.algebra.queries import cars, same
from tests.engines.compositions import SCHEMAS, arrivals
from tests.engines.live.arriving import in_pieces, lived
from tests.engines.scenarios import as_bag
from tests.engines.test_compositions import LATENESS_US, live, tables
from tests.naive.algebra.events import Bag, introduce, mu, project, rename, seq

pytestmark = pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")


def near(one: float | None, other: float | None) -> bool | None:
    """Whether two speeds are near; one that is unknown is near to all fast ones."""
    if one is None:
        return None if other is None else other > 60
    return None if other is None else abs(one - other) < 5


def path(known: str | None, car: str | None) -> str | None:
    """The cars so far, or nothing after the fourth one."""
    return None if known is not None and len(known) > 3 else f"{known or ''}{car or '?'}"


def each(compute: Callable[..., Any]) -> Callable[..., list[Any]]:
    """A function of whole columns."""

    def of_columns(*columns: pa.Array) -> list[Any]:
        return [compute(*row) for row in zip(*(one.to_pylist() for one in columns), strict=True)]

    return of_columns


@pytest.fixture(autouse=True)
def _functions() -> None:
    ev.register_function("near", each(near), ["float64", "float64"], "bool")
    ev.register_function("path", each(path), ["string", "string"], "string")


NEAR = (
    "SELECT car_1, speed_1, car, speed FROM cars"
    " NEXT{near($1.speed, $2.speed) AND $1.car = $2.car} cars"
)
PATHS = (
    "SELECT speed_1, speed, path FROM (SELECT *, car AS path FROM cars)"
    " FOLD{near($.speed, $2.speed), path IS NOT NULL, path($.path, $2.car) AS path} cars"
)


def naive_near(events: Bag) -> Bag:
    left = rename({"car": "car_1", "speed": "speed_1"}, events)
    return seq(
        left,
        events,
        lambda row: near(row["speed_1"], row["speed"]) and same(row, "car_1", "car"),
    )


def naive_paths(events: Bag) -> Bag:
    begun = introduce({"path": lambda row: row["car"]}, events)

    def chain(found: Bag) -> Bag:
        kept = [one for one in found if one.attributes["path"] is not None]
        return introduce({"path": lambda row: path(row["path"], row["car"])}, kept)

    found = mu(begun, events, lambda row: near(row["speed.last"], row["speed"]), chain)
    return rename({"speed.first": "speed_1"}, project(["speed.first", "speed", "path"], found))


@pytest.mark.parametrize(("text", "answer"), [(NEAR, naive_near), (PATHS, naive_paths)])
def test_functions_of_both_events(text: str, answer: Callable[[Bag], Bag]) -> None:
    text = text.replace(", path IS NOT NULL,", ", $.path IS NOT NULL,")
    for seed in range(2):
        streams = arrivals(seed, 50)
        expected = as_bag([dict(one.row) for one in answer(cars(streams))])
        assert len(expected) > 5
        found = ev.cel(text, **tables(streams)).to_arrow()
        assert as_bag(engines.plain(found)) == expected
        engine = live(text, LATENESS_US)
        steps = in_pieces({"cars": streams["cars"]}, random.Random(seed))
        assert as_bag(lived(engine, steps, SCHEMAS).rows) == expected


def failing(*_: pa.Array) -> pa.Array:
    message = "no luck"
    raise RuntimeError(message)


@pytest.mark.parametrize(
    ("compute", "said"),
    [
        (failing, "near failed: RuntimeError: no luck"),
        (lambda *_: [True], "near returned 1 values for"),
        (lambda *_: True, "near returned bool, which is no column of bool"),
        (lambda one, _: ["a"] * len(one), "near returned list, which is no column of bool"),
    ],
)
@pytest.mark.parametrize("text", [NEAR, PATHS.replace("path IS NOT NULL", "")])
def test_a_function_that_does_not_keep_its_word(
    text: str, compute: Callable[..., Any], said: str
) -> None:
    """The error names the function and shows the call, over history and live."""
    ev.register_function("near", compute, ["float64", "float64"], "bool")
    streams = arrivals(1, 60)
    given = {"cars": tables(streams)["cars"]}
    with pytest.raises(EvaluationError, match=said) as caught:
        ev.cel(text, **given)
    assert "^^^^" in str(caught.value)
    with pytest.raises(EvaluationError, match=said):
        lived(live(text, LATENESS_US), in_pieces({"cars": streams["cars"]}, random.Random(1)),
              SCHEMAS)  # fmt: skip
