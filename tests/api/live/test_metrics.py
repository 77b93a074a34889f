"""The numbers of live queries: dictionaries, the text for Prometheus, rows of SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import eventide as ev
from eventide.api.database import Database
from eventide.api.live.shown.metrics import COLUMNS, Value, metrics_text
from eventide.errors import EventideError

FAST = "SELECT car, speed FROM cars WHERE speed > 70"
FAILS = "SELECT CAST(speed AS BIGINT) AS s FROM cars WHERE speed > 1000"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with ev.open(tmp_path / "traffic.ev") as opened:
        opened.create_stream("cars", {"car": "string", "speed": "float64"})
        yield opened


def drive(db: Database, *speeds: float) -> None:
    events = [{"ts": second, "car": "a", "speed": speed} for second, speed in enumerate(speeds)]
    db.stream("cars").append(events)


def test_a_query_counts_what_it_does(db: Database) -> None:
    taken: list[object] = []
    query = db.subscribe(FAST, taken.append)
    drive(db, 80, 50, 90, 10)
    db.stream("cars").append([{"ts": 0, "car": "late", "speed": 80.0}])
    query.wait()
    numbers = query.metrics()
    expected = {
        "id": 1,
        "name": None,
        "status": "running",
        "text": FAST,
        "events_in": 5,
        "rows_out": 2,
        "late": 1,
        "steps": 2,
        "waiting_rows": 0,
        "handed_rows": 2,
        "retried": 0,
        "dead_rows": 0,
        "failure": None,
    }
    assert {key: numbers[key] for key in expected} == expected
    assert isinstance(numbers["step_seconds"], float)
    assert numbers["step_seconds"] > 0
    assert numbers["state_rows"] == 1  # the newest event waits for the clock
    assert db.metrics() == {"queries": [numbers]}


def test_receivers_that_fail_are_counted(db: Database) -> None:
    def refuse(_: object) -> None:
        message = "no"
        raise OSError(message)

    query = db.subscribe(FAST, refuse, retries=2, retry_after="1 ms")
    drive(db, 80, 50)
    query.wait()
    numbers = query.metrics()
    assert (numbers["retried"], numbers["dead_rows"], numbers["handed_rows"]) == (2, 1, 0)


def test_rows_that_wait_to_be_pulled_are_counted(db: Database) -> None:
    query = db.live(FAST)
    drive(db, 80, 90, 50)
    assert query.metrics()["waiting_rows"] == 2


def test_the_text_for_prometheus(db: Database) -> None:
    query, failed = db.live(FAST), db.live(FAILS)
    query.pause()
    drive(db, 1e30, 50)
    lines = db.metrics_text().splitlines()
    assert 'eventide_queries{status="paused"} 1' in lines
    assert 'eventide_queries{status="failed"} 1' in lines
    assert 'eventide_queries{status="running"} 0' in lines
    assert f'eventide_query_info{{id="1",name="",status="paused",text="{FAST}"}} 1' in lines
    assert 'eventide_query_events_in_total{id="1",name=""} 0' in lines
    assert f'eventide_query_events_in_total{{id="{failed.id}",name=""}} 2' in lines
    # Every family has its HELP and TYPE before its first sample, and stands together.
    sample = re.compile(r'([a-z_]+)(\{[a-z]+="(?:[^"\\\n]|\\["\\n])*"(?:,[^}]*)?\})? [-+.e0-9]+$')
    family = ""
    seen: set[str] = set()
    for before, line in zip(["", *lines], lines, strict=False):
        if line.startswith("# HELP "):
            family = line.split()[2]
            assert family not in seen
            seen.add(family)
        elif line.startswith("# TYPE "):
            assert before.startswith(f"# HELP {family} ")
            assert line.split()[3] in ("counter", "gauge")
        else:
            found = sample.match(line)
            assert found is not None, line
            assert found[1] == family
    assert db.metrics_text().endswith("\n")


def test_labels_are_escaped() -> None:
    query: dict[str, Value] = {
        "id": 1,
        "name": 'a "b"\n\\c',
        "status": "running",
        "text": "SELECT '\\'\n  1",
    }
    text = metrics_text([query])
    line = next(each for each in text.splitlines() if each.startswith("eventide_query_info"))
    name, text = r'name="a \"b\"\n\\c"', r"""text="SELECT '\\' 1\""""
    assert name in line
    assert line.endswith("text=\"SELECT '\\\\' 1\"} 1"), text


# --- SELECT … FROM eventide.queries ----------------------------------------------------------


def test_live_queries_are_rows_of_sql(db: Database) -> None:
    db.live(FAST)
    db.live(FAILS)
    drive(db, 80, 1e30, 50)
    rows = db.sql("SELECT * FROM eventide.queries ORDER BY id")
    assert rows.columns == list(COLUMNS)
    first, second = rows.rows()
    assert (first["id"], first["status"], first["text"], first["name"]) == (
        1,
        "running",
        FAST,
        None,
    )
    assert (first["events_in"], first["rows_out"], first["waiting_rows"]) == (3, 2, 2)
    assert first["failure"] is None
    assert second["status"] == "failed"
    assert "1e+30" in second["failure"] or "1e30" in second["failure"]
    assert first["since"] <= second["since"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT id FROM eventide.queries WHERE status = 'paused'", [{"id": 2}]),
        ("SELECT q.id FROM eventide.queries AS q WHERE q.rows_out > 0", [{"id": 1}]),
        ("SELECT queries.id FROM eventide.queries ORDER BY id DESC LIMIT 1", [{"id": 2}]),
        ("SELECT eventide.queries.id FROM eventide.queries WHERE id = 1", [{"id": 1}]),
        ("SELECT COUNT(*) AS n, SUM(events_in) AS e FROM Eventide.Queries", [{"n": 2, "e": 2}]),
        (
            "SELECT status, COUNT(*) AS n FROM eventide.queries GROUP BY status ORDER BY status",
            [{"status": "paused", "n": 1}, {"status": "running", "n": 1}],
        ),
        (
            "SELECT a.id, c.car FROM eventide.queries a JOIN cars c ON c.speed > 70 AND a.id = 1",
            [{"id": 1, "car": "a"}],
        ),
        (
            "WITH w AS (SELECT id FROM eventide.queries) SELECT MAX(id) AS top FROM w",
            [{"top": 2}],
        ),
        ("SELECT id FROM (SELECT id, status FROM eventide.queries) WHERE id = 2", [{"id": 2}]),
    ],
)
def test_they_can_be_read_like_any_table(
    db: Database, text: str, expected: list[dict[str, object]]
) -> None:
    db.live(FAST)
    db.live(FAST).pause()
    drive(db, 80, 50)
    assert db.sql(text).rows() == expected


def test_without_live_queries_there_are_no_rows(db: Database) -> None:
    found = db.sql("SELECT * FROM eventide.queries")
    assert found.columns == list(COLUMNS)
    assert len(found) == 0


def test_a_stream_of_the_same_name_is_another_thing(db: Database) -> None:
    db.create_stream("queries", {"x": "int64"}).append([{"ts": 0, "x": 7}])
    db.live(FAST)
    assert db.sql("SELECT x FROM queries").rows() == [{"x": 7}]
    joined = "SELECT a.id, b.x FROM eventide.queries a CROSS JOIN queries b"
    assert db.sql(joined).rows() == [{"id": 1, "x": 7}]


def test_it_can_be_explained(db: Database) -> None:
    assert "eventide.queries" in str(db.explain("SELECT id FROM eventide.queries"))


@pytest.mark.parametrize("call", ["subscribe", "live", "replay"])
def test_live_use_is_refused(db: Database, call: str) -> None:
    with pytest.raises(EventideError, match=r"eventide\.queries") as raised:
        getattr(db, call)("SELECT id FROM eventide.queries")
    assert "db.sql" in str(raised.value)
    assert "^^^^" in str(raised.value)


def test_other_tables_of_that_name_are_unknown(db: Database) -> None:
    with pytest.raises(EventideError, match=r"no table 'eventide\.streams'"):
        db.sql("SELECT * FROM eventide.streams")
    with pytest.raises(EventideError, match=r"no stream 'other\.queries'"):
        db.sql("SELECT * FROM other.queries")
    with pytest.raises(EventideError, match="no column 'ts'"):
        db.sql("SELECT ts FROM eventide.queries")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS n FROM eventide.queries [RANGE 1 MINUTE]",
        """SELECT * FROM eventide.queries MATCH_RECOGNIZE (
             MEASURES A.id AS a PATTERN (A) WITHIN INTERVAL '1' MINUTE DEFINE A AS id > 0)""",
    ],
)
def test_its_rows_have_no_times(db: Database, text: str) -> None:
    db.live(FAST)
    with pytest.raises(
        EventideError, match=r"needs times, and the table eventide\.queries has none"
    ):
        db.sql(text)


def test_no_named_query_reads_it(db: Database) -> None:
    with pytest.raises(EventideError, match=r"eventide\.queries"):
        db.sql("CREATE VIEW v AS SELECT id FROM eventide.queries")
