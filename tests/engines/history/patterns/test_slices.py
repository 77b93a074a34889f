"""Cutting a row pattern in time, or its keys among threads, changes nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, event, given, note, settings
from hypothesis import strategies as st

import eventide as ev
from eventide.engines.build import build_tree
from eventide.engines.history import replay as history
from eventide.engines.history.patterns import slices as match_slices
from eventide.engines.history.slices import Halo, Slice, halo_of, slices_of, widened
from eventide.errors import EvaluationError
from eventide.instants import ALL_TIME, END_OF_TIME_US, START_OF_TIME_US, TimeRange
from eventide.lang.sql import plan_sql
from eventide.operators import key_parts
from eventide.operators.patterns import entry as match_entry
from eventide.operators.patterns import match as match_rows
from eventide.operators.patterns.state import MatchState, part_of
from eventide.plan.patterns.automaton import automaton_of
from eventide.plan.patterns.cutting import why_whole
from eventide.plan.tree import Plan
from eventide.store import EventSource, Store, TableSource
from eventide.store.source import Where
from tests.naive.patterns.rows import match_node
from tests.naive.patterns.texts import CATALOG, FIELDS, SCHEMA, SECOND, Kinds, Row, in_time, queries
from tests.store.events import tiny_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Bag = list[str]

SLOWLY = settings(
    deadline=None,
    max_examples=30,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
# A pattern of two variables, for every way to match of three would take too long over 40 rows.
CONTIGUOUS = Kinds(strategies=("contiguous",))
SKIPPING = Kinds(strategies=("skip_till_next",))
EVERY_WAY = Kinds(strategies=("skip_till_any",), most_variables=2)

ROWS = st.lists(FIELDS, min_size=10, max_size=40).map(in_time)
CUTS = st.tuples(st.integers(1, 8), st.integers(0, 7), st.sampled_from([0, 0, 1]))
"""At every how manieth row, from which on, and how many microseconds behind it."""


@pytest.fixture(scope="module", autouse=True)
def compiled_once() -> Iterator[None]:
    """Keep the automata of patterns: each of many slices of a few rows would compile its own."""
    with patch("eventide.operators.patterns.conditions.automaton_of", cache(automaton_of)):
        yield


class Told(TableSource):
    """A table that remembers what was read of it."""

    __slots__ = ("read",)

    def __init__(self, rows: Sequence[Row]) -> None:
        super().__init__("s", SCHEMA, pa.Table.from_pylist(list(rows), schema=SCHEMA.arrow))
        self.read: list[TimeRange] = []

    def scan(
        self, columns: Sequence[str], time_range: TimeRange = ALL_TIME, where: Where | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Scan, and remember."""
        self.read.append(time_range)
        return super().scan(columns, time_range, where)


def uncut(text: str, within: int) -> str:
    """Return a query without PARTITION BY, and with WITHIN."""
    text = text.replace("PARTITION BY k ", "")
    if "WITHIN" in text:
        return text
    ends = [text.find(f" {clause} ", text.find("PATTERN (")) for clause in ("SUBSET", "DEFINE")]
    end = min((place for place in ends if place >= 0), default=len(text) - 1)
    return f"{text[:end]} WITHIN INTERVAL '{within}' SECOND{text[end:]}"


def cuttable(kinds: Kinds) -> st.SearchStrategy[str]:
    """Draw queries that can be cut in time."""
    texts = st.builds(uncut, queries(kinds), st.integers(1, 6))
    return texts.filter(lambda text: why_whole(match_node(plan_sql(text, CATALOG))) is None)


def shown(batches: Sequence[pa.RecordBatch]) -> Bag:
    return sorted(str(sorted(row.items())) for batch in batches for row in batch.to_pylist())


def whole_of(plan: Plan, source: EventSource) -> Bag:
    """The answer of a run that is not cut."""
    whole = Slice(TimeRange(), build_tree(plan).scan.time_range, source.row_count)
    return shown(history.run_slice(plan, source, whole))


def parts_of(plan: Plan, source: EventSource, slices: Sequence[Slice]) -> Bag:
    return shown([batch for part in slices for batch in history.run_slice(plan, source, part)])


def cut_at(plan: Plan, cuts: Sequence[int]) -> list[Slice]:
    """Slices at any instants, as `slices_of` makes them where cuts are worth it."""
    halo = halo_of(plan)
    assert halo is not None
    scanned = build_tree(plan).scan.time_range
    owned = [TimeRange(*ends) for ends in pairwise([START_OF_TIME_US, *cuts, END_OF_TIME_US])]
    return [Slice(each, widened(each, halo, scanned), 1) for each in owned]


def check(
    text: str, source: EventSource, rows: Sequence[Row], chosen: tuple[int, int, int]
) -> None:
    every, first, behind = chosen
    cuts = sorted({row["ts"] + behind for row in rows[first::every]})
    note(text)
    note(f"cut at {cuts}")
    plan = plan_sql(text, CATALOG)
    try:
        expected = whole_of(plan, source)
    except EvaluationError as error:
        # As many steps as one may take are taken by no slice either, but for no cut.
        assume("steps" not in str(error))
        with pytest.raises(EvaluationError):
            parts_of(plan, source, cut_at(plan, cuts))
        event("an error")
        return
    event("matches" if expected else "no match")
    assert parts_of(plan, source, cut_at(plan, cuts)) == expected


@SLOWLY
@given(cuttable(CONTIGUOUS), ROWS, CUTS)
def test_contiguous_patterns(text: str, rows: list[Row], cuts: tuple[int, int, int]) -> None:
    check(text, Told(rows), rows, cuts)


@SLOWLY
@given(cuttable(SKIPPING), ROWS, CUTS)
def test_patterns_that_skip_rows(text: str, rows: list[Row], cuts: tuple[int, int, int]) -> None:
    check(text, Told(rows), rows, cuts)


@settings(SLOWLY, max_examples=25)
@given(cuttable(EVERY_WAY), st.lists(FIELDS, min_size=5, max_size=25).map(in_time), CUTS)
def test_every_way_to_match(text: str, rows: list[Row], cuts: tuple[int, int, int]) -> None:
    check(text, Told(rows), rows, cuts)


# Slices as they are made, over enough rows that there are many


def pattern(clauses: str) -> str:
    return f"SELECT * FROM s MATCH_RECOGNIZE ({clauses})"


SPANS = "MEASURES FIRST(_seq) AS f, LAST(_seq) AS l, COUNT(*) AS n, PREV(A.x) AS p"
AB = "WITHIN INTERVAL '3' SECOND DEFINE A AS x = 1, B AS x > 1"
ABC = f"{AB}, C AS label = 'c'"
RISING = "WITHIN INTERVAL '3' SECOND DEFINE A AS x < 3, B AS x > FIRST(A.x)"

SLICED = {
    "past last row": f"{SPANS} PATTERN (A B+ C?) {ABC}",
    "to next row": f"{SPANS} AFTER MATCH SKIP TO NEXT ROW PATTERN (A B*) {AB}",
    "to a variable": f"{SPANS} AFTER MATCH SKIP TO LAST B PATTERN (A B+ C?) {ABC}",
    "all rows": f"{SPANS} ALL ROWS PER MATCH PATTERN (A B+ C?) {ABC}",
    "unmatched": f"{SPANS} ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A B+ C?) {ABC}",
    "unmatched, to next row": f"{SPANS} ALL ROWS PER MATCH WITH UNMATCHED ROWS "
    f"AFTER MATCH SKIP TO NEXT ROW PATTERN (A B+) {AB}",
    "unmatched, every way": f"{SPANS} ALL ROWS PER MATCH WITH UNMATCHED ROWS "
    f"AFTER MATCH SKIP TO NEXT ROW STRATEGY skip_till_any PATTERN (A B) {AB}",
    "empty": f"{SPANS} ALL ROWS PER MATCH PATTERN (A+ B | ()) {AB}",
    "match state": f"{SPANS} PATTERN (A+ B) {RISING}",
    "timeouts": f"{SPANS} TIMEOUT ROWS PATTERN (A B C) {ABC}",
    "absence": f"{SPANS} STRATEGY skip_till_next PATTERN (A NOT C B) {ABC}",
    "trailing absence": f"{SPANS} STRATEGY skip_till_next PATTERN (A B NOT C) {ABC}",
    "every way": f"{SPANS} AFTER MATCH SKIP TO NEXT ROW STRATEGY skip_till_any PATTERN (A B) {AB}",
    "row before": f"{SPANS} PATTERN (A B) WITHIN INTERVAL '3' SECOND "
    "DEFINE A AS x > PREV(x, 2), B AS x < 3",
}


def many_rows(count: int = 400) -> list[Row]:
    choose = random.Random(7)
    return in_time(
        [
            {
                "ts": choose.choice([1, 0, 1, 1, 2, 4]),
                "k": choose.choice(["p", "q", None]),
                "x": choose.choice([0, 1, 2, 3, 4, None]),
                "y": choose.choice([0.25, 1.5, None]),
                "label": choose.choice(["a", "b", "c", None]),
            }
            for _ in range(count)
        ]
    )


@pytest.mark.parametrize("query", SLICED)
def test_slices_together_are_the_whole(query: str) -> None:
    source, plan = Told(many_rows()), plan_sql(pattern(SLICED[query]), CATALOG)
    slices = slices_of(plan, build_tree(plan).scan, source, 20)
    assert len(slices) > 10
    expected = whole_of(plan, source)
    assert expected
    source.read.clear()
    assert parts_of(plan, source, slices) == expected
    # Each slice found where to begin without reading everything before it, mostly at once.
    first_us = source.time_range.start_us
    from_the_start = [read for read in source.read if read.start_us <= first_us]
    assert len(from_the_start) <= 3
    assert len(source.read) < 1.5 * len(slices)


def even_rows(count: int = 400) -> list[Row]:
    return in_time([{"ts": 1, "k": None, "x": 1, "y": 0.0, "label": "a"}] * count)


# Rows in pairs, without a gap: which row leads its pair depends on the very first.
PAIRED = pattern(f"{SPANS} PATTERN (A B) WITHIN INTERVAL '2' SECOND")


def test_where_no_row_is_free_a_slice_reads_further_back() -> None:
    rows = even_rows()
    source, plan = Told(rows), plan_sql(PAIRED, CATALOG)
    slices = slices_of(plan, build_tree(plan).scan, source, 50)
    assert len(slices) == 8
    last = slices[-1]
    found = shown(history.run_slice(plan, source, last))
    starts = [read.start_us for read in source.read]
    back = [last.owned.start_us - 3 * 4**turn * 2 * SECOND for turn in range(len(starts))]
    first_us = rows[0]["ts"]
    assert starts == [max(each, first_us) for each in back]
    assert starts[-2:] == [back[-2], first_us]
    assert len(found) == 25
    assert parts_of(plan, source, slices) == whole_of(plan, source)


@pytest.mark.parametrize("cut", [60, 61])
def test_errors_of_rows_behind_a_slice_are_nobodys(cut: int) -> None:
    """Every A has its B, but the last A that a slice reads: behind it nothing was read."""
    rows = even_rows(120)
    for row in rows:
        row["label"] = "ab"[row["_seq"] % 2]
    text = pattern(
        f"{SPANS} AFTER MATCH SKIP TO LAST B PATTERN (A B | A) WITHIN INTERVAL '2' SECOND "
        "DEFINE A AS label = 'a', B AS label = 'b'"
    )
    source, plan = Told(rows), plan_sql(text, CATALOG)
    expected = whole_of(plan, source)
    assert len(expected) == 60
    assert parts_of(plan, source, cut_at(plan, [cut * SECOND])) == expected


def test_a_gap_is_where_to_begin() -> None:
    rows = even_rows()
    for row in rows:
        row["ts"] += row["_seq"] // 15 * 10 * SECOND
    text = pattern(f"{SPANS} PATTERN (A B) WITHIN INTERVAL '8' SECOND")
    source, plan = Told(rows), plan_sql(text, CATALOG)
    slices = slices_of(plan, build_tree(plan).scan, source, 30)
    entries: list[int | None] = []

    def told(*arguments: object) -> int | None:
        entries.append(match_entry.entry_of(*arguments))  # type: ignore[arg-type]
        return entries[-1]

    with patch.object(match_slices, "entry_of", told):
        assert parts_of(plan, source, slices) == whole_of(plan, source)
    assert len(slices) > 4
    assert len(entries) == len(slices) - 1
    assert None not in entries
    assert all(entries), "rows before the entry were read, and left out"


def test_what_can_be_cut() -> None:
    def halo(clauses: str) -> Halo | None:
        return halo_of(plan_sql(pattern(clauses), CATALOG))

    body = "PATTERN (A B) WITHIN INTERVAL '2' SECOND"
    assert halo(f"MEASURES PREV(A.x, 5) AS p {body}") == Halo(6 * SECOND, 2 * SECOND)
    assert halo(f"PARTITION BY k MEASURES A.x AS x {body}") is None
    assert halo("MEASURES A.x AS x PATTERN (A B)") is None
    assert halo(f"MEASURES MATCH_NUMBER() AS n {body}") is None
    assert halo(f"MEASURES NEXT(B.x) AS n {body}") is None
    assert halo("MEASURES A.x AS x PATTERN (^ A) WITHIN INTERVAL '2' SECOND") is None
    assert halo("MEASURES A.x AS x PATTERN (A $) WITHIN INTERVAL '2' SECOND") is None


# A store of many small files


def stored(rows: Sequence[Row], folder: Path) -> EventSource:
    """Rows in many segments, some still in the log."""
    stream = Store.open(folder).create_stream("s", SCHEMA)
    table = pa.Table.from_pylist(list(rows), schema=SCHEMA.arrow).drop_columns(["_seq"])
    for start in range(0, len(rows), 7):
        stream.append(table.slice(start, 7))
    return stream.snapshot()


@pytest.mark.parametrize("query", SLICED)
def test_slices_of_a_store(query: str, tmp_path: Path) -> None:
    rows, plan = many_rows(300), plan_sql(pattern(SLICED[query]), CATALOG)
    with tiny_files():
        source = stored(rows, tmp_path)
        slices = slices_of(plan, build_tree(plan).scan, source, 20)
        assert len(slices) > 5
        assert parts_of(plan, source, slices) == whole_of(plan, Told(rows))


@pytest.mark.spark
def test_slices_on_spark_read_further_back_too(tmp_path: Path, spark: SparkSession) -> None:
    from eventide.engines.spark import history as spark_history

    rows = even_rows(401)
    db = ev.open(tmp_path)
    events = pa.Table.from_pylist(rows, schema=SCHEMA.arrow).drop_columns(["_seq"])
    db.create_stream("s", SCHEMA.to_json()).append(events)
    plan = plan_sql(PAIRED, CATALOG)
    source = db.stream("s").snapshot()
    # 37 rows a slice: some have the first row of a pair for their first, and some the second.
    assert len(slices_of(plan, build_tree(plan).scan, source, 37)) > 8
    with (
        patch.object(spark_history, "SMALLEST_SLICE_ROWS", 1),
        patch.object(spark_history, "TASKS_PER_CORE", 6),
    ):
        found = ev.spark(spark, db.path).sql(PAIRED).toArrow()
    assert sorted(found.column("f").to_pylist()) == list(range(0, 400, 2))


@settings(SLOWLY, max_examples=25)
@given(cuttable(CONTIGUOUS) | cuttable(SKIPPING), ROWS, CUTS)
def test_any_slices_of_a_store(text: str, rows: list[Row], cuts: tuple[int, int, int]) -> None:
    with tiny_files(), TemporaryDirectory() as folder:
        check(text, stored(rows, Path(folder)), rows, cuts)


# Threads


KEYED = [
    f"PARTITION BY k {SPANS} AFTER MATCH SKIP TO NEXT ROW PATTERN (A B+ C?) {ABC}",
    f"PARTITION BY k, label {SPANS} ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A B+) {AB}",
    f"PARTITION BY y, label MEASURES MATCH_NUMBER() AS n, LAST(_seq) AS l PATTERN (A B+) {RISING}",
    f"PARTITION BY y {SPANS} STRATEGY skip_till_next PATTERN (A NOT C B) {ABC}",
]


@pytest.mark.parametrize("clauses", KEYED)
@pytest.mark.parametrize("block", [37, 1000])
def test_threads_find_what_one_finds(clauses: str, block: int) -> None:
    source, plan = Told(many_rows()), plan_sql(pattern(clauses), CATALOG)
    whole = Slice(TimeRange(), build_tree(plan).scan.time_range, source.row_count)
    shared: list[int] = []

    def told(*arguments: object) -> MatchState:
        shared.append(1)
        return part_of(*arguments)  # type: ignore[arg-type]

    with (
        patch.object(key_parts, "SMALLEST_PART", 3),
        patch.object(match_rows, "part_of", told),
        patch.object(history, "SLICE_ROWS", block),
        patch("eventide.store.memory.SLICE_ROWS", block),
    ):
        found = shown(history.run_slice(plan, source, whole, threads=3))
    assert len(shared) >= 2
    assert found == whole_of(plan, source)
    assert found


def test_a_pattern_with_matches_everywhere_is_not_cut() -> None:
    """No row is ever free of matches, and searches hardly meet: one slice for all takes less."""
    draw = random.Random(4)
    rows = in_time(
        [{"ts": 1, "k": "p", "x": draw.randrange(3), "y": 0.0, "label": "a"} for _ in range(3000)]
    )
    text = """SELECT * FROM s MATCH_RECOGNIZE (MEASURES FIRST(ts) AS a, LAST(ts) AS b
                PATTERN (A T* B) WITHIN INTERVAL '40' SECOND
                DEFINE A AS x = 1, B AS x = 2)"""
    plan, source = plan_sql(text, CATALOG), Told(rows)
    with patch.object(history, "SLICE_ROWS", 500), patch.object(history, "SLICES_BACK", 1):
        found = shown(history.replay(plan, source))
    assert found == whole_of(plan, source)
    # Slices were begun, and then all of it was read in one go.
    assert source.read.count(ALL_TIME) > 0
    assert len(source.read) > source.read.count(ALL_TIME)
