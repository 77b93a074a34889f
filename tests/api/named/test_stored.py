"""Stored derived streams: the rows of the query live over the same events, each stored once."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eventide as ev
from eventide.api.live.query import LiveQuery, live_query
from eventide.api.live.stored import query as stored
from eventide.api.stream import Stream, with_seq_from
from eventide.engines.live.engine import LiveEngine
from eventide.errors import BindError, SchemaError, StoreError
from eventide.lang.sql.named.stream import plan_stream
from eventide.plan.named import NamedQuery
from eventide.store.progress import read_progress
from tests.engines import engines
from tests.naive.windows import Event

pytestmark = pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")

SECOND = 1_000_000
FAST = "SELECT car, speed FROM cars WHERE speed > 40"
QUERIES = [
    FAST,
    "SELECT car, COUNT(*) AS n, SUM(speed) AS total FROM cars "
    "GROUP BY car, TUMBLE(ts, INTERVAL '5' SECOND)",
    "SELECT * FROM cars MATCH_RECOGNIZE (PARTITION BY car ORDER BY ts "
    "MEASURES FIRST(speed) AS low, LAST(speed) AS high PATTERN (A B) "
    "DEFINE B AS speed > PREV(speed))",
    "ISTREAM (SELECT c.car, c.speed, t.load FROM cars [RANGE 6 SECONDS] AS c "
    "JOIN trucks [RANGE 4 SECONDS] AS t ON c.car = t.car)",
    "SELECT car, MAX(speed) AS top FROM quick GROUP BY car, TUMBLE(ts, INTERVAL '3' SECOND)",
]


def new_database(folder: str | Path) -> ev.Database:
    db = ev.open(folder)
    db.create_stream("cars", {"car": "string", "speed": "float64"}, durability="none")
    db.create_stream("trucks", {"car": "string", "load": "int64"}, durability="none")
    db.sql("CREATE STREAM quick AS SELECT car, speed FROM cars WHERE speed > 20")
    return db


def drawn_events(choose: random.Random, stream: str, count: int, about: int) -> pa.Table:
    """Events around a time, some of the same time, some late."""
    ts = [max(0, about + choose.randint(-4, 4)) * SECOND for _ in range(count)]
    cars = [choose.choice("abc") for _ in range(count)]
    values = [choose.randint(0, 100) for _ in range(count)]
    columns = {"ts": pa.array(ts, pa.timestamp("us")), "car": pa.array(cars)}
    if stream == "cars":
        return pa.table({**columns, "speed": pa.array(map(float, values))})
    return pa.table({**columns, "load": pa.array(values, pa.int64())})


class Oracle:
    """The same query live, which is handed the events that a step takes."""

    def __init__(self, db: ev.Database, text: str, lateness: str) -> None:
        named = NamedQuery("kept", "stored stream", text)
        plan = plan_stream(named, db.catalog(), db.named.inlined())
        self.live: LiveQuery = live_query(plan, db.catalog(), None, lateness)
        self.waiting: dict[str, list[pa.RecordBatch]] = {}
        self.seqs = {"cars": 0, "trucks": 0}
        self.found: list[Event] = []

    def append(self, stream: str, events: pa.Table) -> None:
        (batch,) = events.combine_chunks().to_batches()
        numbered = with_seq_from(batch, self.seqs[stream])
        self.seqs[stream] += events.num_rows
        if stream in self.live.streams:
            self.waiting.setdefault(stream, []).append(numbered)

    def step(self) -> None:
        arrived: Mapping[str, pa.RecordBatch] = {
            name: pa.concat_batches(parts) for name, parts in self.waiting.items()
        }
        self.waiting = {}
        if arrived:
            self.found += engines.plain(self.live.take(arrived).to_arrow())


def sorted_rows(rows: list[Event]) -> list[str]:
    return sorted(str(sorted(row.items())) for row in rows)


def rows_of(db: ev.Database, name: str = "kept") -> list[Event]:
    return engines.plain(db.sql(f"SELECT * FROM {name}").to_arrow())


def failure_of(db: ev.Database, name: str = "kept") -> str | None:
    return next(each.failure for each in db.streams() if each == name)


@contextmanager
def often(steps: int, at_once: int) -> Iterator[None]:
    """Write checkpoints after few steps, and read few events at once."""
    with (
        patch.object(stored, "STEPS_BETWEEN", steps),
        patch.object(stored, "EVENTS_AT_ONCE", at_once),
    ):
        yield


@settings(deadline=None, max_examples=25)
@given(
    st.integers(0, 2**32),
    st.sampled_from(QUERIES),
    st.sampled_from(["0 s", "2 s", "60 s"]),
    st.sampled_from([(1, 10**6), (3, 10**6), (10**6, 10**6), (2, 3)]),
)
def test_its_rows_are_those_of_the_query_live(
    seed: int, text: str, lateness: str, how: tuple[int, int]
) -> None:
    """With cut appends, late and tied events, appends of others, and reopened in between."""
    choose = random.Random(seed)
    with TemporaryDirectory() as folder, often(*how):
        db = new_database(Path(folder) / "db")
        oracle = Oracle(db, text, lateness)
        created = choose.randint(0, 4)
        for place in range(16):
            if place == created:
                db.sql(f"CREATE STORED STREAM kept WITH (lateness = '{lateness}') AS {text}")
                oracle.step()
            if choose.random() < 0.2:
                db = ev.open(db.path)
                if place > created:
                    oracle.step()
            stream = choose.choice(["cars", "cars", "trucks"])
            events = drawn_events(choose, stream, choose.randint(1, 5), 2 * place)
            oracle.append(stream, events)
            if choose.random() < 0.2:
                # As another process that runs no queries.
                db.store.stream(stream).append(events)
                continue
            db.stream(stream).append(events)
            if place >= created and stream in oracle.live.streams:
                oracle.step()
        db = ev.open(db.path)
        oracle.step()
        assert failure_of(db) is None
        assert sorted_rows(rows_of(db)) == sorted_rows(oracle.found)
        copy = db.backup(Path(folder) / "copy")
        more = drawn_events(choose, "cars", 3, 60)
        oracle.append("cars", more)
        oracle.step()
        for each in (db, copy):
            each.stream("cars").append(more)
            assert failure_of(each) is None
            assert sorted_rows(rows_of(each)) == sorted_rows(oracle.found)


@pytest.fixture
def db(tmp_path: Path) -> ev.Database:
    return new_database(tmp_path / "db")


def car(second: int, speed: float = 50.0) -> list[dict[str, object]]:
    return [{"ts": second * SECOND, "car": "a", "speed": speed}]


def test_it_is_a_stream_of_the_store(db: ev.Database) -> None:
    db.stream("cars").append(car(1))
    db.sql(f"CREATE STORED STREAM kept AS {FAST}")
    db.stream("cars").append(car(2))
    assert rows_of(db) == [{"ts": SECOND, "start_ts": SECOND, "car": "a", "speed": 50.0}]
    assert next(each.kind for each in db.streams() if each == "kept") == "stored derived stream"
    shown = str(db.explain("SELECT car FROM kept"))
    assert "Scan kept" in shown
    assert "Stored stream kept (named query)" in shown
    assert len(db.stream("kept")) == 1


def test_nothing_else_is_appended(db: ev.Database) -> None:
    db.sql(f"CREATE STORED STREAM kept AS {FAST}")
    for refused in (
        lambda: db.stream("kept").append(car(1)),
        lambda: db.stream("kept").feed(),
        lambda: db.store.refuse_derived("KEPT"),
    ):
        with pytest.raises(StoreError, match="events come from nowhere else") as found:
            refused()
        assert found.value.hint == "append to the streams that its query reads"
    with pytest.raises(StoreError, match="the columns of kept are those of its query"):
        db.stream("kept").add_attribute("more", "int64")
    with pytest.raises(StoreError, match="the columns of kept are those of its query"):
        db.stream("kept").drop_attribute("car")


def test_live_queries_and_other_stored_streams_read_it(db: ev.Database) -> None:
    db.sql(f"CREATE STORED STREAM kept AS {FAST}")
    db.sql("CREATE STORED STREAM fewer AS SELECT car FROM kept WHERE speed > 60")
    found: list[Event] = []
    db.subscribe("SELECT car, speed FROM kept", lambda rows: found.extend(rows.rows()))
    for second, speed in enumerate([50.0, 70.0, 30.0, 80.0, 90.0, 10.0]):
        db.stream("cars").append(car(second, speed))
    # The clock of each is at the newest row of the one before.
    assert [row["speed"] for row in rows_of(db)] == [50.0, 70.0, 80.0, 90.0]
    assert [row["ts"] for row in rows_of(db, "fewer")] == [SECOND, 3 * SECOND]
    db.wait()
    assert [row["speed"] for row in found] == [50.0, 70.0, 80.0]


def test_drop_removes_its_rows(db: ev.Database) -> None:
    db.stream("cars").append(car(1) + car(2))
    db.sql(f"CREATE STORED STREAM kept AS {FAST}")
    db.sql("CREATE VIEW some AS SELECT car FROM kept")
    with pytest.raises(StoreError, match="kept is read by some"):
        db.sql("DROP STREAM kept")
    db.sql("DROP VIEW some")
    with pytest.raises(StoreError, match="kept is a stored stream that a query defines"):
        db.drop_stream("kept")
    db.sql("DROP STREAM kept")
    assert "kept" not in db.streams()
    assert not (db.path / "streams" / "kept").exists()
    db.stream("cars").append(car(3))
    db.sql(f"CREATE STORED STREAM kept AS {FAST}")
    assert [row["ts"] for row in rows_of(db)] == [SECOND, 2 * SECOND]


def test_it_is_not_replaced(db: ev.Database) -> None:
    db.sql(f"CREATE STORED STREAM kept AS {FAST}")
    for create in ("CREATE STORED", "CREATE OR REPLACE STORED", "CREATE OR REPLACE", "CREATE"):
        with pytest.raises(StoreError, match="exists already"):
            db.sql(f"{create} STREAM kept AS {FAST}")
    answer = db.sql(f"CREATE STORED STREAM IF NOT EXISTS kept AS {FAST}")
    assert answer.rows()[0]["done"] == "exists already"
    db.sql("CREATE STORED STREAM other AS SELECT car FROM quick")
    with pytest.raises(BindError, match="other stores the rows of a query that reads quick"):
        db.sql("CREATE OR REPLACE STREAM quick AS SELECT car FROM cars")


def test_a_failing_query_does_not_disturb_producers(db: ev.Database) -> None:
    db.sql("CREATE STORED STREAM kept AS SELECT car, 100 / (load - 5) AS x FROM trucks")
    trucks = db.stream("trucks")

    def truck(second: int, load: int) -> list[dict[str, object]]:
        return [{"ts": second * SECOND, "car": "a", "load": load}]

    with patch.object(LiveEngine, "take", side_effect=ArithmeticError("no answer")):
        trucks.append(truck(1, 1))
    trucks.append(truck(2, 2))
    assert failure_of(db) == "no answer"
    assert "failed: no answer" in str(db.explain("SELECT * FROM kept"))
    assert rows_of(db) == []
    db = ev.open(db.path)
    assert failure_of(db) is None
    # The first step is taken again as it was, then what came since.
    assert [row["ts"] for row in rows_of(db)] == [SECOND]


def test_what_cannot_be_kept_is_not_created(db: ev.Database) -> None:
    with pytest.raises(SchemaError):
        db.sql("CREATE STORED STREAM kept AS SELECT ts - start_ts AS took FROM quick")
    with patch.object(LiveEngine, "take", side_effect=ArithmeticError("no answer")):
        db.stream("cars").append(car(1))
        with pytest.raises(ArithmeticError):
            db.sql(f"CREATE STORED STREAM kept AS {FAST}")
    assert "kept" not in db.streams()
    assert not (db.path / "streams" / "kept").exists()


def test_events_that_are_gone_are_noticed(db: ev.Database) -> None:
    db.sql(f"CREATE STORED STREAM kept AS {FAST}")
    for second in range(5):
        db.stream("cars").append(car(second))
    db.stream("cars").split()
    db.stream("cars").append(car(5))
    db.stream("cars").drop_before(5 * SECOND)
    db = ev.open(db.path)
    assert "events that kept has read are gone" in str(failure_of(db))
    assert len(rows_of(db)) == 5


def test_an_interrupted_step_is_taken_again(db: ev.Database) -> None:
    db.sql(f"CREATE STORED STREAM kept AS {FAST}")
    db.stream("cars").append(car(1))
    with (
        patch.object(LiveEngine, "take", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        db.stream("cars").append(car(2))
    db.stream("cars").append(car(3))
    assert failure_of(db) is None
    assert [row["ts"] for row in rows_of(db)] == [SECOND, 2 * SECOND]


def test_a_damaged_file_is_named(db: ev.Database) -> None:
    db.sql(f"CREATE STORED STREAM kept AS {FAST}")
    db.stream("cars").append(car(1))
    folder = db.path / "streams" / "kept" / "query"
    progress = read_progress(folder)
    assert progress is not None
    assert [step.until for step in progress.steps] == [{"cars": 1}]
    content = (folder / "checkpoint").read_bytes()
    (folder / "checkpoint").write_bytes(content[:-1] + b"?")
    db = ev.open(db.path)
    assert "checkpoint is damaged: its checksum does not match" in str(failure_of(db))
    db.stream("cars").append(car(2))


def test_a_step_that_was_cut_short_is_not_taken(db: ev.Database) -> None:
    db.sql(f"CREATE STORED STREAM kept AS {FAST}")
    db.stream("cars").append(car(1))
    journal = db.path / "streams" / "kept" / "query" / "journal-0"
    with journal.open("ab") as file:
        file.write(b'00000000 {"until":')
    db.stream("cars").append(car(2))
    db = ev.open(db.path)
    db.stream("cars").append(car(3))
    assert failure_of(db) is None
    assert [row["ts"] for row in rows_of(db)] == [SECOND, 2 * SECOND]


def test_it_reads_relations(db: ev.Database) -> None:
    owners = db.create_relation("owners", {"car": "string", "owner": "string"}, key=["car"])
    owners.upsert([{"car": "a", "owner": "Ada"}], at=0)
    text = """ISTREAM (SELECT c.speed, o.owner FROM cars [RANGE 5 SECONDS] AS c
              JOIN owners AS o ON o.car = c.car)"""
    db.stream("cars").append(car(1, 10.0) + car(2, 20.0))
    db.sql(f"CREATE STORED STREAM kept AS {text}")
    owners.upsert([{"car": "a", "owner": "Bob"}], at=4 * SECOND)
    db = ev.open(db.path)
    db.stream("cars").append(car(6, 30.0))
    db.stream("cars").append(car(7, 40.0))
    found = [(row["ts"], row["speed"], row["owner"]) for row in rows_of(db)]
    history = [(row["ts"], row["speed"], row["owner"]) for row in history_of(db, text)]
    assert sorted(found) == sorted(row for row in history if row[0] < 7 * SECOND)
    assert (4 * SECOND, 20.0, "Bob") in found


def history_of(db: ev.Database, text: str) -> list[Event]:
    """Return the rows of a query over history, as events."""
    return engines.plain(db.sql(f"SELECT ts, speed, owner FROM ({text}) AS q").to_arrow())


def test_damaged_definitions_do_not_disturb_producers(db: ev.Database) -> None:
    db.sql(f"CREATE STORED STREAM kept AS {FAST}")
    (db.path / "definitions.json").write_text("{}")
    db = ev.open(db.path)
    cars = Stream(db.store.stream("cars"), db.publish)
    assert cars.append(car(1)).rows == 1
