"""Durable queries go on after an upgrade that changes the format of states."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eventide as ev
from eventide.api.live.subscription import Subscription
from eventide.errors import StateVersionError, StoreError
from eventide.operators import envelope
from tests.api.live.durable.numbered import PLAIN, SECOND, Receiver, append, opened
from tests.api.live.durable.test_going_on import QUERIES, events

KINDS = {
    **QUERIES,
    "relation": "ISTREAM (SELECT c.speed, o.owner FROM cars [RANGE 3 SECONDS] c "
    "JOIN owners o ON c.car = o.car)",
}


def of_an_older_release(patch: pytest.MonkeyPatch) -> None:
    """Write states as a release before this one would."""
    patch.setattr(envelope, "VERSION", envelope.VERSION - 1)


@pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")
@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=6)
@given(data=st.data())
def test_a_query_goes_on_with_the_rows_it_would_have_had(kind: str, data: st.DataObject) -> None:
    appends = events(data.draw, 12, late_s=1)
    upgrade, lag = data.draw(st.integers(0, 12)), data.draw(st.sampled_from([None, "1 h"]))
    start = data.draw(st.sampled_from(["now", "beginning", "1970-01-01T00:00:02"]))
    moved = data.draw(st.booleans())

    def subscribed(db: ev.Database, receiver: Receiver) -> Subscription:
        text = KINDS[kind]
        return db.subscribe(text, receiver, name="q", lateness="1 s", max_lag=lag, start=start)

    with TemporaryDirectory() as folder:
        expected, received = Receiver(), Receiver()
        dbs = [opened(Path(folder, name)) for name in ("steady", "upgraded")]
        for db in dbs:
            owners = db.create_relation("owners", {"car": "string", "owner": "string"}, key=["car"])
            owners.upsert([{"ts": 0, "car": "a", "owner": "Ada"}])
            db.stream("cars").append([{"ts": SECOND, "car": "a", "speed": 3.0}])
        steady = subscribed(dbs[0], expected)
        with pytest.MonkeyPatch.context() as patch:
            of_an_older_release(patch)
            query = subscribed(dbs[1], received)
            for stream, batch in appends[:upgrade]:
                for db in dbs:
                    db.stream(stream).append(batch)
                    db.wait()
            if moved:
                newest = max(
                    (row["ts"] for _, batch in appends[:upgrade] for row in batch), default=0
                )
                for each in (steady, query):
                    each.advance(newest - SECOND // 2)
                    each.wait()
            query.cancel()
        query = subscribed(dbs[1], received)
        for stream, batch in appends[upgrade:]:
            for db in dbs:
                db.stream(stream).append(batch)
                db.wait()
        for each in (steady, query):
            each.advance(60 * SECOND)
            each.wait()
        # Rows of one step may come in another order: that of keys is not part of the state.
        assert sorted(received.whole()) == sorted(expected.whole())
        assert received.again == 0
        for db in dbs:
            db.close()


def test_a_query_that_began_with_history_is_rebuilt_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "eventide.live")
    db, received = opened(tmp_path), Receiver()
    append(db, 0, 4)
    text = "SELECT window_start, COUNT(*) AS n FROM cars GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)"
    with monkeypatch.context() as patch:
        of_an_older_release(patch)
        db.subscribe(text, received, name="q", from_history=True).cancel()
        append(db, 4, 6)
    query = db.subscribe(text, received, name="q")
    assert "q: its state was rebuilt from 4 events" in caplog.text
    append(db, 6, 11)
    query.wait()
    (row,) = received.whole()
    assert row.endswith("'n': 10}")


def test_events_that_are_gone_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db = opened(tmp_path)
    with monkeypatch.context() as patch:
        of_an_older_release(patch)
        query = db.subscribe(PLAIN, name="q")
        append(db, 0, 4)
        query.cancel()
    cars = db.stream("cars")
    cars.split()
    append(db, 90, 91)
    cars.drop_before(50 * SECOND)
    with pytest.raises(
        StoreError, match=r"another release .* of the 4 events .* 0 are left"
    ) as said:
        db.subscribe(PLAIN, name="q")
    assert "replace=True" in str(said.value)
    received = Receiver()
    db.subscribe(PLAIN, received, name="q", replace=True, start="beginning").advance(99 * SECOND)
    db.wait()
    assert len(received.rows) == 1


def test_what_no_origin_was_written_for_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = opened(tmp_path)
    with monkeypatch.context() as patch:
        of_an_older_release(patch)
        patch.setattr("eventide.api.live.durable.ORIGIN", "not known yet")
        db.subscribe(PLAIN, name="q").cancel()
    with pytest.raises(StateVersionError, match="written in version"):
        db.subscribe(PLAIN, name="q")
