"""Explain about the ways to answer: estimates, refusals, conditions, measured cost."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

from eventide.api.database import Database
from eventide.api.in_memory import sql
from eventide.engines.explain.text import seconds_text
from eventide.engines.history.profiling import replay_timed
from eventide.engines.history.weights import DEFAULTS
from eventide.errors import BindError, ParseError, PlanError, UnsupportedError
from eventide.lang.sql import plan_sql
from eventide.lang.sql.statement import read_statement
from tests.golden import explain_picture

EVENTS = 60_000
SVG = "{http://www.w3.org/2000/svg}"
HOURS = "SELECT window_start, AVG(heat) AS mean FROM s GROUP BY TUMBLE(ts, INTERVAL '4' HOUR)"
DROP = """SELECT * FROM s MATCH_RECOGNIZE (MEASURES FIRST(ts) AS since
  PATTERN (HOT LOW) WITHIN INTERVAL '10' SECOND
  DEFINE HOT AS heat > 70, LOW AS level < 5)"""
BY_KEY = "SELECT k, window_start, COUNT(*) AS n FROM s GROUP BY k, TUMBLE(ts, INTERVAL '1' HOUR)"


def events(count: int) -> pa.Table:
    """A second apart, slowly hotter; level goes through 0 to 9,972 in leaps, k from 0 to 4."""
    number = np.arange(count)
    return pa.table(
        {
            "ts": pa.array(number * 1_000_000).cast(pa.timestamp("us", "UTC")),
            "heat": number / 600,
            "level": number * 7_919 % 9_973,
            "k": number % 5,
        }
    )


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    found = Database(tmp_path_factory.mktemp("explain") / "db")
    attributes = {"heat": "float64", "level": "int64", "k": "int64"}
    for name, count in (("s", EVENTS), ("few", 100)):
        stream = found.create_stream(name, attributes, index=["level"])
        stream.append(events(count))
        stream.flush()
    return found


def lines_of(text: str, start: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip().startswith(start)]


def numbers(line: str) -> list[int]:
    """The counts of a row of the table: events, leaves, entries, intervals."""
    return [int(each.replace(",", "")) for each in line.rsplit("s ", 1)[1].split()]


def test_windows_say_both_ways_the_cheapest_first(database: Database) -> None:
    text = database.explain(HOURS)
    ways = [line for line in text.splitlines() if re.match(r"  [→ ] (index|replay) ", line)]
    assert ways[0].startswith("  → ")
    assert {"index", "replay"} == {line.lstrip(" →").split()[0] for line in ways}
    assert numbers(next(line for line in ways if "replay" in line))[0] == EVENTS
    assert "      replay all 60,000 events" in text
    assert "      windows of 4 h from the time index" in text


def test_the_history_line_tells_the_chosen_way(database: Database) -> None:
    for query in (HOURS, DROP):
        lines = database.explain(query).splitlines()
        place = next(n for n, line in enumerate(lines) if re.match(r"  → \w+ +\d", line))
        (history,) = (line for line in lines if line.startswith("history:"))
        told = lines[place + 1].strip()
        replayed = lines[place].split()[1] == "replay"
        expected = " in one slice" if replayed else f": {told}"
        assert history == f"history: 60,000 events of s{expected}"


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (BY_KEY.replace("FROM s", "FROM few"), "fewer than 20,000 events are soon read"),
        (
            DROP.replace("WITHIN INTERVAL '10' SECOND", ""),
            "a match can last any time without WITHIN",
        ),
    ],
)
def test_what_the_index_cannot_do_is_a_sentence(
    database: Database, query: str, reason: str
) -> None:
    text = database.explain(query)
    assert f"index: no, because {reason}" in text.splitlines()
    assert "ways" not in text


def test_rows_one_by_one_need_no_sentence(database: Database) -> None:
    text = database.explain("SELECT k FROM s")
    assert "index:" not in text
    assert "ways" not in text


def test_conditions_say_how_many_events_meet_them_and_how_they_are_found(
    database: Database,
) -> None:
    text = database.explain(DROP)
    (low,) = (line for line in text.splitlines() if "LOW: level < 5 " in line)
    assert "secondary index on level" in low
    assert re.search(r" 3\d events", low)  # exactly, for the index counts them
    (hot,) = (line for line in text.splitlines() if "HOT: heat > 70.0 " in line)
    assert "about 1" in hot
    assert "no index on heat: a column of 60,000 rows to read" in hot


def test_an_index_that_would_help_is_recommended(tmp_path: Path) -> None:
    database = Database(tmp_path / "db")
    stream = database.create_stream("s", {"heat": "float64", "level": "int64", "k": "int64"})
    stream.append(events(EVENTS))
    stream.flush()
    # A machine on which to match rows and to read a column takes long.
    database.weights = replace(DEFAULTS, column_row=1e-6, match_row=3e-6)
    rare = DROP.replace("heat > 70", "k >= 0")
    (hint,) = lines_of(database.explain(rare), "hint:")
    assert hint.startswith("hint: with an index on level it would take ")
    assert hint.endswith(' ms: db.stream("s").add_index("level")')
    stream.add_index("level")
    assert not lines_of(database.explain(rare), "hint:")


def test_analyze_shows_what_it_took_beside_the_estimates(database: Database) -> None:
    for query in (HOURS, DROP, BY_KEY):
        rows = len(database.sql(query))
        text = database.explain(query, analyze=True)
        assert len(lines_of(text, "actual ")) == 1
        steps = text[text.index("\nsteps") :].splitlines()[2:]
        assert steps[0].startswith("  Plan ")
        last = [line for line in steps if re.search(r" m?s ", line)][-1]
        assert last.endswith(f" {rows:,}")


def test_a_replay_counts_what_goes_through_each_operator(database: Database) -> None:
    plan = plan_sql(BY_KEY + " HAVING COUNT(*) > 700", database.catalog())
    source = database.stream("s").snapshot()
    batches, cost = replay_timed(plan, source)
    rows = sum(each.num_rows for each in batches)
    assert [step.name.split()[0] for step in cost.steps] == [
        "Scan",
        "WindowAggregate",
        "Filter",
        "Project",
    ]
    scan, windows, having, project = cost.steps
    assert scan.rows == windows.rows_in == cost.rows == EVENTS
    assert windows.rows == having.rows_in == 5 * 17
    assert having.rows == project.rows_in == project.rows == rows
    assert all(step.seconds >= 0 for step in cost.steps)


def test_operators_below_a_pattern_are_timed_in_slices_too(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventide.engines.history.replay.SLICE_ROWS", 20_000)
    query = DROP.replace("FROM s", "FROM (SELECT * FROM s WHERE level < 5000)")
    plan = plan_sql(query, database.catalog())
    batches, cost = replay_timed(plan, database.stream("s").snapshot())
    assert sum(each.num_rows for each in batches) == len(database.sql(query))
    names = [step.name.split()[0] for step in cost.steps]
    assert names[:2] == ["Scan", "Filter"]
    scan, below = cost.steps[:2]
    assert 0 < scan.rows == below.rows_in
    assert 0 < below.rows <= scan.rows


def test_ordinary_sql_around_it_is_timed_as_well(database: Database) -> None:
    text = database.explain(f"{HOURS} ORDER BY mean DESC LIMIT 3", analyze=True)
    assert "ways for eventide_0, cheapest first" in text
    (rest,) = lines_of(text, "history: DuckDB")
    assert rest.endswith(" ms, 3 rows")


# --- in SQL -----------------------------------------------------------------------------------


def test_explain_in_sql_is_the_same_text_a_line_a_row(database: Database) -> None:
    result = database.sql(f"explain {HOURS}")
    assert result.columns == ["plan"]
    assert "\n".join(row["plan"] for row in result) == database.explain(HOURS)
    analyzed = database.sql(f"-- why?\n EXPLAIN /* really */ ANALYZE {HOURS}")
    assert any("actual" in row["plan"] for row in analyzed)
    assert any("actual" in row["plan"] for row in database.sql(f"EXPLAIN (ANALYZE) {HOURS}"))


def test_explain_works_over_tables_too() -> None:
    table = pa.table({"ts": [1, 2, 3], "v": [1.0, 2.0, 3.0]})
    lines = [row["plan"] for row in sql("EXPLAIN SELECT v FROM t WHERE v > 1", t=table)]
    assert "history: 3 events of t, less what the index rules out by v, in one slice" in lines
    asked = "EXPLAIN ANALYZE SELECT SUM(v) AS s FROM t GROUP BY TUMBLE(ts, INTERVAL '1' SECOND)"
    lines = [row["plan"] for row in sql(asked, t=table)]
    assert "index: no, because it is not a stored stream" in lines
    with pytest.raises(BindError, match=r"ev\.sql\(text, t=table\)"):
        sql("EXPLAIN SELECT v FROM t")


def test_errors_point_into_the_text_with_explain(database: Database) -> None:
    with pytest.raises(BindError) as caught:
        database.sql("EXPLAIN ANALYZE SELECT heatt FROM s")
    assert str(caught.value).splitlines()[1:3] == [
        "  EXPLAIN ANALYZE SELECT heatt FROM s",
        "                         ^^^^^",
    ]
    with pytest.raises(ParseError, match="the query is empty"):
        database.sql("EXPLAIN")
    with pytest.raises(UnsupportedError, match="not a query"):
        database.subscribe("EXPLAIN SELECT heat FROM s")


def test_only_a_word_of_its_own_is_explain() -> None:
    assert read_statement("EXPLAINS SELECT 1").explain is None
    assert read_statement("SELECT 1 -- EXPLAIN").explain is None
    assert read_statement("/* why? */ EXPLAIN SELECT 1").explain == "plan"
    text = "EXPLAIN\nANALYZE\nSELECT 1"
    asked = read_statement(text)
    assert asked.explain == "analyze"
    assert [text[each.start : each.end + 1] for each in asked.tokens] == ["SELECT", "1"]


# --- pictures ----------------------------------------------------------------------------------


def texts_in(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    return ["".join(each.itertext()) for each in root.iter(f"{SVG}text")]


@pytest.mark.parametrize("query", [HOURS, DROP, BY_KEY, f"{HOURS} ORDER BY mean LIMIT 3"])
def test_pictures_are_small_and_whole(database: Database, query: str) -> None:
    for analyze in (False, True):
        svg = database.explain(query, analyze=analyze).svg()
        said = texts_in(svg)
        assert {"events", "leaves", "Ways considered", "60,000 events"} <= set(said)
        assert ("Where the time went" in said) == analyze
        assert ("as it ran" in said) == analyze
        assert len(svg) < 40_000


def test_a_pattern_shows_its_conditions_and_what_was_replayed(tmp_path: Path) -> None:
    said = texts_in(explain_picture.drawn(tmp_path / "db", 100_000))
    assert "● DROP: pressure < 0.0002" in said
    assert "HOT: temperature > 88.0" in said
    for name in ("ruled out", "leaves read", "may hold, by the map", "events that meet it"):
        assert name in said
    assert said.count("replayed") == 2  # the lane, and the legend


def test_the_picture_of_the_documents_is_of_this_kind() -> None:
    said = texts_in(explain_picture.FILE.read_text())
    assert "● DROP: pressure < 0.0002" in said
    assert said[0].startswith("How this query was answered, in ")


def test_nothing_stored_and_nothing_found_can_be_drawn(tmp_path: Path) -> None:
    database = Database(tmp_path / "db")
    database.create_stream("s", {"heat": "float64", "level": "int64", "k": "int64"})
    for query in (HOURS, DROP, BY_KEY):
        assert texts_in(database.explain(query, analyze=True).svg())


def test_a_picture_is_saved_as_its_name_says(database: Database, tmp_path: Path) -> None:
    explained = database.explain(DROP, analyze=True)
    assert explained.save(tmp_path / "p.svg").read_text() == explained.svg()
    page = explained.save(str(tmp_path / "p.html")).read_text()
    assert page.startswith("<!doctype html>")
    assert '<svg class="ev-chart"' in page
    with pytest.raises(PlanError, match=r"ends with \.svg or \.html"):
        explained.save(tmp_path / "p.png")


def test_times_have_three_digits() -> None:
    said = [seconds_text(each) for each in (0, 0.0009996, 0.00999, 0.01, 0.0999, 0.9, 1, 1234.5)]
    assert said == [
        "0.00 ms",
        "1.00 ms",
        "9.99 ms",
        "10.0 ms",
        "99.9 ms",
        "900 ms",
        "1.0 s",
        "1,234 s",
    ]
