"""Durable queries whose rows nobody takes, or whose files cannot be written: nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pyarrow as pa
import pytest

import eventide as ev
from eventide.api.live import journaled
from eventide.api.live.row_queue import LiveRows
from eventide.api.live.subscription import Subscription
from eventide.errors import SchemaError
from eventide.sinks import JsonLines, Sink
from eventide.store import progress
from tests.api.live.durable.numbered import PLAIN, SECOND, Receiver, append, opened

PATIENCE_S = 120.0


class Keeping(Sink):
    """A sink that says which rows are safe, so that a checkpoint waits for it."""

    def __init__(self, inside: Callable[[int], None] = lambda _: None) -> None:
        self.rows: list[int] = []
        self.inside = inside

    def begin(self, query: str | None, schema: pa.Schema) -> int:  # noqa: ARG002
        return 0

    def take(self, rows: pa.RecordBatch, first_row: int) -> None:
        self.inside(first_row)
        self.rows.extend(range(first_row, first_row + rows.num_rows))

    def safe(self) -> int:
        return len(self.rows)


def done_soon(work: Callable[[], Any]) -> bool:
    """Do something in a thread; return whether it came to an end."""
    thread = Thread(target=work, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    return not thread.is_alive()


def test_rows_that_are_no_dead_letters_either_are_not_acknowledged(tmp_path: Path) -> None:
    db, go_on = opened(tmp_path), Event()
    db.create_stream("dead_letters", {"mine": "int64"})  # so none can be stored
    tried: list[int] = []

    def refuse_first(rows: LiveRows) -> None:
        assert go_on.wait(PATIENCE_S)
        tried.append(rows.first_row)
        if rows.first_row == 0:
            raise RuntimeError

    query = db.subscribe(PLAIN, refuse_first, name="q", retries=0)
    append(db, 0, 4)
    go_on.set()
    assert query.queue is not None
    assert query.queue.drained(PATIENCE_S)
    assert query.status == "failed"
    assert tried == [0]  # those that waited do not follow rows that nobody has
    assert [each.rows for each in db.kept_queries()] == [0]
    db.drop_stream("dead_letters")
    received = Receiver()
    db.subscribe(PLAIN, received, name="q").wait()
    assert len(received.whole()) == 3


@pytest.mark.usefixtures("every_step", "unfollowed")
def test_what_a_checkpoint_cannot_write_fails_the_query_and_no_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, received, other = opened(tmp_path), Receiver(), Receiver()
    query, stays = db.subscribe(PLAIN, received, name="q"), db.subscribe(PLAIN, other)
    append(db, 0, 2)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(journaled, "write_checkpoint", full)
        append(db, 2, 4)
    assert (query.status, stays.status) == ("failed", "running")
    assert "No space" in str(query.failure)
    db.subscribe(PLAIN, received, name="q").wait()
    stays.wait()
    assert received.whole() == other.whole()
    assert len(other.whole()) == 3


@pytest.mark.usefixtures("every_step")
def test_a_checkpoint_does_not_wait_for_what_is_tried_again(tmp_path: Path) -> None:
    db, refused = opened(tmp_path), Event()

    def refuse(_: int) -> None:
        refused.set()
        raise ConnectionError

    sink = Keeping(refuse)
    query = db.subscribe(PLAIN, sink, name="q", retries=9, retry_after="1 hour")
    append(db, 0, 2)
    assert refused.wait(PATIENCE_S)
    assert done_soon(lambda: append(db, 2, 6))
    assert [each.behind for each in db.kept_queries()] == [0]
    sink.inside = lambda _: None
    assert query.queue is not None
    query.queue.be_quick()
    query.wait()
    assert sink.rows == list(range(5))


@pytest.mark.usefixtures("every_step")
def test_a_sink_may_append_to_what_its_query_reads(tmp_path: Path) -> None:
    """A checkpoint waits for the sink, so the sink must not wait for a step."""
    db, entered, go_on, appended = opened(tmp_path), Event(), Event(), Event()

    def inside(first_row: int) -> None:
        if first_row == 0:
            entered.set()
            assert go_on.wait(PATIENCE_S)
            append(db, 10, 12)
            appended.set()

    sink = Keeping(inside)
    query = db.subscribe(PLAIN, sink, name="q")
    append(db, 0, 2)
    assert entered.wait(PATIENCE_S)
    appends = Thread(target=append, args=(db, 2, 4), daemon=True)
    appends.start()
    appends.join(0.1)  # its checkpoint waits now
    go_on.set()
    appends.join(PATIENCE_S)
    assert not appends.is_alive()
    assert appended.wait(PATIENCE_S)
    assert done_soon(query.wait)
    assert sink.rows == list(range(query.counters.rows))
    # The two that the sink appended came before or after the others, which are late then.
    assert query.counters.events == 6


@pytest.mark.parametrize("pulled", [True, False])
def test_rows_are_received_while_a_step_goes_on(tmp_path: Path, pulled: bool) -> None:
    """Whoever takes a step may wait for the queue: who empties it must not wait for the step."""
    db, received = opened(tmp_path), Receiver()
    query = db.live(PLAIN, name="q") if pulled else db.subscribe(PLAIN, received, name="q")
    group = db.delivery.group_of(query)
    assert group is not None

    def receive() -> None:
        if pulled:
            while (rows := query.next(timeout=0)) is not None:
                received(rows)
        assert query.queue is not None
        query.queue.drained()

    with group.stepping:
        append(db, 0, 5)
        assert done_soon(receive)
        assert [each.rows for each in db.kept_queries()] == [4]
    assert len(received.whole()) == 4


def cancelled_and_again(db: ev.Database, query: Subscription) -> None:
    query.cancel()
    db.subscribe(PLAIN, Receiver(), name="q")


INSIDE: dict[str, Callable[[ev.Database, Subscription], Any]] = {
    "cancel": lambda _, query: query.cancel(),
    "wait": lambda _, query: query.wait(),
    "advance": lambda _, query: query.advance(5 * SECOND),
    "append": lambda db, _: append(db, 100, 101),
    "close": lambda db, _: db.close(),
    "drop": lambda db, _: db.drop_query("q"),
    "subscribe again": cancelled_and_again,
}


@pytest.mark.parametrize("call", INSIDE)
@pytest.mark.usefixtures("every_step")
def test_the_receiver_of_a_durable_query_may_call_anything(tmp_path: Path, call: str) -> None:
    db, held, ready = opened(tmp_path), list[Subscription](), Event()
    failures, called = list[BaseException](), Event()

    def inside(_: LiveRows) -> None:
        ready.wait()
        try:
            if not called.is_set():
                INSIDE[call](db, held[0])
        except BaseException as error:
            failures.append(error)
        called.set()

    held.append(db.subscribe(PLAIN, inside, name="q"))
    append(db, 0, 4)
    ready.set()
    assert called.wait(PATIENCE_S)
    assert failures == []
    assert done_soon(lambda: append(db, 4, 8))
    assert done_soon(db.close)


@pytest.mark.usefixtures("unfollowed")
def test_a_journal_that_cannot_be_synced_fails_the_query_and_no_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, received = opened(tmp_path), Receiver()
    query = db.subscribe(PLAIN, received, name="q")
    append(db, 0, 2)
    query.wait()

    def broken(_: progress.Journal) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(progress.Journal, "sync", broken)
        append(db, 2, 4)
        assert query.status == "failed"
    assert len(received.rows) == 1  # of a step that may be lost no row comes
    db.subscribe(PLAIN, received, name="q").wait()
    assert len(received.whole()) == 3


async def coroutine(_: LiveRows) -> None:
    """Nobody would await it."""


@pytest.mark.parametrize("name", ["q", None])
@pytest.mark.parametrize(
    ("receiver", "said"),
    [
        (7, "the receiver is 7"),
        ("print", "the receiver is 'print'"),
        (JsonLines, "give a function of one argument, or a sink"),
        (coroutine, "a coroutine, which nobody would await"),
    ],
)
def test_what_cannot_receive_rows_is_refused(
    tmp_path: Path, receiver: object, said: str, name: str | None
) -> None:
    db = opened(tmp_path)
    with pytest.raises(SchemaError, match=said):
        db.subscribe(PLAIN, receiver, name=name)  # type: ignore[arg-type]
    assert (db.queries(), db.kept_queries()) == ((), ())
    append(db, 0, 2)
