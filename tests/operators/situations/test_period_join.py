"""The join of periods finds the same pairs as trying all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.operators.situations import period_join
from eventide.operators.situations.period_join import join_periods, ranges_of, searches_for
from eventide.plan.nodes import Scan
from eventide.plan.situations.allen import ANY, CONTAINS, GROUPS, NAMES, OVERLAPS, SHORTHANDS
from eventide.plan.situations.nodes import PairKind, PeriodJoin
from eventide.plan.situations.parts import RowPeriod
from eventide.schema import FLOAT64, INT64, STRING, TIMESTAMP
from tests.naive.situations.period_join import join_periods as join_by_trying

LEFT = {"a_car": STRING, "a_lane": FLOAT64, "a_n": INT64, "a_from": TIMESTAMP, "a_to": TIMESTAMP}
RIGHT = {"b_car": STRING, "b_lane": FLOAT64, "b_n": INT64, "b_from": TIMESTAMP, "b_to": TIMESTAMP}
NODE = PeriodJoin(
    Scan("a", tuple(LEFT.items())),
    Scan("b", tuple(RIGHT.items())),
    RowPeriod("a", "a_from", "a_to"),
    RowPeriod("b", "b_from", "b_to"),
    (("a_car", "b_car"),),
    ANY,
    ("a_n", "b_n", "b_car"),
)
BY_NOTHING = replace(NODE, keys=())
BY_BOTH = replace(NODE, keys=(("a_car", "b_car"), ("a_lane", "b_lane")))

KINDS: st.SearchStrategy[PairKind] = st.sampled_from(["inner", "left", "semi", "anti"])
WHOLE = (*GROUPS, GROUPS[0] | GROUPS[1], ANY & ~GROUPS[2], *SHORTHANDS.values())
"""Masks that two periods that go on may be certain to have."""

Rows = list[dict[str, Any]]


def rows_of(side: str) -> st.SearchStrategy[Rows]:
    times = st.one_of(st.integers(0, 9), st.none())
    row = st.tuples(
        st.sampled_from(["x", "y", None]), st.sampled_from([0.0, -0.0, 1.5, None]), times, times
    )
    return st.lists(row, max_size=25).map(
        lambda rows: [
            {
                f"{side}_car": car,
                f"{side}_lane": lane,
                f"{side}_n": number,
                f"{side}_from": start,
                f"{side}_to": end,
            }
            for number, (car, lane, start, end) in enumerate(rows)
        ]
    )


def table_of(rows: Rows, columns: Mapping[str, Any]) -> pa.Table:
    schema = pa.schema([(name, kind.arrow) for name, kind in columns.items()])
    # In two pieces: tables come as they were computed.
    half = len(rows) // 2
    return pa.concat_tables(
        [pa.Table.from_pylist(part, schema=schema) for part in (rows[:half], rows[half:])]
    )


def joined(node: PeriodJoin, left: Rows, right: Rows) -> Rows:
    schema = pa.schema([(name, kind.arrow) for name, kind in node.row.items()])
    found = join_periods(node, table_of(left, LEFT), table_of(right, RIGHT), schema)
    return [row for batch in found for row in batch.to_pylist()]


def bag(rows: Iterable[Mapping[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in rows)


@pytest.mark.parametrize("mask", [1 << bit for bit in range(13)], ids=NAMES)
@settings(deadline=None)  # the first example waits for the compiler
@given(left=rows_of("a"), right=rows_of("b"))
def test_each_relation(mask: int, left: Rows, right: Rows) -> None:
    node = replace(NODE, mask=mask)
    assert bag(joined(node, left, right)) == bag(join_by_trying(node, left, right))


@pytest.mark.parametrize("node", [NODE, BY_NOTHING, BY_BOTH], ids=["car", "nothing", "both"])
@settings(deadline=None)  # the first example waits for the compiler
@given(
    left=rows_of("a"),
    right=rows_of("b"),
    mask=st.one_of(st.integers(1, ANY), st.sampled_from(WHOLE)),
    kind=KINDS,
    open_ends=st.booleans(),
)
def test_several_relations(
    node: PeriodJoin, left: Rows, right: Rows, mask: int, kind: PairKind, open_ends: bool
) -> None:
    columns = node.columns[:1] if kind in ("semi", "anti") else node.columns
    node = replace(node, mask=mask, kind=kind, open_ends=open_ends, columns=columns)
    assert bag(joined(node, left, right)) == bag(join_by_trying(node, left, right))


@settings(deadline=None)  # the first example waits for the compiler
@given(left=rows_of("a"), right=rows_of("b"), most=st.integers(1, 9))
def test_pairs_come_some_at_a_time(left: Rows, right: Rows, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(period_join, "MOST_PAIRS", most)
        assert bag(joined(NODE, left, right)) == bag(join_by_trying(NODE, left, right))


@settings(deadline=None)  # the first example waits for the compiler
@given(left=rows_of("a"), right=rows_of("b"), most=st.integers(1, 9), kind=KINDS)
def test_long_texts_come_some_at_a_time(left: Rows, right: Rows, most: int, kind: PairKind) -> None:
    node = replace(BY_NOTHING, kind=kind, columns=("a_n", "a_car"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(period_join, "BLOCK_BYTES", most)
        patch.setattr(period_join, "MOST_TEXT", 0)
        schema = pa.schema([(name, kind.arrow) for name, kind in node.row.items()])
        found = list(join_periods(node, table_of(left, LEFT), table_of(right, RIGHT), schema))
    rows = [row for batch in found for row in batch.to_pylist()]
    assert bag(rows) == bag(join_by_trying(node, left, right))
    # A row takes one, and one more for its letter; a row that is longer comes alone.
    sizes = [
        batch.num_rows + len("".join(filter(None, batch["a_car"].to_pylist()))) for batch in found
    ]
    assert all(
        size <= most or batch.num_rows == 1 for size, batch in zip(sizes, found, strict=True)
    )


@pytest.mark.parametrize("kind", ["left", "inner"])
def test_short_texts_are_cut_as_well(kind: PairKind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(period_join, "BLOCK_BYTES", 2_000)
    monkeypatch.setattr(period_join, "MOST_PAIRS", 20)
    period = {"a_from": 0, "a_to": 9 if kind == "inner" else 0}
    left = [{"a_car": "x" * 99, "a_lane": 0.0, "a_n": n, **period} for n in range(500)]
    right = [{"b_car": "x", "b_lane": 0.0, "b_n": 0, "b_from": 0, "b_to": 9}]
    node = replace(BY_NOTHING, kind=kind, columns=("a_n", "a_car", "b_n"))
    schema = pa.schema([(name, kind.arrow) for name, kind in node.row.items()])
    found = list(join_periods(node, table_of(left, LEFT), table_of(right, RIGHT), schema))
    assert sum(batch.num_rows for batch in found) == 500
    assert max(batch.num_rows for batch in found) <= 20


@given(mask=st.integers(1, ANY))
def test_searches_find_every_relation_once(mask: int) -> None:
    found = [search.relations for search in searches_for(mask)]
    assert sum(found) == mask
    assert not any(one & other for place, one in enumerate(found) for other in found[:place])


@given(counts=st.lists(st.integers(0, 9), max_size=20), most=st.integers(1, 12))
def test_pieces_hold_every_pair_once(counts: list[int], most: int) -> None:
    held = [counts[first:last] for first, last in ranges_of(np.array(counts, np.int64), most)]
    assert sum(map(sum, held)) == sum(counts)
    assert all(len(part) == 1 or sum(part) <= most for part in held)


@pytest.mark.parametrize(("mask", "factor"), [(OVERLAPS, 0), (CONTAINS, 3)])
def test_periods_that_do_not_fit_cost_nothing(mask: int, factor: int) -> None:
    # Every long period shares time with every right one, but not in the relation asked for:
    # a test that tried all 2.5 billion pairs would not end.
    count = 50_000
    numbers = np.arange(count)
    left = periods("a", numbers, numbers + 3 * count)
    right = periods("b", numbers + count, numbers + count + factor * count + 1)
    node = replace(BY_NOTHING, mask=mask, columns=("a_n", "b_n"))
    schema = pa.schema([("a_n", pa.int64()), ("b_n", pa.int64())])
    assert not list(join_periods(node, left, right, schema))


def test_who_has_a_partner_costs_no_pairs() -> None:
    # Each of 50,000 left rows has 50,000 partners: making the pairs would not end.
    count = 50_000
    numbers = np.arange(count)
    left = periods("a", numbers, numbers + 3 * count)
    right = periods("b", numbers + count, numbers + 5 * count)
    schema = pa.schema([("a_n", pa.int64())])
    for mask in (OVERLAPS, GROUPS[0]):
        node = replace(BY_NOTHING, mask=mask, columns=("a_n",))
        every: dict[PairKind, int] = {"semi": count, "anti": 0}
        for kind, found in every.items():
            batches = join_periods(replace(node, kind=kind), left, right, schema)
            assert sum(batch.num_rows for batch in batches) == found


def periods(side: str, start: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> pa.Table:
    times = [pa.array(each).view(pa.timestamp("us")) for each in (start, end)]
    return pa.table(
        {f"{side}_n": np.arange(len(start)), f"{side}_from": times[0], f"{side}_to": times[1]}
    )
