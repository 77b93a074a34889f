"""Standing queries as events arrive: one clock for several streams, and history to begin with."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eventide as ev
from eventide.api.live.query import LiveQuery
from eventide.engines.live.engine import LiveEngine
from eventide.engines.live.start import started
from eventide.engines.standing.resume import resumed
from eventide.errors import (
    SchemaError,
    StateError,
    StateLimitError,
    UnboundedStateWarning,
    UnsupportedError,
)
from eventide.instants import START_OF_TIME_US
from eventide.operators.envelope import seal
from eventide.operators.state import join_parts
from eventide.operators.tree import OperatorTree
from eventide.plan.standing.choose import choose_plan, variants_of
from eventide.store import TableSource
from tests.engines.standing.queries import (
    AS_OF,
    CATALOG,
    DISTINCT,
    EXCEPT_ALL,
    GROUP_JOIN,
    JOIN,
    JOIN_3,
    RELATION_JOIN,
    SELF_JOIN,
    WINDOWS,
    history,
)
from tests.engines.standing.runs import bag, flat, plan_of
from tests.naive.standing.answers import Question, Streams, Truth
from tests.naive.standing.windows import SECOND
from tests.naive.windows import Event

Make = Callable[[Path], ev.Database]
TEXT = (
    "SELECT x.k, x.v, y.v AS w FROM a [RANGE 4 SECONDS] x JOIN b [RANGE 6 SECONDS] y ON x.k = y.k"
)
COUNTED = (JOIN, JOIN_3, SELF_JOIN, AS_OF, RELATION_JOIN, DISTINCT, EXCEPT_ALL, GROUP_JOIN)
QUESTIONS = (*COUNTED, JOIN.sliding(2), JOIN.reporting("ISTREAM"), WINDOWS[10], WINDOWS[16])


def named(questions: Sequence[Question]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("question", questions, ids=lambda question: question.name)


def engine_of(question: Question, lateness: int = 0) -> LiveEngine:
    return LiveEngine.of(choose_plan(plan_of(question.text)).plan, CATALOG, lateness)


def rows_of(name: str, events: list[Event]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(events, schema=CATALOG[name].arrow)


def arrivals(streams: Streams, names: Sequence[str], choose: random.Random, shuffled: int) -> Any:  # noqa: ANN401
    """Batches (stream, events) in an order in which no event comes later than allowed."""
    waiting = {name: list(streams[name]) for name in names}
    for events in waiting.values():
        events.sort(key=lambda event: event["ts"] + choose.randint(0, shuffled))
    while any(waiting.values()):
        name = choose.choice([each for each in names if waiting[each]])
        count = choose.randint(1, 4)
        yield name, waiting[name][:count]
        waiting[name] = waiting[name][count:]


@named(QUESTIONS)
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 2**32), late=st.sampled_from((0, 3 * SECOND)))
def test_whatever_the_order_of_streams(question: Question, seed: int, late: int) -> None:
    """Streams may be far apart, and events out of order by the lateness: the answer is the same."""
    choose, streams = random.Random(seed), history(seed)
    engine = engine_of(question, late)
    # A relation does not hold the clock back: its changes have to come before.
    streams = {**streams, "r": sorted(streams["r"], key=lambda event: event["ts"])}
    query = LiveQuery(engine)
    reports: list[dict[str, Any]] = []
    order = [name for name in engine.streams if name != "r"]
    if "r" in engine.streams:
        query.push(rows_of("r", streams["r"]), stream="r")
    for name, events in arrivals(streams, order, choose, late):
        reports += map(flat, query.push(rows_of(name, events), stream=name))
        if choose.random() < 0.3:
            query.state = engine.load(engine.dump(query.state))
        if query.watermark_us != START_OF_TIME_US and not question.report:
            truth = Truth(question, streams)
            assert bag_of(query) == truth.answer(query.watermark_us - 1)
    reports += map(flat, query.finish())
    assert query.late_count == 0
    newest = [event["ts"] for name in engine.streams for event in streams[name]]
    if newest and question.report:
        said = Counter(tuple(row.values()) for row in reports)
        assert said == Truth(question, streams).reports(max(newest) + 1)
    elif newest:
        assert bag_of(query) == Truth(question, streams).answer(max(newest))


def bag_of(query: LiveQuery) -> Counter[tuple[Any, ...]]:
    return (
        bag(query.current().to_arrow().combine_chunks().to_batches()[0])
        if len(query.current())
        else Counter()
    )


@named((JOIN, JOIN.sliding(2), JOIN.reporting("ISTREAM"), DISTINCT, GROUP_JOIN, WINDOWS[10]))
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 2**32), late=st.sampled_from((0, 2 * SECOND)))
def test_beginning_with_history_goes_on_as_if_it_had_seen_it(
    question: Question, seed: int, late: int
) -> None:
    choose, streams = random.Random(seed), history(seed)
    engine = engine_of(question, late)
    border = choose.randint(0, 8) * SECOND
    before = {name: [e for e in events if e["ts"] < border] for name, events in streams.items()}
    whole, begun = LiveQuery(engine), LiveQuery(engine)
    whole.take({name: rows_of(name, before[name]) for name in engine.streams})
    begun.state = started(engine, sources_of(before))
    assert bag_of(begun) == bag_of(whole)
    for name in engine.streams:
        later = rows_of(name, [e for e in streams[name] if e["ts"] >= border])
        assert bag_of_rows(begun.push(later, stream=name)) == bag_of_rows(
            whole.push(later, stream=name)
        )
    assert bag_of_rows(begun.finish()) == bag_of_rows(whole.finish())
    assert bag_of(begun) == bag_of(whole)


def sources_of(streams: Streams) -> Mapping[str, TableSource]:
    return {
        name: TableSource(name, schema, pa.Table.from_batches([rows_of(name, streams[name])]))
        for name, schema in CATALOG.items()
    }


def bag_of_rows(result: ev.Result) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(flat(row).values()) for row in result.rows())


def two_streams(folder: Path) -> ev.Database:
    db = ev.open(folder / "db")
    for name in "ab":
        db.create_stream(name, {"k": "string", "v": "int64"})
    return db


def append(db: ev.Database, name: str, *ticks: int) -> None:
    db.stream(name).append([{"ts": tick * SECOND, "k": "p", "v": tick} for tick in ticks])


def current(query: LiveQuery) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in query.current().rows())


def test_the_slowest_stream_sets_the_clock(tmp_path: Path) -> None:
    #  a  1  2     5         clock after these: the least of 5 and 2
    #  b  1  2
    db = two_streams(tmp_path)
    query = db.subscribe(TEXT)
    append(db, "a", 1, 2, 5)
    assert query.watermark_us == START_OF_TIME_US
    append(db, "b", 1, 2)
    assert query.watermark_us == 2 * SECOND
    assert current(query) == [("p", 1, 1)]
    append(db, "b", 9)
    assert query.watermark_us == 5 * SECOND
    # At 5 the first event of a goes: now is just before.
    assert current(query) == [("p", v, w) for v in (1, 2) for w in (1, 2)]


def test_time_goes_on_without_events(tmp_path: Path) -> None:
    db = two_streams(tmp_path)
    query = db.subscribe(TEXT)
    append(db, "a", 1)
    append(db, "b", 1)
    query.advance(3 * SECOND, stream="b")
    assert query.watermark_us == SECOND
    query.advance(2 * SECOND)
    assert current(query) == [("p", 1, 1)]
    query.advance(5 * SECOND + 1)
    assert current(query) == []
    append(db, "a", 4)
    assert query.late_counts == {"a": 1, "b": 0}
    assert [row["stream"] for row in query.late().rows()] == ["a"]
    assert [row["v"] for row in query.late("a").rows()] == [4]
    with pytest.raises(SchemaError, match="does not read 'c'"):
        query.advance(9 * SECOND, stream="c")
    append(db, "a", 6)
    assert not query.finished


def test_changes_are_reported_with_their_end(tmp_path: Path) -> None:
    db = two_streams(tmp_path)
    reports: list[dict[str, Any]] = []
    query = db.subscribe(TEXT, lambda result: reports.extend(result.rows()), lateness="1 s")
    append(db, "a", 1)
    append(db, "b", 2)
    query.wait()
    assert not reports
    query.finish()
    assert [flat(row) for row in reports] == [
        {"at": 2 * SECOND, "k": "p", "v": 1, "w": 2, "exp": 5 * SECOND}
    ]


def test_beginning_with_what_is_stored_misses_and_repeats_nothing(tmp_path: Path) -> None:
    db = two_streams(tmp_path)
    append(db, "a", 1, 2)
    append(db, "b", 1, 2)
    query = db.subscribe(TEXT, from_history=True)
    assert query.watermark_us == 2 * SECOND
    assert current(query) == [("p", 1, 1)]
    append(db, "a", 3)
    append(db, "b", 3)
    query.finish()
    assert current(query) == [("p", v, w) for v in (1, 2, 3) for w in (1, 2, 3)]


def test_events_in_the_queue_count_once(tmp_path: Path) -> None:
    """An event that is stored but not delivered yet is part of the history, and only of it."""
    db = two_streams(tmp_path)
    begun: list[LiveQuery] = []

    def begin(_: ev.Result) -> None:
        if not begun:
            append(db, "a", 2)
            begun.append(db.subscribe(TEXT, from_history=True))

    db.subscribe("SELECT v FROM b", begin)
    append(db, "a", 1)
    append(db, "b", 1, 3)
    db.wait()
    begun[0].finish()
    assert current(begun[0]) == [("p", v, w) for v in (1, 2) for w in (1, 3)]


def test_a_limit_of_memory_ends_the_query_with_a_reason(tmp_path: Path) -> None:
    db = two_streams(tmp_path)
    query = db.subscribe(TEXT, max_state_bytes=1000)
    append(db, "a", *range(4))
    append(db, "b", *range(4))
    assert query.status == "failed"
    assert isinstance(query.failure, StateLimitError)
    assert re.search("more than the 1,000 it may: most of it, .* for", str(query.failure))
    assert "shorter window" in str(query.failure)
    append(db, "b", 9)


def test_a_step_that_was_interrupted_ends_the_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = two_streams(tmp_path)
    query = db.subscribe(TEXT)
    append(db, "a", 1, 2)
    whole = OperatorTree.step

    def interrupted(*given: Any) -> Any:  # noqa: ANN401
        whole(*given)
        raise MemoryError

    monkeypatch.setattr(OperatorTree, "step", interrupted)
    append(db, "b", 1, 2)
    monkeypatch.undo()
    assert query.status == "failed"
    assert isinstance(query.failure, MemoryError)


def test_what_is_never_forgotten_is_warned_of(tmp_path: Path) -> None:
    db = two_streams(tmp_path)
    endless = TEXT.replace("RANGE 4 SECONDS", "RANGE UNBOUNDED")
    with pytest.warns(UnboundedStateWarning, match="what comes from a never goes"):
        db.subscribe(endless)
    db.subscribe(endless, max_state_bytes=10**6)
    db.subscribe("ISTREAM (SELECT a.v FROM a [RANGE UNBOUNDED])")
    db.subscribe("SELECT a.k, COUNT(*) AS n FROM a [RANGE UNBOUNDED] GROUP BY a.k")


def test_a_stream_far_behind_is_not_waited_for(tmp_path: Path) -> None:
    db = two_streams(tmp_path)
    query = db.subscribe(TEXT, max_lag="3 s")
    append(db, "b", 1)
    append(db, "a", 1, 2, 3)
    assert query.watermark_us == SECOND
    append(db, "a", 6)
    assert query.watermark_us == 3 * SECOND
    assert current(query) == [("p", 1, 1), ("p", 2, 1)]
    append(db, "b", 2)
    assert query.late_counts == {"a": 0, "b": 1}


def test_after_the_end_nothing_happens(tmp_path: Path) -> None:
    db = two_streams(tmp_path)
    query = db.subscribe("SELECT a.v FROM a [RANGE 2 SECONDS]")
    append(db, "a", 1)
    query.finish()
    assert current(query) == [(1,)]
    assert len(query.advance(9 * SECOND)) == 0
    assert len(query.push(rows_of("a", []))) == 0
    assert query.watermark_us == SECOND + 1
    assert current(query) == [(1,)]


def test_what_a_query_is_can_be_seen(tmp_path: Path) -> None:
    db = two_streams(tmp_path)
    query = db.subscribe("SELECT k FROM a [RANGE 9 s] EXCEPT SELECT k FROM b [RANGE 9 s]")
    assert repr(query) == (
        "<LiveQuery SELECT k FROM a [RANGE 9 s] EXCEPT SELECT k FROM b [RANGE 9 s]: "
        "a, b; no clock yet, remembers 0 rows>"
    )
    append(db, "a", 1)
    assert repr(query).endswith("a, b; no clock yet, remembers 1 row>")
    append(db, "b", 2)
    query.finish()
    assert "; clock 1970-01-01 00:00:02.000001, remembers " in repr(query)
    assert repr(query).endswith("finished>")
    other = repr(db.subscribe("SELECT v FROM a"))
    assert other == "<LiveQuery SELECT v FROM a: a; no clock yet, remembers 0 rows>"


def test_operators_are_called_as_explain_does(tmp_path: Path) -> None:
    db = two_streams(tmp_path)
    text = """
        SELECT x.v FROM a [RANGE 4 SECONDS] x WHERE x.v > 3
        AND NOT EXISTS (SELECT 1 FROM b [RANGE 4 SECONDS] y WHERE x.k = y.k)"""
    names = [name for name, _ in db.subscribe(text).sizes()]
    assert names == ["a, waiting", "b, waiting", "window x", "window y", "NotExists", "answer"]
    assert "NotExists" in db.explain(text)


def test_a_state_belongs_to_the_plan_that_wrote_it() -> None:
    """How many events streams have may change which plan is the best: states find theirs."""
    plan = plan_of("""
        SELECT x.v, y.v AS w FROM a [RANGE 4 SECONDS] x JOIN b [RANGE 4 SECONDS] y ON x.k = y.k
        WHERE NOT EXISTS (SELECT 1 FROM a [RANGE 2 SECONDS] z WHERE z.k = x.k AND z.g = x.g)""")
    streams, engines = history(5), [LiveEngine.of(each, CATALOG) for each in variants_of(plan)]
    assert len({engine.owner.digest for engine in engines}) == len(engines) > 1
    for writer, reader in zip(engines, reversed(engines), strict=True):
        state, _ = writer.take(
            writer.initial_state(), {name: rows_of(name, streams[name]) for name in "ab"}
        )
        dumped = writer.dump(state)
        expected = bag(writer.current(state))
        found, again = resumed(reader, plan, CATALOG, dumped)
        assert found.owner.digest == writer.owner.digest
        assert bag(found.current(again)) == expected
        if reader is not writer:
            with pytest.raises(StateError, match=r"(?s)another query.*resume"):
                reader.load(dumped)
    with pytest.raises(StateError, match="written by another query"):
        resumed(engine_of(JOIN), plan_of(JOIN.text), CATALOG, dumped)
    other = engine_of(JOIN)
    with pytest.raises(StateError, match="the query has 1 parts, expected 4"):
        other.load(seal(other.owner, join_parts([b"nothing"])))


def test_only_a_standing_query_has_an_answer_at_an_instant(tmp_path: Path) -> None:
    db = two_streams(tmp_path)
    with pytest.raises(UnsupportedError, match="cannot be asked for its current answer"):
        db.subscribe("SELECT v FROM a").current()


def test_several_kinds_of_queries_hear_of_their_streams_only(tmp_path: Path) -> None:
    db = two_streams(tmp_path)
    told: list[tuple[str, int]] = []

    def hear(name: str, text: str) -> None:
        db.subscribe(text, lambda result: told.extend((name, row["v"]) for row in result))

    hear("plain", "SELECT v FROM a")
    hear("window", "SELECT b.v FROM b [RANGE 1 SECOND]")
    append(db, "a", 1, 2)
    append(db, "b", 1, 2)
    db.wait()
    assert sorted(told) == [("plain", 1), ("window", 1)]


@pytest.mark.parametrize("lateness", ["0 s", "2 s"])
def test_a_replay_of_several_streams_reports_what_history_does(
    tmp_path: Path, lateness: str
) -> None:
    db = two_streams(tmp_path)
    append(db, "a", *range(8))
    append(db, "b", *range(0, 12, 3))
    text = f"ISTREAM ({TEXT})"
    pieces = list(db.replay({"joined": text, "plain": "SELECT v FROM a"}, lateness=lateness))
    replayed = [row for piece in pieces if piece.query == "joined" for row in piece.rows()]
    assert Counter(map(str, replayed)) == Counter(map(str, db.sql(text).rows()))
    assert sum(len(piece) for piece in pieces if piece.query == "plain") == 8
