"""Row patterns over events as they come: when a match is emitted, and what is kept until then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import eventide as ev
from eventide.engines.live.engine import LiveEngine, LiveState
from eventide.errors import EvaluationError, UnboundedStateWarning, UnsupportedError
from eventide.lang.sql import plan_sql
from eventide.operators.key_layers import KeyLayers
from eventide.operators.patterns.state import MatchState
from tests.naive.patterns.texts import CATALOG, SCHEMA, SECOND, Row

unbounded = pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")


@dataclass
class Feed:
    """A live query that gets one event after another, and its results after each.

    The watermark passes an event with the event itself: no other of that instant will follow.
    So nothing but the pattern makes a match wait.
    """

    engine: LiveEngine
    state: LiveState = field(init=False)
    count: int = 0

    def __post_init__(self) -> None:
        self.state = self.engine.initial_state()

    def push(
        self, label: str, at: float | None = None, key: str = "p", y: float | None = None
    ) -> list[Row]:
        """Push an event, one second after another unless told; `x` counts them."""
        ts = round((self.count if at is None else at) * SECOND)
        self.count += 1
        row = {"ts": ts, "_seq": self.count, "k": key, "x": self.count, "y": y, "label": label}
        rows = pa.RecordBatch.from_pylist([row], schema=SCHEMA.arrow)
        self.state, arrival = self.engine.push(self.state, rows, ts + 1)
        self.state = self.engine.load(self.engine.dump(self.state))
        found: list[Row] = arrival.rows.to_pylist()
        return found

    def finish(self) -> list[Row]:
        self.state, arrival = self.engine.finish(self.state)
        found: list[Row] = arrival.rows.to_pylist()
        return found

    @property
    def matches(self) -> MatchState:
        """What the operator remembers."""
        (state,) = (each for each in self.state.operators if isinstance(each, KeyLayers))
        remembered: MatchState = state.whole
        return remembered

    @property
    def rows_kept(self) -> int:
        """How many rows are remembered, those that wait for the watermark too."""
        kept: int = self.matches.rows.num_rows + self.state.feeds[0].waiting.num_rows
        return kept

    @property
    def keys_kept(self) -> int:
        """How many keys are remembered."""
        return len(self.matches.kept)


SPAN = "MEASURES FIRST(x) AS f, LAST(x) AS l"


def letters(names: str) -> str:
    """Return DEFINE with a letter for each variable: A is a row labelled a."""
    return "DEFINE " + ", ".join(f"{name} AS label = '{name.lower()}'" for name in names)


def feed(clauses: str) -> Feed:
    text = f"SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k {clauses})"
    return Feed(LiveEngine.of(plan_sql(text, CATALOG), CATALOG, 0))


def left(clauses: str, labels: str, at: Sequence[float] = ()) -> list[list[tuple[Any, ...]]]:
    """What left after each event of key p, and at the end; `.` is an event of another key."""
    query = feed(clauses)
    found = []
    for place, label in enumerate(labels):
        key = "q" if label == "." else "p"
        found.append(query.push(label, at[place] if at else None, key))
    found.append(query.finish())
    return [[tuple(row.values())[1:] for row in rows if row["k"] == "p"] for rows in found]


NONE: list[tuple[Any, ...]] = []


# When matches leave


@pytest.mark.parametrize(
    ("pattern", "names", "labels", "place", "match"),
    [
        ("A B C", "ABC", "abcx", 2, (1, 3)),
        ("A", "A", "ax", 0, (1, 1)),
        # A greedy pattern waits for the row that ends it, or the end.
        ("A B+", "AB", "abbx", 3, (1, 3)),
        ("A B+", "AB", "abb", 3, (1, 3)),
        ("A B*", "AB", "ax", 1, (1, 1)),
        ("A B?", "AB", "ax", 1, (1, 1)),
        # A reluctant one does not, and neither does one that has all it may take.
        ("A B+?", "AB", "abb", 1, (1, 2)),
        ("A B*? C", "ABC", "abbc", 3, (1, 4)),
        ("A B?", "AB", "abx", 1, (1, 2)),
        ("A B{1,2}", "AB", "abbx", 2, (1, 3)),
        ("A B{1,2}", "AB", "abx", 2, (1, 2)),
        ("A B+ C", "ABC", "abbc", 3, (1, 4)),
        # What is preferred has to fail before anything else will do.
        ("A B C | A", "ABC", "abcx", 2, (1, 3)),
        ("A B C | A", "ABC", "abx", 2, (1, 1)),
        ("A B C | A", "ABC", "ax", 1, (1, 1)),
        ("A | A B C", "ABC", "abc", 0, (1, 1)),
        ("PERMUTE(A, B)", "AB", "bax", 1, (1, 2)),
        ("^ A", "A", "aa", 0, (1, 1)),
        ("A B $", "AB", "ab", 2, (1, 2)),
        ("A B $ | A", "AB", "abx", 2, (1, 1)),
    ],
)
@unbounded
def test_a_match_leaves_when_nothing_can_change_it(
    pattern: str, names: str, labels: str, place: int, match: tuple[int, int]
) -> None:
    found = left(f"{SPAN} PATTERN ({pattern}) {letters(names)}", labels)
    assert found == [[match] if number == place else [] for number in range(len(labels) + 1)]


@pytest.mark.parametrize("at", [3.000001, 4])
def test_within_ends_a_match_without_a_further_row(at: float) -> None:
    clauses = f"{SPAN} PATTERN (A B+) WITHIN INTERVAL '3' SECOND {letters('AB')}"
    # A row at the deadline itself could still come, until time has passed it.
    found = left(clauses, "ab..", [0, 1, 2.999999, at])
    assert found == [NONE, NONE, NONE, [(1, 2)], NONE]
    found = left(clauses, "abbb", [0, 1, 3, 3.000001])
    assert found == [NONE, NONE, [(1, 3)], NONE, NONE]


@unbounded
def test_rows_behind_a_match_are_waited_for() -> None:
    clauses = f"MEASURES B.x AS b, NEXT(B.x, 2) AS then PATTERN (A B) {letters('AB')}"
    assert left(clauses, "abxy") == [NONE, NONE, NONE, [(2, 4)], NONE]
    assert left(clauses, "abx") == [NONE, NONE, NONE, [(2, None)]]
    condition = f"{SPAN} PATTERN (A B) DEFINE A AS label = 'a', B AS NEXT(label) = 'c'"
    assert left(condition, "abcx") == [NONE, NONE, [(1, 2)], NONE, NONE]
    assert left(condition, "abxc") == [NONE, NONE, NONE, NONE, NONE]


@unbounded
def test_matches_that_share_rows() -> None:
    next_row = f"{SPAN} AFTER MATCH SKIP TO NEXT ROW PATTERN (A+ B) {letters('AB')}"
    assert left(next_row, "aabx") == [NONE, NONE, [(1, 3), (2, 3)], NONE, NONE]
    to_last = (
        f"{SPAN} AFTER MATCH SKIP TO LAST C PATTERN (A B C) "
        "DEFINE A AS label = 'a', B AS label = 'b', C AS label = 'a'"
    )
    assert left(to_last, "ababa") == [NONE, NONE, [(1, 3)], NONE, [(3, 5)], NONE]
    past_last = f"{SPAN} PATTERN (A B A) {letters('AB')}"
    assert left(past_last, "ababa") == [NONE, NONE, [(1, 3)], NONE, NONE, NONE]


def test_rows_in_no_match_leave_when_that_is_certain() -> None:
    clauses = (
        "MEASURES CLASSIFIER() AS c ALL ROWS PER MATCH WITH UNMATCHED ROWS "
        f"PATTERN (A B C) {letters('ABC')}"
    )
    query = feed(clauses)
    found = [[(row["x"], row["c"]) for row in query.push(label)] for label in "xabxabc"]
    assert found == [
        [(1, None)],
        [],
        [],
        [(2, None), (3, None), (4, None)],
        [],
        [],
        [(5, "A"), (6, "B"), (7, "C")],
    ]
    assert query.finish() == []


@unbounded
def test_an_empty_match_leaves_at_once_unless_more_is_preferred() -> None:
    clauses = f"MEASURES MATCH_NUMBER() AS n, COUNT(*) AS c PATTERN (A B | ()) {letters('AB')}"
    found = left(clauses, "xabax")
    assert found == [[(1, 0)], NONE, [(2, 2)], NONE, [(3, 0), (4, 0)], NONE]


def test_a_trailing_not_leaves_at_its_deadline() -> None:
    clauses = (
        f"{SPAN} STRATEGY skip_till_next PATTERN (A NOT B) WITHIN INTERVAL '5' SECOND "
        f"{letters('AB')}"
    )
    assert left(clauses, "ax..", [0, 1, 4.999998, 5]) == [NONE, NONE, NONE, [(1, 1)], NONE]
    assert left(clauses, "ab.", [0, 1, 9]) == [NONE, NONE, NONE, NONE]
    assert left(clauses, "ab", [0, 5.000001]) == [NONE, [(1, 1)], NONE]
    assert left(clauses, "ax", [0, 1]) == [NONE, NONE, [(1, 1)]]


def test_a_not_in_between_leaves_with_the_last_row() -> None:
    clauses = (
        f"{SPAN} STRATEGY skip_till_next PATTERN (A NOT B C) WITHIN INTERVAL '5' SECOND "
        f"{letters('ABC')}"
    )
    assert left(clauses, "axc") == [NONE, NONE, [(1, 3)], NONE]
    assert left(clauses, "abc") == [NONE, NONE, NONE, NONE]


def test_what_timed_out_leaves_at_its_deadline() -> None:
    clauses = f"{SPAN} TIMEOUT ROWS PATTERN (A B C) WITHIN INTERVAL '5' SECOND {letters('ABC')}"
    late = left(clauses, "ab..", [0, 1, 4.9, 5])
    assert late == [NONE, NONE, NONE, [(1, 2, True)], NONE]
    # The next row shows that there is none: nothing has timed out.
    assert left(clauses, "abx.", [0, 1, 2, 9]) == [NONE] * 5
    assert left(clauses, "abc.", [0, 1, 2, 9]) == [NONE, NONE, [(1, 3, False)], NONE, NONE]
    # The end of the stream passes all deadlines.
    assert left(clauses, "ab") == [NONE, NONE, [(1, 2, True)]]


@unbounded
def test_rows_may_be_skipped_for_ever_without_within() -> None:
    clauses = f"{SPAN} STRATEGY skip_till_next PATTERN (A B+{{}}) {{}} {letters('AB')}"
    # Another B may follow whatever comes.
    assert left(clauses.format("", ""), "abxb") == [NONE] * 4 + [[(1, 4)]]
    assert left(clauses.format("?", ""), "axb") == [NONE, NONE, [(1, 3)], NONE]
    within = clauses.format("", "WITHIN INTERVAL '2' SECOND")
    assert left(within, "abxxx") == [NONE, NONE, [(1, 2)], NONE, NONE, NONE]


def test_every_way_to_match_leaves() -> None:
    clauses = (
        f"{SPAN} AFTER MATCH SKIP TO NEXT ROW STRATEGY skip_till_any PATTERN (A B) "
        f"WITHIN INTERVAL '3' SECOND {letters('AB')}"
    )
    found = left(clauses, "abbx.", [0, 1, 2, 2.5, 9])
    assert sorted(row for rows in found for row in rows) == [(1, 2), (1, 3)]
    assert found[-1] == NONE, "the deadline has passed before the end"


@unbounded
def test_the_order_of_keys_says_nothing() -> None:
    """What one key waits for holds no other up."""
    query = feed(f"{SPAN} PATTERN (A B+) {letters('AB')}")
    assert query.push("a", key="p") == []
    assert query.push("a", key="q") == []
    assert query.push("b", key="q") == []
    assert query.push("b", key="p") == []
    assert query.push("x", key="q") == [{"k": "q", "f": 2, "l": 3}]
    assert query.push("x", key="p") == [{"k": "p", "f": 1, "l": 4}]


def test_an_error_says_where_and_ends_the_query(tmp_path: Path) -> None:
    db = ev.open(tmp_path)
    stream = db.create_stream("s", SCHEMA.to_json())
    text = (
        f"SELECT * FROM s MATCH_RECOGNIZE ({SPAN} AFTER MATCH SKIP TO LAST B "
        f"PATTERN (A B? C) {letters('ABC')})"
    )
    query = db.subscribe(text)
    stream.append([{"ts": 0, "label": "a"}, {"ts": 1, "label": "c"}])
    stream.append([{"ts": 2, "label": "x"}])
    assert query.status == "failed"
    assert isinstance(query.failure, EvaluationError)
    assert "has no row of B" in str(query.failure)
    assert stream.snapshot().row_count == 3


# What is remembered


def test_with_within_little_is_remembered_however_long_it_runs() -> None:
    query = feed(f"{SPAN} PATTERN (A B+) WITHIN INTERVAL '3' SECOND {letters('AB')}")
    most = 0
    for number in range(300):
        query.push("a" if number % 50 == 0 else "b")
        most = max(most, query.rows_kept)
    assert 2 < most <= 4
    skipping = feed(
        f"{SPAN} STRATEGY skip_till_next PATTERN (A B+ NOT C) WITHIN INTERVAL '10' SECOND "
        f"{letters('ABC')}"
    )
    most = 0
    for number in range(150):
        skipping.push("abxxb"[number % 5])
        most = max(most, skipping.rows_kept)
    assert 5 < most <= 11


@unbounded
def test_without_within_a_greedy_pattern_remembers_its_rows() -> None:
    query = feed(f"{SPAN} PATTERN (A B+) {letters('AB')}")
    query.push("a")
    for _ in range(100):
        query.push("b")
    assert query.rows_kept == 101
    assert len(query.push("x")) == 1
    assert query.rows_kept == 0


def test_decided_rows_are_forgotten() -> None:
    query = feed(f"{SPAN} PATTERN (A B C) {letters('ABC')}")
    for number, label in enumerate("xbcxabx"):
        query.push(label, key=f"key {number % 2}")
        waiting = label == "a" or (label == "b" and number == 5)
        assert (query.rows_kept > 0) == waiting or number > 4
    for label in "xx":
        query.push(label, key="key 0")
        query.push(label, key="key 1")
    assert query.rows_kept == 0
    assert query.keys_kept == 0


def test_keys_that_are_done_are_forgotten() -> None:
    query = feed(f"{SPAN} PATTERN (A B) {letters('AB')}")
    for number in range(300):
        assert query.push("a", key=f"key {number}") == []
    assert query.keys_kept == query.rows_kept == 300
    for number in range(300):
        assert len(query.push("b", key=f"key {number}")) == 1
    assert query.keys_kept == query.rows_kept == 0


@unbounded
@pytest.mark.parametrize("pattern", ["A B", "^ A B"])
def test_keys_that_are_counted_or_have_begun_are_remembered(pattern: str) -> None:
    measures = "MEASURES MATCH_NUMBER() AS n" if pattern == "A B" else "MEASURES A.x AS x"
    query = feed(f"{measures} PATTERN ({pattern}) {letters('AB')}")
    for turn in range(3):
        for number in range(20):
            query.push("a", key=f"key {number}")
            found = query.push("b", key=f"key {number}")
            if pattern == "A B":
                assert found == [{"k": f"key {number}", "n": turn + 1}]
            else:
                assert len(found) == (turn == 0)
    assert query.keys_kept == 20
    assert query.rows_kept == 0


@unbounded
def test_as_many_rows_are_remembered_as_prev_looks_back() -> None:
    query = feed(f"MEASURES PREV(A.x, 3) AS before PATTERN (A) {letters('A')}")
    for _ in range(50):
        query.push("x")
        assert query.rows_kept <= 3
    assert query.push("a") == [{"k": "p", "before": 48}]
    assert query.keys_kept == 1


def test_time_alone_makes_a_key_forgotten() -> None:
    query = feed(f"{SPAN} PATTERN (A B) WITHIN INTERVAL '3' SECOND {letters('AB')}")
    for number in range(10):
        query.push("a", number / 100, key=f"key {number}")
    assert query.keys_kept == 10
    query.push("x", 3.04, key="clock")
    assert query.keys_kept == 5
    query.push("x", 4, key="clock")
    assert query.keys_kept == query.rows_kept == 0


@unbounded
def test_nothing_is_left_at_the_end() -> None:
    query = feed(f"MEASURES MATCH_NUMBER() AS n, PREV(A.x) AS p PATTERN (A B C) {letters('ABC')}")
    for label in "abcab":
        query.push(label)
    assert query.rows_kept
    query.finish()
    assert query.keys_kept == query.rows_kept == 0


# Late events, warnings and refusals


def test_late_rows_are_counted_and_kept_and_no_part_of_a_match(tmp_path: Path) -> None:
    db = ev.open(tmp_path)
    stream = db.create_stream("s", SCHEMA.to_json())
    text = (
        "SELECT * FROM s MATCH_RECOGNIZE (MEASURES COUNT(*) AS n, LAST(x) AS l "
        f"PATTERN (A B+) WITHIN INTERVAL '60' SECOND {letters('AB')})"
    )
    found: list[Row] = []
    query = db.subscribe(text, lambda result: found.extend(result.rows()), lateness="2 s")
    for number, (second, label) in enumerate(
        [(0, "a"), (3, "b"), (2, "b"), (5, "b"), (2.9, "b"), (3, "b"), (9, "x"), (12, "x")]
    ):
        stream.append([{"ts": round(second * SECOND), "x": number, "label": label}])
    # The row at 2.9 is behind 5 less 2; that at 3 is not, and in its place before the one at 5.
    assert query.late_count == 1
    assert [row["x"] for row in query.late().rows()] == [4]
    query.wait()
    assert found == [{"n": 5, "l": 3}]
    assert query.finish().rows() == []
    assert db.sql(text).rows() == [{"n": 6, "l": 3}]


def test_a_live_query_answers_one_event_later(tmp_path: Path) -> None:
    """Events of the newest instant wait: others of that instant may follow."""
    db = ev.open(tmp_path)
    stream = db.create_stream("s", SCHEMA.to_json())
    text = f"SELECT * FROM s MATCH_RECOGNIZE ({SPAN} PATTERN (A B) {letters('AB')})"
    found: list[Row] = []
    db.subscribe(text, lambda result: found.extend(result.rows()))
    stream.append([{"ts": 0, "x": 1, "label": "a"}, {"ts": 1, "x": 2, "label": "b"}])
    db.wait()
    assert found == []
    stream.append([{"ts": 1, "x": 3, "label": "x"}])
    db.wait()
    assert found == []
    stream.append([{"ts": 2, "x": 4, "label": "x"}])
    db.wait()
    assert found == [{"f": 1, "l": 2}]


@pytest.mark.parametrize(
    ("clauses", "reason"),
    [
        ("PATTERN (A B+)", r"B\+ can go on for ever"),
        ("PATTERN (A (B C)* D)", r"\(B C\)\* can go on for ever"),
        ("STRATEGY skip_till_next PATTERN (A B)", "under skip_till_next a match can wait"),
    ],
)
def test_a_pattern_without_an_end_warns_and_names_the_cure(
    clauses: str, reason: str, tmp_path: Path
) -> None:
    db = ev.open(tmp_path)
    db.create_stream("s", SCHEMA.to_json())
    text = f"SELECT * FROM s MATCH_RECOGNIZE (MEASURES A.x AS x {clauses})"
    with pytest.warns(UnboundedStateWarning, match=f"{reason}.*add WITHIN INTERVAL") as told:
        db.subscribe(text)
    assert told[0].filename == __file__
    # History has an end, and with WITHIN everything has one.
    db.sql(text)
    db.subscribe(f"{text[:-1]} WITHIN INTERVAL '1' SECOND)")


def test_a_pattern_with_an_end_does_not_warn(tmp_path: Path) -> None:
    db = ev.open(tmp_path)
    db.create_stream("s", SCHEMA.to_json())
    db.subscribe("SELECT * FROM s MATCH_RECOGNIZE (MEASURES A.x AS x PATTERN (A B{1,3} C?))")


@pytest.mark.parametrize("order", ["x", "ts DESC", "label, ts", "x + 1"])
def test_another_order_than_time_needs_history(order: str, tmp_path: Path) -> None:
    db = ev.open(tmp_path)
    stream = db.create_stream("s", SCHEMA.to_json())
    stream.append([{"ts": 0, "x": 2}, {"ts": 1, "x": 1}])
    text = f"SELECT * FROM s MATCH_RECOGNIZE (ORDER BY {order} {SPAN} PATTERN (A B))"
    with pytest.raises(UnsupportedError, match="order of the events' ts") as refused:
        db.subscribe(text)
    assert "history" in (refused.value.hint or "")
    assert f"ORDER BY {order}" in str(refused.value), "the message shows the place"
    assert len(db.sql(text).rows()) == 1


def test_ties_in_another_order_leave_when_time_has_passed_them(tmp_path: Path) -> None:
    db = ev.open(tmp_path)
    stream = db.create_stream("s", SCHEMA.to_json())
    text = f"SELECT * FROM s MATCH_RECOGNIZE (ORDER BY ts, x DESC {SPAN} PATTERN (A B))"
    found: list[Row] = []
    db.subscribe(text, lambda result: found.extend(result.rows()))
    for ts, x in [(0, 1), (0, 3), (0, 2), (0, 4)]:
        stream.append([{"ts": ts, "x": x}])
    db.wait()
    assert found == []
    stream.append([{"ts": 1, "x": 9}])
    db.wait()
    assert found == [{"f": 4, "l": 3}, {"f": 2, "l": 1}]
