"""Row patterns from the index: for any lookups, the answer is that of a full replay."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, assume, event, given, note, settings
from hypothesis import strategies as st

from eventide.engines.history.patterns import keyed
from eventide.engines.history.patterns import replay as period_replay
from eventide.engines.history.patterns.question import PatternQuestion, pattern_question
from eventide.engines.history.patterns.ways import IntervalAccess
from eventide.engines.history.replay import replay
from eventide.errors import EvaluationError
from eventide.lang.sql import plan_sql
from eventide.store import Snapshot, Store
from tests.engines.history.patterns.indexed_patterns import (
    ABC,
    COVERED,
    TEXTS,
    Past,
    answers,
    coarse_map,
    gapped_queries,
    indexed_queries,
    many_rows,
    pasts,
    shown,
    snapshot_of,
)
from tests.naive.patterns.texts import CATALOG, FIELDS, SCHEMA, Row, in_time
from tests.store.events import tiny_files

SLOWLY = settings(
    deadline=None,
    max_examples=24,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
LEAF_ROWS = "eventide.store.segments.segment_writer.LEAF_ROWS"


@st.composite
def streams(draw: st.DrawFn, most: int = 40) -> tuple[list[Row], Past]:
    rows = draw(st.lists(FIELDS, min_size=10, max_size=most).map(in_time))
    return rows, draw(pasts(len(rows)))


def check(text: str, stream: tuple[list[Row], Past], leaf_rows: int, coarse: int) -> None:
    rows, past = stream
    note(text)
    plan = plan_sql(text, CATALOG)
    with TemporaryDirectory() as folder, tiny_files(), patch(LEAF_ROWS, leaf_rows):
        snapshot = past.stream(Path(folder), rows).snapshot()
        question = pattern_question(plan, snapshot)
        if isinstance(question, str):
            event(question)
            return
        try:
            expected = shown(replay(plan, snapshot))
        except EvaluationError as error:
            assume("steps" not in str(error))
            event("an error")
            for way, answer in answers(question, coarse_map(coarse)):
                note(way)
                with pytest.raises(EvaluationError):
                    answer()
            return
        kind = "plain" if question.is_plain else "by key"
        event(f"{'matches' if expected else 'no match'}, {kind}, {question.looks_around}")
        event(f"only some rows matter: {question.is_sparse}")
        for way, answer in answers(question, coarse_map(coarse)):
            note(way)
            assert answer() == expected


COARSE = st.sampled_from([1, 1, 2, 5, 1000])
LEAVES = st.sampled_from([3, 3, 8])


@SLOWLY
@given(indexed_queries("contiguous"), streams(), LEAVES, COARSE)
def test_contiguous_patterns(
    text: str, stream: tuple[list[Row], Past], leaf_rows: int, coarse: int
) -> None:
    check(text, stream, leaf_rows, coarse)


@SLOWLY
@given(gapped_queries(), streams(), LEAVES, COARSE)
def test_patterns_with_gaps_between_their_rows(
    text: str, stream: tuple[list[Row], Past], leaf_rows: int, coarse: int
) -> None:
    check(text, stream, leaf_rows, coarse)


@SLOWLY
@given(indexed_queries("skip_till_next"), streams(), LEAVES, COARSE)
def test_patterns_that_skip_rows(
    text: str, stream: tuple[list[Row], Past], leaf_rows: int, coarse: int
) -> None:
    check(text, stream, leaf_rows, coarse)


@settings(SLOWLY, max_examples=12)
@given(indexed_queries("skip_till_any"), streams(most=20), LEAVES, COARSE)
def test_every_way_to_match(
    text: str, stream: tuple[list[Row], Past], leaf_rows: int, coarse: int
) -> None:
    check(text, stream, leaf_rows, coarse)


# Every rewrite, strategy, skip and output, over more rows


@pytest.fixture(scope="module", params=["in order", "late", "large leaves"])
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """A stream of 240 events, of which the last are in the log."""
    folder = tmp_path_factory.mktemp("patterns")
    leaf_rows = 64 if request.param == "large leaves" else 5
    with tiny_files(), patch(LEAF_ROWS, leaf_rows):
        return snapshot_of(folder, many_rows(240), late=request.param == "late")


@pytest.mark.parametrize("query", TEXTS)
def test_every_choice_gives_the_answer_of_replay(query: str, stored: Snapshot) -> None:
    plan = plan_sql(TEXTS[query], CATALOG)
    expected = shown(replay(plan, stored))
    assert bool(expected) == (query != "no time")
    question = pattern_question(plan, stored)
    assert isinstance(question, PatternQuestion)
    coarse = 1 if question.units.in_order else 4
    for way, answer in answers(question, coarse_map(coarse)):
        assert answer() == expected, way


def test_calls_of_the_matcher_may_be_small(stored: Snapshot) -> None:
    """Many groups of periods, in threads, give what one gives."""
    for query in ("gap", "rows around", "keys, around"):
        plan = plan_sql(TEXTS[query], CATALOG)
        question = pattern_question(plan, stored)
        assert isinstance(question, PatternQuestion)
        with (
            patch.object(period_replay, "TASK_ROWS", 10),
            patch.object(period_replay, "SMALLEST_TASK_ROWS", 5),
            patch.object(keyed, "SMALLEST_PART", 10),
            patch.object(keyed, "UNITS_READ", 3),
        ):
            for way, answer in answers(question):
                assert answer() == shown(replay(plan, stored)), way


def test_less_is_read_than_there_is(tmp_path: Path) -> None:
    """A needle: one row in 400 begins a match."""
    rows = many_rows(400)
    for row in rows:
        row["x"] = 9 if row["_seq"] == 211 else 2
    with tiny_files():
        snapshot = snapshot_of(tmp_path, rows)
    plan = plan_sql(
        f"SELECT * FROM s MATCH_RECOGNIZE ({COVERED} PATTERN (A B) WITHIN INTERVAL '5' SECOND "
        "DEFINE A AS x = 9, B AS x = 2)",
        CATALOG,
    )
    question = pattern_question(plan, snapshot)
    assert isinstance(question, PatternQuestion)
    first, second = question.shape.conditions
    by_index, by_map = IntervalAccess(question, (first,)), IntervalAccess(question, ())
    for access in (by_index, by_map):
        found, cost = access.run()
        assert [row["f"] for batch in found for row in batch.to_pylist()] == [211]
        assert cost.rows <= 20
        assert cost.blocks <= 7
        assert cost.intervals == 1
        assert cost.steps[0].name == "map of the pattern"
    assert (by_index.name, by_map.name) == ("intervals", "map")
    assert by_index.run()[1].entries == 1
    assert by_index.describe().startswith(
        "look up A: x = 9; replay the periods that remain, within "
    )
    assert by_map.describe().endswith("leaves, which the map of the pattern leaves")
    # What every row meets leaves everything that the map does.
    assert IntervalAccess(question, (first, second)).run()[1].rows <= 20


def test_only_rows_that_matter_are_read(tmp_path: Path) -> None:
    """Of 400 rows in one long period, those that can begin or end a match."""
    rows = many_rows(400)
    for row in rows:
        row["x"] = {0: 1, 7: 3}.get(row["_seq"] % 20, 2)
    with tiny_files():
        snapshot = snapshot_of(tmp_path, rows)
    body = "PATTERN (A T* B) WITHIN INTERVAL '60' SECOND DEFINE A AS x = 1, B AS x = 3"
    for measures, sparse in (("LAST(ts) AS l", True), ("COUNT(*) AS n", False)):
        text = f"SELECT * FROM s MATCH_RECOGNIZE (MEASURES FIRST(_seq) AS f, {measures} {body})"
        plan = plan_sql(text, CATALOG)
        question = pattern_question(plan, snapshot)
        assert isinstance(question, PatternQuestion)
        access = IntervalAccess(question, question.shape.conditions)
        found, cost = access.run()
        assert shown(found) == shown(replay(plan, snapshot))
        assert found
        assert (cost.rows <= 40) == sparse
        assert ("rows of these" in access.describe()) == sparse
    assert isinstance(question, PatternQuestion)
    alone = IntervalAccess(question, question.shape.conditions[:1])
    assert "rows of these" not in alone.describe()


# Errors


@pytest.mark.parametrize("query", ["variable is not there", "variable comes first"])
def test_a_match_that_cannot_be_skipped_from_is_an_error_either_way(
    query: str, stored: Snapshot
) -> None:
    skip = {
        "variable is not there": "AFTER MATCH SKIP TO LAST C PATTERN (A B+ C?)",
        "variable comes first": "AFTER MATCH SKIP TO LAST B PATTERN ((A | B) C)",
    }[query]
    plan = plan_sql(f"SELECT * FROM s MATCH_RECOGNIZE ({COVERED} {skip} {ABC})", CATALOG)
    with pytest.raises(EvaluationError) as expected:
        replay(plan, stored)
    question = pattern_question(plan, stored)
    assert isinstance(question, PatternQuestion)
    for _, answer in answers(question):
        with pytest.raises(EvaluationError) as raised:
            answer()
        assert str(raised.value) == str(expected.value)


# Streams and times at the ends of what there is


def test_an_empty_stream(tmp_path: Path) -> None:
    snapshot = Store.open(tmp_path / "db").create_stream("s", SCHEMA).snapshot()
    for query, text in TEXTS.items():
        question = pattern_question(plan_sql(text, CATALOG), snapshot)
        assert isinstance(question, PatternQuestion)
        for way, answer in answers(question):
            assert answer() == [], (query, way)


@pytest.mark.parametrize("within", ["3 SECOND", "1000000 DAY"])
def test_any_within(within: str, stored: Snapshot) -> None:
    """No sum with a time overflows, and a match may be as long as the stream."""
    amount, unit = within.split()
    text = (
        f"SELECT * FROM s MATCH_RECOGNIZE ({COVERED} PATTERN (A D* B) WITHIN INTERVAL '{amount}' "
        f"{unit} DEFINE A AS x = 1, D AS x > 0, B AS x = 4)"
    )
    plan = plan_sql(text, CATALOG)
    question = pattern_question(plan, stored)
    assert isinstance(question, PatternQuestion)
    expected = shown(replay(plan, stored))
    assert expected
    for way, answer in answers(question):
        assert answer() == expected, way
