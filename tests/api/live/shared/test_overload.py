"""Periodic queries of a set that is to keep up: periods stretch, refreshes wait, all is told."""

from __future__ import annotations

from pathlib import Path

import pytest

import eventide as ev
from eventide.api.live.shared.live_set import LiveSet
from eventide.engines.history.answer import ANSWERING
from eventide.engines.live.sharing.pace import PeriodPace
from eventide.errors import SchemaError

TEXTS = [
    f"RSTREAM (SELECT COUNT(*) AS n FROM cars [RANGE {size} SECONDS SLIDE {slide} SECONDS])"
    for size, slide in ((60, 10), (600, 60))
]


class Board:
    """A set of two periodic queries, over a clock that a test moves by hand."""

    def __init__(self, path: Path) -> None:
        self.db = ev.open(path)
        self.cars = self.db.create_stream("cars", {"car": "string"})
        self.clock, self.rows = ev.ManualClock(), list[tuple[int, int]]()
        self.set: LiveSet = self.db.subscribe_many(
            TEXTS, on_result=self.take, overload="stretch", clock=self.clock
        )

    def take(self, rows: ev.LiveRows) -> None:
        for row in rows.to_arrow().to_pylist():
            self.rows.append((row["query"], int(row["at"].timestamp())))

    def append(self, *seconds: int) -> None:
        self.cars.append([{"ts": each * 1_000_000, "car": "a"} for each in seconds])

    def received(self, query: int) -> list[int]:
        assert self.set.queue is not None
        self.set.queue.drained()
        return [at for number, at in self.rows if number == query]


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board(tmp_path / "traffic.ev")


def test_refreshes_with_late_deadlines_wait_while_a_query_is_answered(board: Board) -> None:
    board.append(*range(1, 60))
    with ANSWERING.one():
        board.append(*range(60, 67))
        assert board.received(0) == [10, 20, 30, 40, 50, 60]
        assert board.received(1) == []
        assert board.set.metrics()["refreshes_waiting"] == 1
        assert "refreshes of 1 query wait" in board.db.explain_all()
        board.clock.advance("1 s")
        assert board.received(1) == []
    board.clock.advance("1 s")
    assert board.received(1) == [60]
    assert board.set.metrics()["refreshes_waiting"] == 0


def test_who_waits_for_a_set_gets_all_refreshes(board: Board) -> None:
    board.append(*range(1, 60))
    with ANSWERING.one():
        board.append(*range(60, 67))
        assert board.set.wait()
    assert board.received(1) == [60]


def test_stretched_periods_are_told_wherever_the_query_is(board: Board) -> None:
    board.append(5)
    # The clock stands still: what steps took before is what there is to go by.
    board.set.many.turns.pace = PeriodPace(2, 60e6, 1e12, 0.0, 500e6)
    board.append(*range(6, 75))
    assert board.set.wait()
    assert board.received(0) == [10, 20, 40, 60]
    (query,) = board.db.queries()
    assert "periods 2 times as long" in repr(query)
    assert query.metrics()["stretch"] == 2
    assert query.metrics()["refreshes_left_out"] == 3
    shown = board.db.explain_all()
    assert "refreshes left out: 3; periods are 2 times as long now" in shown
    assert 'eventide_query_period_stretch{id="1",name=""} 2' in board.db.metrics_text()
    assert board.db.sql("SELECT stretch FROM eventide.queries").to_arrow().to_pylist() == [
        {"stretch": 2}
    ]


def test_queries_that_are_not_periodic_have_no_numbers_of_refreshes(board: Board) -> None:
    live = board.db.live("SELECT * FROM cars")
    assert live.metrics()["stretch"] is None
    board.set.cancel()


def test_what_gives_way_is_named(board: Board) -> None:
    with pytest.raises(SchemaError, match="overload is not 'drop'"):
        board.db.subscribe_many(TEXTS, overload="drop")  # type: ignore[arg-type]
    board.set.cancel()


def test_a_set_whose_steps_come_again_does_not_go_by_the_clock(board: Board) -> None:
    with pytest.raises(SchemaError, match="a set with a name cannot stretch its periods"):
        board.db.subscribe_many(TEXTS, name="board", overload="stretch")
    board.set.cancel()
