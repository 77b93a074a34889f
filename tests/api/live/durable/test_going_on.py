"""Durable live queries go on where they were, with the same rows and the same numbers."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eventide as ev
from eventide.api.live import durable
from eventide.api.live.row_queue import LiveRows
from eventide.errors import StateError, StoreError, UnsupportedError
from tests.api.live.durable.numbered import PLAIN, SECOND, Receiver, append, opened

Row = dict[str, Any]
QUERIES = {
    "plain": "SELECT ts, car, speed FROM cars WHERE speed > 2",
    "windows": "SELECT car, window_start, COUNT(*) AS n, SUM(speed) AS total FROM cars "
    "GROUP BY car, TUMBLE(ts, INTERVAL '3' SECOND)",
    "pattern": "SELECT * FROM cars MATCH_RECOGNIZE (PARTITION BY car MEASURES A.speed AS a, "
    "LAST(B.speed) AS b PATTERN (A B+) WITHIN INTERVAL '5' SECOND DEFINE B AS speed > A.speed)",
    "situations": "FROM cars PARTITION BY car DEFINE fast AS speed > 2, slow AS speed < 4 "
    "PATTERN fast overlaps slow; fast during slow WITHIN 9 SECONDS RETURN MAX(fast.speed) AS top",
    "standing": "ISTREAM (SELECT car, MAX(speed) AS top FROM cars [RANGE 4 SECONDS] GROUP BY car)",
    "join": "ISTREAM (SELECT a.car, a.speed, b.weight FROM cars [RANGE 4 SECONDS] a "
    "JOIN trucks [RANGE 3 SECONDS] b ON a.car = b.car)",
}


def events(draw: Callable[[Any], Any], count: int, late_s: int) -> list[tuple[str, list[Row]]]:
    """Appends to the two streams, some events out of order."""
    found = []
    now = 0
    for _ in range(count):
        stream = draw(st.sampled_from(["cars", "cars", "trucks"]))
        value = "speed" if stream == "cars" else "weight"
        batch = []
        for _ in range(draw(st.integers(1, 3))):
            now += draw(st.integers(0, 2))
            back = draw(st.integers(0, late_s))
            car = draw(st.sampled_from("ab"))
            speed = float(draw(st.integers(0, 5)))
            batch.append({"ts": max(0, now - back) * SECOND, "car": car, value: speed})
        found.append((stream, batch))
    return found


@pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")
@pytest.mark.parametrize("query", QUERIES)
@settings(deadline=None, max_examples=12)
@given(data=st.data())
def test_a_query_goes_on_with_the_rows_it_would_have_had(query: str, data: st.DataObject) -> None:
    """Killed between any two appends: its files as they are, its memory gone."""
    text = QUERIES[query]
    appends = events(data.draw, 12, late_s=3)
    kills = data.draw(st.sets(st.integers(0, len(appends)), max_size=4))
    often = data.draw(st.sampled_from([1, 2, 1000]))
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(durable, "STEPS_BETWEEN", often)
        place = Path(folder, "0")
        db = opened(place)
        expected, received = Receiver(), Receiver()
        db.subscribe(text, received, name="q", lateness="1 s")
        steady = db.subscribe(text, expected, lateness="1 s")
        for number, (stream, batch) in enumerate(appends):
            if number in kills:
                db.wait()
                # What a process that dies leaves behind.
                other = Path(folder, str(number + 1))
                shutil.copytree(place, other)
                db.close()
                before = (expected, steady)
                place, db = other, opened(other)
                db.subscribe(text, received, name="q", lateness="1 s")
                replayed = Receiver()
                steady = db.subscribe(text, replayed, lateness="1 s")
                steady.state = steady.engine.load(before[1].engine.dump(before[1].state))
                steady.counters.rows = before[1].counters.rows
                replayed.rows = before[0].rows
                expected = replayed
            db.stream(stream).append(batch)
        db.wait()
        assert received.whole() == expected.whole()
        db.close()


def test_rows_that_were_not_received_come_again_with_their_numbers(tmp_path: Path) -> None:
    first: list[tuple[int, float]] = []
    third = Event()

    def dies(rows: LiveRows) -> None:
        first.extend((rows.first_row, row["speed"]) for row in rows)
        if rows.first_row >= 2:
            third.set()
            raise SystemExit

    db = opened(tmp_path / "a")
    text = "SELECT car, speed FROM cars"
    db.subscribe(text, dies, name="alerts", retries=10**6, retry_after="1 hour")
    for second in range(6):
        db.stream("cars").append([{"ts": second * SECOND, "car": "a", "speed": float(second)}])
    third.wait()
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    again = opened(tmp_path / "b")
    received = Receiver()
    query = again.subscribe(text, received, name="alerts")
    query.wait()
    assert first == [(0, 0.0), (1, 1.0), (2, 2.0)]
    assert sorted(received.rows) == [2, 3, 4]
    db.delivery.queries[0].queue.hurry = True  # type: ignore[attr-defined]


def test_another_text_is_refused_or_takes_the_place(tmp_path: Path) -> None:
    db = opened(tmp_path)
    received = Receiver()
    query = db.subscribe(QUERIES["plain"], received, name="q")
    with pytest.raises(StateError, match="q runs already, in this process"):
        db.subscribe(QUERIES["plain"], received, name="q")
    db.stream("cars").append([{"ts": n * SECOND, "car": "a", "speed": 5.0} for n in range(4)])
    query.cancel()
    other = QUERIES["plain"].replace("2", "4")
    with pytest.raises(
        StateError, match=r"q is another query: its text was .*speed > 2.* not .* > 4"
    ):
        db.subscribe(other, received, name="q")
    with pytest.raises(StateError, match="its lateness was '0 s', not '1 s'"):
        db.subscribe(QUERIES["plain"], received, name="q", lateness="1 s")
    following = 3
    for start, expected in (("now", 0), ("beginning", 3), ("1970-01-01T00:00:02", 1)):
        found = Receiver()
        new = db.subscribe(other, found, name="q", replace=True, start=start)
        new.wait()
        new.advance(3 * SECOND)
        new.wait()
        # Numbers go on: no receiver takes the rows for those of the other query.
        assert sorted(found.rows) == list(range(following, following + expected))
        following += expected
        new.cancel()


def test_it_goes_on_where_it_was_cancelled(tmp_path: Path) -> None:
    db = opened(tmp_path)
    received = Receiver()
    text = "SELECT car, speed FROM cars"
    with db.subscribe(text, received, name="q"):
        db.stream("cars").append([{"ts": n * SECOND, "car": "a", "speed": 5.0} for n in range(4)])
    db.stream("cars").append([{"ts": n * SECOND, "car": "a", "speed": 5.0} for n in range(4, 8)])
    query = db.subscribe(text, received, name="q")
    query.wait()
    assert len(received.whole()) == 7
    assert received.again == 0
    with pytest.raises(UnsupportedError, match="it has no end"):
        query.finish()
    db.drop_query("q")
    assert query.status == "finished"
    with pytest.raises(StoreError, match="there is no durable query 'q'"):
        db.drop_query("q")


def test_events_that_are_gone_are_missed_with_an_error(tmp_path: Path) -> None:
    db = opened(tmp_path / "a")
    text = "SELECT car, speed FROM cars"
    db.subscribe(text, name="q")
    db.stream("cars").append([{"ts": n * SECOND, "car": "a", "speed": 5.0} for n in range(4)])
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    db.close()
    other = opened(tmp_path / "b")
    other.stream("cars").split()
    other.stream("cars").append([{"ts": 99 * SECOND, "car": "a", "speed": 5.0}])
    other.stream("cars").drop_before(50 * SECOND)
    with pytest.raises(StoreError, match="q cannot go on"):
        other.subscribe(text, name="q")
    other.subscribe(text, name="q", replace=True)


@pytest.mark.parametrize("file", ["checkpoint", "journal-0"])
def test_damaged_files_are_named_and_the_query_can_be_replaced(tmp_path: Path, file: str) -> None:
    db = opened(tmp_path / "a")
    db.subscribe(PLAIN, name="q")
    db.subscribe(PLAIN, name="whole")
    append(db, 0, 3)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    db.close()
    path = tmp_path / "b" / "queries" / "q" / file
    content = bytearray(path.read_bytes())
    content[20] ^= 1
    path.write_bytes(content)
    other, received = opened(tmp_path / "b"), Receiver()
    with pytest.raises(StoreError, match=f"{file} is damaged.*\n*.*subscribe with replace=True"):
        other.subscribe(PLAIN, name="q")
    damaged, whole = other.kept_queries()
    assert (damaged.name, whole.name, whole.damage) == ("q", "whole", None)
    assert damaged.damage is not None
    assert f"{file} is damaged" in damaged.damage
    assert "replace=True" in damaged.damage
    query = other.subscribe(PLAIN, received, name="q", replace=True, start="beginning")
    query.wait()
    assert len(received.whole()) == 2
    query.cancel()
    append(other, 3, 5)
    other.subscribe(PLAIN, received, name="q").wait()
    assert len(received.whole()) == 4
    assert [each.damage for each in other.kept_queries()] == [None, None]


@pytest.mark.parametrize("name", ["", "a/b", "../x", "ü", "a" * 101])
def test_names_that_are_none_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ev.EventideError, match="no name for a query"):
        opened(tmp_path).subscribe("SELECT car FROM cars", name=name)


@pytest.mark.usefixtures("unfollowed")
def test_what_cannot_be_kept_fails_alone_and_can_be_subscribed_to_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, received, other = opened(tmp_path), Receiver(), Receiver()
    text = "SELECT car, speed FROM cars"
    query = db.subscribe(text, received, name="q")
    stays = db.subscribe(text, other)
    cars = db.stream("cars")
    cars.append([{"ts": 0, "car": "a", "speed": 0.0}])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("eventide.store.progress.Journal.add", full)
        cars.append([{"ts": SECOND, "car": "a", "speed": 1.0}])
    assert query.status == "failed"
    assert "No space" in str(query.failure)
    again = db.subscribe(text, received, name="q")
    cars.append([{"ts": 2 * SECOND, "car": "a", "speed": 2.0}])
    again.wait()
    stays.wait()
    assert received.whole() == other.whole()
    assert len(received.whole()) == 2


def test_rows_of_a_cancelled_query_are_kept_whoever_appends_meanwhile(tmp_path: Path) -> None:
    db, received = opened(tmp_path), Receiver()
    text = "SELECT car, speed FROM cars"
    waits, goes_on = Event(), Event()

    def slowly(rows: LiveRows) -> None:
        waits.set()
        goes_on.wait()
        received(rows)

    query = db.subscribe(text, slowly, name="q")
    for second in range(4):
        db.stream("cars").append([{"ts": second * SECOND, "car": "a", "speed": 5.0}])
    waits.wait()
    ending = Thread(target=query.cancel)
    ending.start()
    for second in range(4, 8):
        db.stream("cars").append([{"ts": second * SECOND, "car": "a", "speed": 5.0}])
    goes_on.set()
    ending.join()
    db.subscribe(text, received, name="q").wait()
    assert len(received.whole()) == 7


@pytest.mark.parametrize("start", ["beginning", "1970-01-01T00:00:05"])
def test_a_query_that_starts_in_the_past_has_the_rows_that_relations_had(
    tmp_path: Path, start: str
) -> None:
    db, received = opened(tmp_path), Receiver()
    owners = db.create_relation("owners", {"car": "string", "owner": "string"}, key=["car"])
    owners.upsert([{"ts": 0, "car": "a", "owner": "Ada"}])
    append(db, 1, 9)
    text = (
        "ISTREAM (SELECT c.speed, o.owner FROM cars [RANGE 1 SECOND] c "
        "JOIN owners o ON c.car = o.car)"
    )
    query = db.subscribe(text, received, name="q", start=start)
    query.advance(9 * SECOND)
    query.wait()
    first = 1 if start == "beginning" else 5
    assert len(received.whole()) == 9 - first
    assert all("Ada" in row for row in received.whole())


@pytest.mark.parametrize("stored", [0, 4])
@pytest.mark.usefixtures("unfollowed")
def test_an_append_before_the_follower_has_looked_waits_for_relations(
    tmp_path: Path, stored: int
) -> None:
    db, received = opened(tmp_path), Receiver()
    owners = db.create_relation("owners", {"car": "string", "owner": "string"}, key=["car"])
    owners.upsert([{"ts": 0, "car": "a", "owner": "Ada"}])
    append(db, 0, stored)
    text = (
        "ISTREAM (SELECT c.speed, o.owner FROM cars [RANGE 1 SECOND] c "
        "JOIN owners o ON c.car = o.car)"
    )
    query = db.subscribe(text, received, name="q", start="beginning")
    append(db, stored, 9)
    query.advance(9 * SECOND)
    query.wait()
    assert len(received.whole()) == 9


def test_a_query_that_goes_on_says_that_it_does_not_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "eventide.live")
    db, received = opened(tmp_path), Receiver()
    append(db, 0, 3)
    db.subscribe(PLAIN, received, name="q", from_history=True).cancel()
    assert "goes on where it was" not in caplog.text
    append(db, 3, 6)
    db.subscribe(PLAIN, received, name="q", from_history=True).wait()
    assert "q goes on where it was: start and from_history are for a query that" in caplog.text
    # What was complete when the query began is not reported, then or now.
    assert len(received.whole()) == 3
