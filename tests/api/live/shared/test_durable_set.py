"""Durable sets go on where they were, with the queries that they had."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eventide as ev
from eventide.api.live import durable
from eventide.api.live.row_queue import LiveRows
from eventide.api.live.shared.live_set import LiveSet
from eventide.errors import StateError, StoreError, UnsupportedError
from eventide.operators import envelope
from tests.api.live.durable.numbered import SECOND, Receiver, append, opened
from tests.api.live.durable.test_going_on import events

PLAIN = "SELECT ts, car, speed FROM cars WHERE speed > $n"
COUNTED = (
    "SELECT car, window_start, COUNT(*) AS n FROM cars WHERE speed > $n "
    "GROUP BY car, TUMBLE(ts, INTERVAL '3' SECOND)"
)
TEXTS = [
    PLAIN,
    COUNTED,
    f"{COUNTED} HAVING COUNT(*) > $n",
    "SELECT car, SUM(speed) AS s FROM cars GROUP BY car, HOP(ts, INTERVAL '1' SECOND, "
    "INTERVAL '4' SECOND) HAVING SUM(speed) > $n",
    "SELECT * FROM cars MATCH_RECOGNIZE (PARTITION BY car MEASURES A.speed AS a, LAST(B.speed) AS "
    "b PATTERN (A B+) WITHIN INTERVAL '5' SECOND DEFINE A AS speed > $n, B AS speed > A.speed)",
    "FROM cars PARTITION BY car DEFINE fast AS speed > $n, slow AS speed < 4 PATTERN fast overlaps "
    "slow; fast during slow WITHIN 9 SECONDS RETURN MAX(fast.speed) AS top",
    "SELECT car, speed FROM FILTER{speed > $n}(cars) NEXT{$1.car = $2.car} cars",
    "ISTREAM (SELECT car, MAX(speed) AS top FROM cars [RANGE 4 SECONDS] WHERE speed > $n "
    "GROUP BY car)",
    "ISTREAM (SELECT a.car, a.speed, b.weight FROM cars [RANGE 4 SECONDS] a "
    "LEFT JOIN trucks [RANGE 3 SECONDS] b ON a.car = b.car WHERE a.speed > $n)",
    "SELECT car, weight FROM trucks WHERE weight > $n",
    "SELECT CAST(car AS BIGINT) AS fails FROM cars WHERE speed > $n",
    "SELECT ts FROM trucks WHERE CAST(car AS BIGINT) > $n",
    "ISTREAM (SELECT c.speed, o.owner FROM cars [RANGE 3 SECONDS] c JOIN owners o "
    "ON c.car = o.car WHERE c.speed > $n)",
]
CHANGES = ("add", "drop", "kill", "close")
CEL = {6}
RELATION = {12}


Asked = tuple[str | list[str], list[dict[str, int]] | None]


def asked(kind: int, values: list[int], *, table: bool) -> Asked:
    """Return queries of a kind: texts with constants, or a text with a table."""
    if table and kind not in CEL:
        return TEXTS[kind], [{"n": value} for value in values]
    return [TEXTS[kind].replace("$n", str(value)) for value in values], None


class Steady:
    """A set that nobody kills: each of its queries has its rows."""

    def __init__(self, folder: Path) -> None:
        self.db = with_owners(folder)
        self.rows: Counter[str] = Counter()
        self.set = self.db.subscribe_many([], None, self.take, lateness="1 s")

    def take(self, rows: LiveRows) -> None:
        self.rows.update(map(repr, rows))


def with_owners(folder: Path) -> ev.Database:
    db = opened(folder)
    if "owners" not in db.streams():
        owners = db.create_relation("owners", {"car": "string", "owner": "string"}, key=["car"])
        owners.upsert([{"ts": 0, "car": "a", "owner": "Ada"}])
    return db


@pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")
@pytest.mark.parametrize("upgraded", [False, True])
@settings(deadline=None, max_examples=8)
@given(data=st.data())
def test_a_set_goes_on_with_the_rows_it_would_have_had(upgraded: bool, data: st.DataObject) -> None:
    """Killed between any two changes or appends: its files as they are, its memory gone."""
    appends = events(data.draw, 10, late_s=2)
    often = data.draw(st.sampled_from([1, 3, 1000]))
    kinds = [each for each in range(len(TEXTS)) if not (upgraded and each in RELATION)]
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(durable, "STEPS_BETWEEN", often)
        steady, received = Steady(Path(folder, "steady")), Receiver()
        place = Path(folder, "0")
        db = with_owners(place)
        live = subscribed(db, received)
        for number, (stream, batch) in enumerate(appends):
            what = data.draw(st.lists(st.sampled_from(CHANGES), max_size=3))
            for change in what:
                if change == "add":
                    count = data.draw(st.integers(1, 3))
                    values = data.draw(st.lists(st.integers(0, 4), min_size=count, max_size=count))
                    kind = data.draw(st.sampled_from(kinds))
                    texts, table = asked(kind, values, table=data.draw(st.booleans()))
                    assert live.add(texts, table) == steady.set.add(texts, table)
                elif change == "drop" and live.following:
                    gone = data.draw(st.integers(0, live.following - 1))
                    for each in (live, steady.set):
                        each.wait()
                        each.drop(gone)
                elif change in ("kill", "close"):
                    db.wait()
                    other = Path(folder, f"{number}-{len(list(Path(folder).iterdir()))}")
                    if change == "close":
                        if upgraded:
                            with pytest.MonkeyPatch.context() as older:
                                older.setattr(envelope, "VERSION", envelope.VERSION - 1)
                                db.close()
                        else:
                            db.close()
                    shutil.copytree(place, other)
                    db.close()
                    place, db = other, with_owners(other)
                    before = live
                    live = subscribed(db, received)
                    assert sorted(live.many.numbers) == sorted(before.many.numbers)
                    assert live.failures.keys() == before.failures.keys()
            for both in (db, steady.db):
                both.stream(stream).append(batch)
                both.wait()
        for each in (live, steady.set):
            each.advance(60 * SECOND)
            each.wait()
        assert Counter(received.whole()) == steady.rows
        assert received.again == 0
        assert live.failures.keys() == steady.set.failures.keys()
        for both in (db, steady.db):
            both.close()


def subscribed(db: ev.Database, receiver: Receiver) -> LiveSet:
    return db.subscribe_many([], None, receiver, name="s", lateness="1 s")


def test_the_same_call_goes_on_and_another_one_is_refused(tmp_path: Path) -> None:
    received, table = Receiver(), [{"n": 1.0}, {"n": 3.0}]
    db = opened(tmp_path)
    live = db.subscribe_many(PLAIN, table, received, name="alerts")
    assert db.queries() == (live,)
    live.drop(0)
    live.add(PLAIN, [{"n": 2.0}])
    append(db, 0, 5)
    live.wait()
    db.close()
    (kept,) = db.kept_queries()
    assert (kept.name, kept.text, kept.rows) == ("alerts", f"2 queries, {PLAIN}", 1)

    db = ev.open(tmp_path)
    with pytest.raises(StateError, match="began with other queries"):
        db.subscribe_many(PLAIN, table[:1], received, name="alerts")
    with pytest.raises(StateError, match="alerts is a set of queries"):
        db.subscribe(PLAIN, params={"n": 1}, name="alerts")
    live = db.subscribe_many(PLAIN, table, received, name="alerts")
    with pytest.raises(StateError, match="runs already"):
        db.subscribe_many([], name="alerts")
    append(db, 5, 6)
    live.wait()
    assert [row.partition(",")[0] for row in received.whole()] == [
        "{'query': 2",
        "{'query': 1",
        "{'query': 2",
    ]
    with pytest.raises(UnsupportedError, match="kept to go on"):
        live.finish()
    db.drop_query("alerts")
    assert db.kept_queries() == ()
    assert db.queries() == ()

    db.subscribe(PLAIN, params={"n": 1}, name="alone").cancel()
    with pytest.raises(StateError, match="alone is a single query"):
        db.subscribe_many([], name="alone")
    db.close()


def test_names_stay_and_are_free_again_when_queries_leave(tmp_path: Path) -> None:
    db, text = opened(tmp_path), "SELECT speed FROM cars"
    live = db.subscribe_many({"one": text, "two": text}, name="s")
    live.drop("one")
    db.close()
    db, received = ev.open(tmp_path), Receiver()
    live = db.subscribe_many({}, None, received, name="s")
    live.add({"one": "SELECT speed FROM cars WHERE speed > 0"})
    append(db, 0, 3)
    live.wait()
    assert sorted(received.whole()) == [
        "{'query': 'one', 'speed': 1.0}",
        "{'query': 'two', 'speed': 0.0}",
        "{'query': 'two', 'speed': 1.0}",
    ]
    db.close()


def test_streams_may_change_and_views_too(tmp_path: Path) -> None:
    """The queries go on with what names meant when they came."""
    db, received = opened(tmp_path), Receiver()
    db.sql("CREATE VIEW quick AS SELECT car, speed FROM cars WHERE speed > 1")
    live = db.subscribe_many(
        ["SELECT car FROM quick", "SELECT * FROM cars"], None, received, name="s"
    )
    append(db, 0, 2)
    db.sql("CREATE OR REPLACE VIEW quick AS SELECT car, speed FROM cars WHERE speed > 100")
    db.stream("cars").add_attribute("lane", "int64")
    live.add(["SELECT lane FROM cars"])
    live.wait()
    shutil.copytree(tmp_path, tmp_path.with_name("killed"))
    db.close()
    db = ev.open(tmp_path.with_name("killed"))
    live = db.subscribe_many([], None, received, name="s")
    append(db, 2, 4)
    live.wait()
    queries = Counter(row.partition(",")[0].strip("{}") for row in received.whole())
    assert queries == {"'query': 0": 1, "'query': 1": 3, "'query': 2": 1}
    db.close()


def test_queries_of_a_stream_that_was_dropped_meanwhile_leave(tmp_path: Path) -> None:
    db, received = opened(tmp_path), Receiver()
    db.subscribe_many({"c": "SELECT speed FROM cars", "t": "SELECT weight FROM trucks"}, name="s")
    db.close()
    db = ev.open(tmp_path)
    db.drop_stream("trucks")
    live = db.subscribe_many([], None, received, name="s")
    assert list(live.failures) == ["t"]
    assert live.texts == {"c": "SELECT speed FROM cars"}
    append(db, 0, 2)
    live.wait()
    assert received.whole() == ["{'query': 'c', 'speed': 0.0}"]
    db.close()


@pytest.mark.parametrize("anew", [False, True])
def test_queries_that_came_since_leave_with_their_stream_too(tmp_path: Path, anew: bool) -> None:
    db, received = opened(tmp_path / "0"), Receiver()
    live = db.subscribe_many({"c": "SELECT speed FROM cars"}, name="s")
    live.add({"t": "SELECT weight FROM trucks"})
    shutil.copytree(tmp_path / "0", tmp_path / "1")
    db.close()
    db = ev.open(tmp_path / "1")
    db.drop_stream("trucks")
    if anew:
        db.create_stream("trucks", {"car": "string", "weight": "float64"})
        db.stream("trucks").append([{"ts": 0, "weight": 1.0}, {"ts": 1, "weight": 1.0}])
    live = db.subscribe_many([], None, received, name="s")
    assert list(live.failures) == ["t"]
    append(db, 0, 2)
    live.wait()
    assert received.whole() == ["{'query': 'c', 'speed': 0.0}"]
    db.close()


OVERFLOWS = (
    "SELECT SUM(lane * 4611686018427387904) AS n FROM cars GROUP BY TUMBLE(ts, INTERVAL '9' DAY)"
)


@pytest.mark.parametrize("how", ["leaves", "fails", "fails later"])
def test_what_is_written_is_read_without_those_that_are_no_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    """No state has to be rebuilt because the only query of its template has left."""
    db, received = ev.open(tmp_path), Receiver()
    db.create_stream("cars", {"car": "string", "speed": "float64", "lane": "int64"})
    texts = {
        "leaves": "SELECT speed + 1 AS more FROM cars",
        "fails": "SELECT lane * 4611686018427387904 AS n FROM cars",
        "fails later": OVERFLOWS,
    }
    live = db.subscribe_many(
        {"other": texts[how], "counted": COUNTED.replace("$n", "0")}, None, received, name="s"
    )
    db.stream("cars").append([{"ts": n, "car": "a", "speed": 1.0, "lane": 3} for n in range(3)])
    live.wait()
    if how == "leaves":
        live.drop("other")
    db.close()
    assert live.failure is None
    db = ev.open(tmp_path)
    live = db.subscribe_many([], None, received, name="s")
    assert not any("rebuilt" in each.message for each in caplog.records)
    assert list(live.texts) == ["counted"]
    assert list(live.failures) == ([] if how == "leaves" else ["other"])
    live.advance(9 * SECOND)
    live.wait()
    assert [row.partition("'n'")[2] for row in received.whole() if "counted" in row] == [": 3}"]
    db.close()


def test_who_remembers_too_much_has_left_also_after_a_kill(tmp_path: Path) -> None:
    db, received = opened(tmp_path / "0"), Receiver()
    texts = {
        "few": "SELECT speed FROM cars",
        "many": "ISTREAM (SELECT speed FROM cars [RANGE 9 DAYS])",
    }
    live = db.subscribe_many(texts, None, received, name="s", max_state_bytes=50_000)
    for start in range(0, 4_000, 500):
        batch = [{"ts": each, "car": "a", "speed": 1.0} for each in range(start, start + 500)]
        db.stream("cars").append(batch)
    live.wait()
    assert list(live.failures) == ["many"]
    shutil.copytree(tmp_path / "0", tmp_path / "1")
    db.close()
    db = ev.open(tmp_path / "1")
    again = db.subscribe_many([], None, received, name="s")
    assert list(again.texts) == ["few"]
    db.close()


def test_only_a_durable_set_knows_its_texts(tmp_path: Path) -> None:
    db = opened(tmp_path)
    with pytest.raises(UnsupportedError, match="only a durable set"):
        _ = db.subscribe_many(["SELECT speed FROM cars"]).texts
    db.close()


def test_a_damaged_checkpoint_is_said(tmp_path: Path) -> None:
    db = opened(tmp_path)
    db.subscribe_many([PLAIN.replace("$n", "1")], name="s")
    db.close()
    path = tmp_path / durable.QUERIES / "s" / "checkpoint"
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(StoreError, match="damaged"):
        ev.open(tmp_path).subscribe_many([], name="s")
