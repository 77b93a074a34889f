"""What a sink of one's own needs, and what is taken for a sink."""

from __future__ import annotations

import pyarrow as pa
import pytest

import eventide.sinks
from eventide.sinks import Sink

ROWS = pa.record_batch({"car": ["a", "b", "c"]})


class Kept(Sink):
    """Keeps what it takes."""

    def __init__(self) -> None:
        self.cars: list[object] = []

    def take(self, rows: pa.RecordBatch, first_row: int) -> None:
        self.cars += [(first_row, *rows.column("car").to_pylist())]


def test_only_take_has_to_be_written() -> None:
    sink = Kept()
    assert sink.begin("alerts", ROWS.schema) is None
    sink.take(ROWS, 0)
    sink.skip(5)
    sink.tick()
    sink.flush()
    assert sink.safe() is None
    sink.close()
    assert sink.cars == [(0, "a", "b", "c")]
    with pytest.raises(TypeError, match="take"):
        Sink()  # type: ignore[abstract]


def test_a_callback_is_no_sink() -> None:
    assert isinstance(Kept(), Sink)
    assert not isinstance(print, Sink)
    assert not isinstance([], Sink)


def test_the_room_exports_its_sinks() -> None:
    for name in eventide.sinks.__all__:
        assert getattr(eventide.sinks, name).__name__ == name
    assert dir(eventide.sinks) == eventide.sinks.__all__
    assert set(eventide.sinks.HOMES) == set(eventide.sinks.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Fax'"):
        _ = eventide.sinks.Fax
