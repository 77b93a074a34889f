"""Which ways there are to find a row pattern, why others are missing, and that all are right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest

import eventide as ev
from eventide.engines.history import choice
from eventide.engines.history.answer import run_history
from eventide.engines.history.choice import ways
from eventide.engines.history.patterns import ways as pattern_module
from eventide.engines.history.patterns.question import PatternQuestion, pattern_question, why_replay
from eventide.engines.history.patterns.ways import IntervalAccess
from eventide.engines.history.replay import replay
from eventide.engines.history.weights import DEFAULTS, Weights
from eventide.errors import StoreError
from eventide.lang.sql import plan_sql
from eventide.plan.nodes import Relational
from eventide.store import Snapshot, Store, TableSource
from eventide.store.options import StreamOptions
from tests.engines.history.patterns.indexed_patterns import (
    ABC,
    COVERED,
    TEXTS,
    answers,
    as_events,
    many_rows,
    shown,
    snapshot_of,
)
from tests.naive.patterns.rows import match_node
from tests.naive.patterns.texts import CATALOG, SCHEMA, SECOND
from tests.store.events import tiny_files


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """A stream of 240 events, some of them late."""
    with tiny_files():
        return snapshot_of(tmp_path_factory.mktemp("patterns"), many_rows(240), late=True)


# What has to see all events


BODY = "PATTERN (A B) WITHIN INTERVAL '2' SECOND DEFINE A AS x = 1"


@pytest.mark.parametrize(
    ("clauses", "reason"),
    [
        (f"MEASURES A.x AS v {BODY}", None),
        ("MEASURES A.x AS v PATTERN (A B) DEFINE A AS x = 1", "a match can last any time"),
        (
            "ORDER BY x MEASURES A.x AS v PATTERN (A B) DEFINE A AS x = 1",
            "rows are in an order of their own",
        ),
        (
            "MEASURES A.x AS v PATTERN (^ A) WITHIN INTERVAL '2' SECOND DEFINE A AS x = 1",
            "ask for the ends of the partition",
        ),
        (
            "MEASURES A.x AS v PATTERN (A $) WITHIN INTERVAL '2' SECOND DEFINE A AS x = 1",
            "ask for the ends of the partition",
        ),
        (f"MEASURES MATCH_NUMBER() AS n {BODY}", "matches are numbered"),
        (f"MEASURES A.x AS v {BODY}, B AS MATCH_NUMBER() < 3", "matches are numbered"),
        (
            f"MEASURES A.x AS v ALL ROWS PER MATCH WITH UNMATCHED ROWS {BODY}",
            "rows in no match are wanted too",
        ),
        (f"MEASURES A.x AS v TIMEOUT ROWS {BODY}", "matches that ran out of time are wanted too"),
        (
            "MEASURES A.x AS v PATTERN (A*) WITHIN INTERVAL '2' SECOND DEFINE A AS x = 1",
            "a match can be empty",
        ),
        (
            "MEASURES A.x AS v PATTERN (A B) WITHIN INTERVAL '2' SECOND DEFINE A AS x IS NULL",
            "no row that every match has is compared with a constant",
        ),
        (
            "MEASURES A.x AS v PATTERN (A? B) WITHIN INTERVAL '2' SECOND DEFINE A AS x = 1",
            "no row that every match has is compared with a constant",
        ),
    ],
)
def test_why_all_events_are_replayed(clauses: str, reason: str | None, stored: Snapshot) -> None:
    plan = plan_sql(f"SELECT * FROM s MATCH_RECOGNIZE ({clauses})", CATALOG)
    found = pattern_question(plan, stored)
    if reason is None:
        assert isinstance(found, PatternQuestion)
        assert why_replay(match_node(plan)) is None
        return
    assert isinstance(found, str)
    assert reason in found
    with patch.object(choice, "LEAST_ROWS", 0):
        given_ways = ways(plan, stored, DEFAULTS)
    assert given_ways.refused == found
    assert [each.name for each in given_ways.accesses] == ["replay"]
    assert shown(given_ways.best.run()[0]) == shown(replay(plan, stored))


def test_what_is_below_a_pattern_may_remember_rows(stored: Snapshot) -> None:
    text = (
        "SELECT * FROM (SELECT ts, x, AVG(x) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '2' SECOND "
        f"PRECEDING AND CURRENT ROW) AS m FROM s) MATCH_RECOGNIZE (MEASURES A.m AS m {BODY})"
    )
    found = pattern_question(plan_sql(text, CATALOG), stored)
    assert found == "what is below the pattern remembers rows"


def test_no_pattern_at_all(stored: Snapshot) -> None:
    plan = plan_sql("SELECT x FROM s WHERE x > 1", CATALOG)
    assert pattern_question(plan, stored) == "it looks for no pattern"


def test_other_sources_and_few_events_are_replayed(stored: Snapshot) -> None:
    plan = plan_sql(TEXTS["gap"], CATALOG)
    table = TableSource("s", SCHEMA, pa.Table.from_pylist(many_rows(50), schema=SCHEMA.arrow))
    assert ways(plan, table, DEFAULTS).refused == "it is not a stored stream"
    assert ways(plan, stored, DEFAULTS).refused == "fewer than 20,000 events are soon read"


def test_rows_of_too_many_keys_are_not_held(stored: Snapshot) -> None:
    """Without them, nobody knows the rows around those of a key."""
    around, alone = (plan_sql(TEXTS[name], CATALOG) for name in ("keys, around", "keys"))
    with patch.object(choice, "LEAST_ROWS", 0), patch.object(pattern_module, "MOST_ROWS", 10):
        refused = ways(around, stored, CHEAP).refused
        assert refused is not None
        assert refused.startswith("PREV and NEXT look around in the rows of a key")
        others = ways(alone, stored, CHEAP)
        assert others.refused is None
        assert not any("of each key" in each.describe() for each in others.accesses)


def test_conditions_that_every_row_meets_are_not_looked_up(stored: Snapshot) -> None:
    """By keys there is no map to fall back on, so that only replay is left."""
    text = (
        "SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k MEASURES PREV(A.x) AS p PATTERN (A B) "
        "WITHIN INTERVAL '3' SECOND DEFINE A AS x >= 0)"
    )
    with patch.object(choice, "LEAST_ROWS", 0):
        found = ways(plan_sql(text, CATALOG), stored, DEFAULTS)
    assert [each.name for each in found.accesses] == ["replay"]
    assert found.refused == "looking up conditions would save nothing"


def test_thinned_events_are_refused_like_a_replay_refuses_them(tmp_path: Path) -> None:
    plan = plan_sql(TEXTS["gap"], CATALOG)
    with tiny_files():
        options = StreamOptions(split_us=100 * SECOND, indexes=("x",))
        stream = Store.open(tmp_path / "db").create_stream("s", SCHEMA, options)
        stream.append(as_events(many_rows(300)))
        stream.flush(seal=True)
        assert stream.thin(100 * SECOND, 1)
        snapshot = stream.snapshot()
        question = pattern_question(plan, snapshot)
        assert isinstance(question, PatternQuestion)
        for run in (lambda: replay(plan, snapshot), IntervalAccess(question, ()).run):
            with pytest.raises(StoreError, match="thinned to aggregates"):
                run()
        # Behind them all is as ever.
        later = "(SELECT ts, _seq, x, label FROM s WHERE ts >= TIMESTAMP '1970-01-01 00:03:20')"
        later = TEXTS["gap"].replace("FROM s", f"FROM {later}")
        plan = plan_sql(later, CATALOG)
        question = pattern_question(plan, snapshot)
        assert isinstance(question, PatternQuestion)
        expected = shown(replay(plan, snapshot))
        assert expected
        for way, answer in answers(question):
            assert answer() == expected, way


# The choice


CHEAP = Weights(
    period_start=0.0,
    period_unit=0.0,
    period_column=0.0,
    period=0.0,
    lookup=0.0,
    entry=0.0,
    hit=0.0,
    key_row=0.0,
    column_row=0.0,
)
"""Weights by which the index costs nothing but the rows that it leaves."""


@pytest.fixture
def any_size() -> Iterator[None]:
    with patch.object(choice, "LEAST_ROWS", 0):
        yield


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("query", TEXTS)
def test_all_ways_are_right_and_the_cheapest_is_first(query: str, stored: Snapshot) -> None:
    plan = plan_sql(TEXTS[query], CATALOG)
    expected = shown(replay(plan, stored))
    for weights in (DEFAULTS, CHEAP):
        found = ways(plan, stored, weights)
        seconds = [each.estimate.seconds for each in found.accesses]
        assert seconds == sorted(seconds)
        assert "replay" in [each.name for each in found.accesses]
        assert found.best is found.accesses[0]
        for each in found.accesses:
            assert shown(each.run()[0]) == expected, each.describe()


@pytest.mark.usefixtures("any_size")
def test_the_door_goes_through_the_index(tmp_path: Path) -> None:
    events = as_events(many_rows(300))
    match = f"s MATCH_RECOGNIZE (PARTITION BY k {COVERED} PATTERN (A B* C) {ABC})"
    with tiny_files():
        db = ev.open(tmp_path)
        db.create_stream("s", SCHEMA.to_json(), index=["x", "label"]).append(events)
        db.weights = CHEAP
        ran: list[str] = []
        original = IntervalAccess.run

        def told(access: IntervalAccess) -> object:
            ran.append(access.name)
            return original(access)

        # The rest is DuckDB's, over what comes out of the index.
        texts = [
            f"SELECT * FROM {match} ORDER BY f",
            f"SELECT k, COUNT(*) AS c, MAX(n) AS m FROM {match} GROUP BY k ORDER BY k",
            f"SELECT m.f, b.x FROM {match} AS m JOIN s AS b ON m.f = b._seq ORDER BY m.f",
        ]
        for text in texts:
            plan = plan_sql(text, db.catalog())
            assert isinstance(plan, Relational)
            with patch.object(IntervalAccess, "run", told):
                found = db.sql(text).to_arrow()
            assert ran
            assert ran.count("intervals") == len(ran)
            ran.clear()
            with patch.object(choice, "LEAST_ROWS", 10**9):
                assert found.equals(run_history(plan, db.sources(plan)))
            assert found.num_rows


def test_an_instant_that_fills_a_leaf_belongs_to_one_region(tmp_path: Path) -> None:
    """Else a match that begins in it would be found from both sides."""
    stream = Store.open(tmp_path / "db").create_stream("s", SCHEMA)
    labels = ["a", "a", "a", "b", "b", "b", "x", "x", "x", "a", "b", "x"]
    times = [0, 1, 50, 55, 56, 100, 100, 100, 100, 100, 100, 150]
    rows = [
        {"ts": ts * SECOND, "k": "p", "x": 1, "y": 0.0, "label": label}
        for ts, label in zip(times, labels, strict=True)
    ]
    text = """SELECT * FROM s MATCH_RECOGNIZE (MEASURES FIRST(ts) AS a PATTERN (A B)
                WITHIN INTERVAL '10' SECOND DEFINE A AS label = 'a', B AS label = 'b')"""
    plan = plan_sql(text, CATALOG)
    with tiny_files():
        stream.append(pa.Table.from_pylist(rows, schema=SCHEMA.arrow.remove(1)))
        stream.flush()
        snapshot = stream.snapshot()
        question = pattern_question(plan, snapshot)
        assert isinstance(question, PatternQuestion)
        found, _ = IntervalAccess(question, ()).run()
        assert sum(batch.num_rows for batch in found) == 2
        assert sum(batch.num_rows for batch in replay(plan, snapshot)) == 2


def test_a_choice_is_kept_until_the_stream_has_grown(tmp_path: Path) -> None:
    """Looking at all conditions again takes longer than looking up the chosen ones."""
    rows, asked = many_rows(240), list[Weights]()
    facts = PatternQuestion.facts

    def told(question: PatternQuestion, weights: Weights) -> object:
        asked.append(weights)
        return facts(question, weights)

    def chosen(source: Snapshot, weights: Weights = DEFAULTS) -> list[tuple[str, object]]:
        found = pattern_module.pattern_ways(plan_sql(TEXTS["gap"], CATALOG), source, weights)
        assert not isinstance(found, str)
        return [(each.describe(), each.estimate) for each in found]

    with tiny_files(), patch.object(PatternQuestion, "facts", told):
        stored = snapshot_of(tmp_path, rows)
        first = chosen(stored)
        assert len(asked) == 1
        assert chosen(stored) == first
        assert len(asked) == 1
        other = replace(DEFAULTS, match_row=1e-3)
        assert chosen(stored, other) != first
        assert asked == [DEFAULTS, other]
        more = many_rows(480)[240:]
        stream = Store.open(tmp_path / "db").stream("s")
        stream.append(as_events(more))
        chosen(stream.snapshot())
        assert asked == [DEFAULTS, other, DEFAULTS]
