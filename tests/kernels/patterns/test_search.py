"""The match search: against a plain depth-first twin, and where it could go wrong."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventide.kernels.compiled import frozen
from eventide.kernels.patterns import search as match_search
from eventide.kernels.patterns.code import Code, Tables
from eventide.kernels.patterns.search import Found, search, searchable
from eventide.kernels.patterns.tables import PAUSED, TOO_MANY_MATCHES, Partitions, Rows, Rules
from eventide.lang.sql import plan_sql
from eventide.operators.patterns.conditions import compile_conditions, steps_of
from eventide.plan.patterns.automaton import PatternAutomaton, automaton_of
from eventide.plan.patterns.tree import (
    Alternate,
    Concat,
    PartitionEnd,
    PartitionStart,
    Pattern,
    Repeat,
    Variable,
    render_pattern,
)
from tests.naive.patterns.rows import match_node
from tests.naive.patterns.texts import CATALOG
from tests.operators.patterns.drive import in_pieces, listed, look

PLAIN = Rules()
A, B, C = Variable("A"), Variable("B"), Variable("C")


def no_code(automaton: PatternAutomaton) -> Code:
    empty = frozen(np.empty((0, 5), np.int64))
    return Code(
        instructions=empty,
        updates=frozen(np.empty((0, 10), np.int64)),
        keys=empty,
        by_variable=frozen(np.zeros((len(automaton.variables) + 1, 2), np.int64)),
        by_node=frozen(np.tile(np.array([0, 1]), (len(automaton.nodes) + 1, 1))),
        registers=frozen(np.empty(0, np.int64)),
        of_registers=frozen(np.empty(0, np.int64)),
        of_floats=frozen(np.empty(0, np.int64)),
        thresholds=frozen(np.empty(0, np.int64)),
        float_registers=0,
        keeps_counts=False,
    )


def no_tables(rows: int) -> Tables:
    return Tables(
        frozen(np.empty((0, rows + 1))),
        frozen(np.empty((0, rows + 1), np.int64)),
        frozen(np.empty((0, rows + 1), np.bool_)),
        frozen(np.empty((0, rows), np.int64)),
        frozen(np.zeros(1, np.int64)),
        frozen(np.empty(0, np.int64)),
        frozen(np.empty((0, 2), np.int64)),
        frozen(np.empty(0)),
    )


def found_in(
    automaton: PatternAutomaton,
    masks: Sequence[Sequence[int]],
    rules: Rules = PLAIN,
    after: Found | None = None,
) -> Found:
    """Search partitions of rows of which only the masks matter, going on after a paused search."""
    offsets = np.cumsum([0, *map(len, masks)], dtype=np.int64)
    flat = np.array([mask for each in masks for mask in each], np.uint64)
    zeros = np.zeros(len(masks), np.int64)
    parts = Partitions(
        frozen(offsets),
        frozen(offsets[:-1] if after is None else after.next),
        frozen(offsets[1:]),
        frozen(np.ones(len(masks), np.bool_)),
        frozen(offsets[:-1]),
        frozen(zeros if after is None else after.numbers),
    )
    ts = frozen(np.arange(len(flat), dtype=np.int64))
    rows = Rows(ts, frozen(flat))
    return search(
        searchable(steps_of(automaton)),
        no_code(automaton),
        no_tables(len(flat)),
        rows,
        parts,
        rules,
    )


def twin(automaton: PatternAutomaton, masks: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """Yield (start, nodes) of the matches of a partition, past the last row each time."""

    def first(node: int, row: int, nodes: list[int]) -> list[int] | None:
        for step in automaton.nodes[node].steps:
            if (step.at_start and row > 0) or (step.at_end and row < len(masks)):
                continue
            if step.variable < 0:
                return nodes
            if row < len(masks) and masks[row] >> step.variable & 1:
                found = first(step.target, row + 1, [*nodes, step.target])
                if found is not None:
                    return found
        return None

    start = 0
    while start < len(masks):
        nodes = first(0, start, [])
        if nodes is not None:
            yield start, nodes
        start += max(1, len(nodes or []))


PATTERNS: st.SearchStrategy[Pattern] = st.recursive(
    st.sampled_from([A, B, C]),
    lambda part: (
        st.lists(part, min_size=1, max_size=3).map(lambda parts: Concat(tuple(parts)))
        | st.lists(part, min_size=2, max_size=3).map(lambda parts: Alternate(tuple(parts)))
        | st.builds(
            Repeat,
            part,
            st.integers(0, 2),
            st.sampled_from([None, 2, 3]),
            st.booleans(),
        )
        | part.map(lambda each: Concat((PartitionStart(), each)))
        | part.map(lambda each: Concat((each, PartitionEnd())))
    ),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(PATTERNS, st.lists(st.lists(st.integers(0, 7), max_size=9), max_size=3))
def test_matches_are_those_of_the_twin(pattern: Pattern, masks: list[list[int]]) -> None:
    automaton = automaton_of(pattern)
    found = found_in(automaton, masks)
    wanted, offset = [], 0
    for key, each in enumerate(masks):
        for number, (start, nodes) in enumerate(twin(automaton, each), 1):
            wanted.append((key, number, start + offset, nodes))
        offset += len(each)
    got = [
        (int(key), int(number), int(start), found.node[low:high].tolist())
        for key, number, start, low, high in zip(
            found.key, found.number, found.start, found.first[:-1], found.first[1:], strict=True
        )
    ]
    assert got == wanted
    assert found.next.tolist() == np.cumsum([len(each) for each in masks]).tolist()


@pytest.mark.parametrize(
    "pattern",
    [
        Concat((Repeat(Repeat(A, 0, None), 0, None), B)),
        Concat((Repeat(Alternate((A, C)), 0, None), B)),
        Concat((Repeat(Repeat(A, 0, 1), 2, None), B)),
        Concat((Repeat(Concat((A, Repeat(A, 0, None))), 1, None), B)),
    ],
    ids=render_pattern,
)
def test_nested_repetitions_stay_polynomial(pattern: Pattern) -> None:
    automaton = automaton_of(pattern)
    all_but_b = 0b111 & ~(1 << automaton.variables.index("B"))
    # Were it exponential, this would not end.
    found = found_in(automaton, [[all_but_b] * 5_000])
    assert found.status == 0
    assert len(found.start) == 0


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each kernel was called: once for each piece of work."""
    counted: Counter[str] = Counter()
    for name in ("search_contiguous", "search_next", "search_any"):
        kernel = getattr(match_search, name)

        def spy(*arguments: object, name: str = name, kernel: Any = kernel) -> None:  # noqa: ANN401
            counted[name] += 1
            kernel(*arguments)

        monkeypatch.setattr(match_search, name, spy)
    return counted


PIECES = Rules(piece=10_000)


def test_failures_are_remembered_from_start_to_start(calls: Counter[str]) -> None:
    """Without memory, 20,000 starts would each walk to the end: 600 million steps."""
    found = found_in(automaton_of(Concat((Repeat(A, 0, None), B))), [[1] * 20_000], PIECES)
    assert len(found.start) == 0
    assert 2 < calls["search_contiguous"] < 100


@pytest.mark.parametrize(
    "condition",
    [
        "MATCH_NUMBER() < 0",
        "MATCH_NUMBER() IN (-1, 0.5)",
        "0 >= MATCH_NUMBER()",
        "x < -MATCH_NUMBER()",
        "COUNT(*) < 1",
        "COUNT(A.*) BETWEEN 2 AND 4 AND x < 0",
        "COUNT(*) > 2.5 AND MATCH_NUMBER() > 5",
        "PREV(CLASSIFIER()) = 'Z'",
        "PREV(CLASSIFIER(), 3) = 'Z' OR NEXT(CLASSIFIER()) = 'A'",
        "PREV(LAST(CLASSIFIER(A), 1), 2) = 'Z'",
        "NEXT(FIRST(CLASSIFIER()), 2) = 'Z'",
        "A.x < 0",
        "FIRST(x) < 0",
        "LAST(x, 2) < 0",
    ],
)
@pytest.mark.parametrize("strategy", ["contiguous", "skip_till_next"])
def test_conditions_whose_work_grows_with_the_rows(
    condition: str, strategy: str, calls: Counter[str]
) -> None:
    """All rows differ, and no match is found: twice the rows are twice the work, not four times."""
    text = f"""SELECT * FROM s MATCH_RECOGNIZE (
        MEASURES COUNT(*) AS n STRATEGY {strategy} PATTERN (A A+ B) DEFINE B AS {condition})"""
    conditions = compile_conditions(match_node(plan_sql(text, CATALOG)))
    needed = []
    for count in (1_000, 2_000, 4_000):
        rows = [{**row, "x": place + 1} for place, row in enumerate(equal_rows(count))]
        calls.clear()
        found = look(conditions, rows, piece=10_000)
        assert found.status == 0
        assert len(found.start) == 0
        needed.append(calls.total())
    assert needed[2] - needed[1] <= 2.5 * max(4, needed[1] - needed[0])


def test_a_number_that_changes_is_told_apart() -> None:
    """What failed for one number of a match is tried again for others that differ."""
    text = """SELECT * FROM s MATCH_RECOGNIZE (
        MEASURES COUNT(*) AS n PATTERN (A (X{70,} B | C)) DEFINE B AS MATCH_NUMBER() > 2)"""
    conditions = compile_conditions(match_node(plan_sql(text, CATALOG)))
    found = look(conditions, equal_rows(200))
    assert np.diff(found.first).tolist() == [2, 2, 196]


def test_output_grows() -> None:
    automaton = automaton_of(Repeat(A, 1, None))
    found = found_in(automaton, [[1] * 300], Rules(skip_to=1))
    assert len(found.start) == 300
    assert len(found.row) == 300 * 301 // 2
    assert found.row[:300].tolist() == list(range(300))
    all_matches = automaton_of(Repeat(A, 1, None), all_matches=True)
    found = found_in(all_matches, [[1] * 13], Rules(strategy=2))
    assert len(found.start) == 2**13 - 1
    assert found.number.tolist() == list(range(1, 2**13))


def test_output_grows_by_matches_that_take_no_rows() -> None:
    found = found_in(automaton_of(Repeat(A, 0, None)), [[0] * 20_000])
    assert found.status == 0
    assert found.start.tolist() == list(range(20_000))
    assert found.number.tolist() == list(range(1, 20_001))
    assert len(found.row) == 0


@pytest.mark.parametrize("strategy", [0, 1])
def test_a_search_with_enough_matches_pauses(
    strategy: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(match_search, "MOST_TAKEN", 100)
    automaton, rules = automaton_of(Repeat(A, 1, None)), Rules(strategy=strategy)
    masks = [[1] * 900, [1] * 5_000, [1] * 900, [0]]
    found = found_in(automaton, masks, rules)
    runs = [found]
    while found.status == PAUSED:
        assert len(found.start) > 0
        found = found_in(automaton, masks, rules, found)
        runs.append(found)
    assert found.status == 0
    # The second match has to wait, and gets room when it is the first: enough for the third too.
    assert [run.start.tolist() for run in runs] == [[0], [900, 5_900]]
    assert [run.number.tolist() for run in runs] == [[1], [1, 1]]
    assert np.concatenate([run.row for run in runs]).tolist() == list(range(6_800))


def test_a_match_longer_than_what_is_held_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match_search, "MOST_TAKEN", 100)
    found = found_in(automaton_of(Repeat(A, 1, None)), [[1] * 5_000])
    assert found.status == 0
    assert found.row.tolist() == list(range(5_000))


def test_too_many_of_all_matches_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match_search, "MOST_TAKEN", 100)
    automaton = automaton_of(Repeat(A, 1, None), all_matches=True)
    assert found_in(automaton, [[1] * 13], Rules(strategy=2)).status == TOO_MANY_MATCHES


def equal_rows(count: int, x: int = 1) -> list[dict[str, object]]:
    row = {"k": None, "x": x, "y": 0.5, "label": "a"}
    return [{"ts": place, "_seq": place, **row} for place in range(count)]


def test_equal_rows_are_one_state() -> None:
    text = "SELECT * FROM s MATCH_RECOGNIZE (PATTERN ((A | B)* C) DEFINE C AS C.x > A.x)"
    text = text.replace("PATTERN", "MEASURES COUNT(*) AS n PATTERN")
    conditions = compile_conditions(match_node(plan_sql(text, CATALOG)))
    look(conditions, equal_rows(3))
    began = time.process_time()
    found = look(conditions, equal_rows(5_000))
    assert found.status == 0
    assert len(found.start) == 0
    assert time.process_time() - began < 10


def test_a_search_that_explodes_is_given_up() -> None:
    """Which rows are A decides the sum: 2^n states that all differ."""
    text = """SELECT * FROM s MATCH_RECOGNIZE (
        MEASURES COUNT(*) AS n PATTERN ((A | B)* C) DEFINE C AS SUM(A.y) > 1e300)"""
    conditions = compile_conditions(match_node(plan_sql(text, CATALOG)))
    every = equal_rows(60)
    for place, row in enumerate(every):
        row["y"] = float(2**place)
    look(conditions, every[:3])
    began = time.process_time()
    found = look(conditions, every)
    assert found.status == 1
    assert found.where == 0
    assert time.process_time() - began < 30


def test_golden_strategies() -> None:
    letters = "abacbc"
    every = [{**row, "label": label} for row, label in zip(equal_rows(6), letters, strict=True)]
    wanted = {
        "contiguous": ["ac"],
        "skip_till_next": ["abc", "ac"],
        "skip_till_any": 9,
    }
    for strategy, expected in wanted.items():
        text = f"""SELECT * FROM s MATCH_RECOGNIZE (
            MEASURES COUNT(*) AS n AFTER MATCH SKIP TO NEXT ROW STRATEGY {strategy}
            PATTERN (A B* C) DEFINE A AS label = 'a', B AS label = 'b', C AS label = 'c')"""
        conditions = compile_conditions(match_node(plan_sql(text, CATALOG)))
        found = listed(look(conditions, every), conditions)
        if isinstance(expected, int):
            assert len(found) == expected
        else:
            assert ["".join(letters[row] for row, _ in path) for *_, path in found] == expected
        for cut in range(7):
            pieces = in_pieces(conditions, every, [cut])
            assert sorted(path for *_, path in pieces) == sorted(path for *_, path in found)
