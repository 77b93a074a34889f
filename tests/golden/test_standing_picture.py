"""Lifetimes of rows are drawn as they are, and the picture in docs/ is one of them."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import eventide as ev
from eventide.drawing.situations.lifetimes import Lifetime, lifetimes
from eventide.errors import SchemaError, UnsupportedError
from tests.golden import standing_picture as picture

SECOND = 1_000_000


def changes(*rows: tuple[int, str, int | None, int]) -> pa.Table:
    at, car, exp, sign = zip(*rows, strict=True)
    times = {
        name: pa.array([None if each is None else each * SECOND for each in column], pa.int64())
        for name, column in (("at", at), ("exp", exp))
    }
    return pa.table({"at": times["at"], "car": list(car), "exp": times["exp"], "sign": list(sign)})


def test_the_document_shows_lifetimes_as_they_are() -> None:
    assert picture.FILE.read_text() == picture.drawn() + "\n"


def test_a_row_is_there_until_it_expires_or_is_taken_back() -> None:
    told = changes((1, "a", 5, 1), (2, "b", None, 1), (3, "a", 5, -1), (4, "c", None, 1),
                   (6, "b", None, -1))  # fmt: skip
    assert lifetimes(told) == [
        Lifetime("a", 1 * SECOND, 3 * SECOND),
        Lifetime("b", 2 * SECOND, 6 * SECOND),
        Lifetime("c", 4 * SECOND, None),
    ]


def test_equal_rows_share_a_lane_unless_they_overlap() -> None:
    told = changes((1, "a", 3, 1), (2, "a", 4, 1), (5, "a", 6, 1))
    shown = ev.plot_lifetimes({"cars": ev.Result(told)})
    (timeline,) = shown.scene.timelines
    assert [len(lane.bars) for lane in timeline.lanes] == [2, 1]
    few = ev.plot_lifetimes({"cars": ev.Result(told)}, most=1)
    assert few.scene.rest == "1 more lane not drawn"
    assert len(re.findall("<rect class=.ev-period", few.svg())) == 2


def test_what_has_no_lifetimes_is_refused() -> None:
    with pytest.raises(SchemaError, match="has no column 'exp'"):
        ev.plot_lifetimes({"x": ev.Result(pa.table({"at": [1]}))})
    with pytest.raises(UnsupportedError, match="at least one lane"):
        ev.plot_lifetimes({}, most=0)
    assert "no rows" in ev.plot_lifetimes({"x": []}).text(60)
