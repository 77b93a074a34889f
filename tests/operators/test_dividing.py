"""States divided by query and united: the rows are those of the undivided run, for any cuts."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterable
from functools import cache
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.engines.build import build_live_tree
from eventide.errors import UnsupportedError
from eventide.instants import END_OF_TIME_US
from eventide.lang.sql import plan_sql
from eventide.operators import key_layers
from eventide.operators.align_rows import AlignRows
from eventide.operators.dividing import Wanted
from eventide.operators.order_events import OrderEvents
from eventide.operators.tree import OperatorTree, States
from eventide.operators.windows.window_state import WindowState
from eventide.schema import QUERY_NUMBER
from tests.naive.windows import Event
from tests.operators.algebra.drive import bag, plain
from tests.operators.dividing import (
    CATALOG,
    EVERYBODY,
    NOBODY,
    QUERIES,
    SCHEMA,
    TEXTS,
    among,
    drawn,
    rows_for,
)

Step = tuple[tuple[pa.RecordBatch, ...], int]


@cache
def tree_of(name: str) -> OperatorTree:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return build_live_tree(plan_sql(TEXTS[name], CATALOG))


def steps_of(tree: OperatorTree, seed: int, count: int = 60) -> list[Step]:
    """Random events, cut at random instants."""
    choose = random.Random(seed)
    streams = drawn(choose, count)
    last = max(event["ts"] for events in streams.values() for event in events)
    borders = sorted(choose.randrange(last + 2) for _ in range(choose.randrange(4, 12)))
    found, begin = list[Step](), 0
    for until in [*borders, END_OF_TIME_US]:
        given = {
            name: [event for event in events if begin <= event["ts"] < until]
            for name, events in streams.items()
        }
        leaves = tuple(
            pa.RecordBatch.from_pylist(given[leaf.scan.stream], schema=SCHEMA.arrow).select(
                leaf.schema.names
            )
            for leaf in tree.leaves
        )
        found.append((leaves, until))
        begin = until
    return found


def only_for(rows: pa.RecordBatch, wanted: Wanted) -> pa.RecordBatch:
    return rows.filter(pa.array(wanted(rows.column(QUERY_NUMBER))))


def run(
    tree: OperatorTree, states: States, steps: Iterable[Step], wanted: Wanted | None = None
) -> tuple[States, list[Event]]:
    """Take steps, only events of some queries if these are given; return the state and all rows."""
    found: list[Event] = []
    for leaves, until in steps:
        given = leaves if wanted is None else tuple(only_for(rows, wanted) for rows in leaves)
        states, rows = tree.step(states, given, until)
        found += plain(rows)
    return states, found


LAYERS = [{"FEW": 0, "FOR_EACH_EVENT": 0, "MOST_WAITING": 2}, {"FEW": 1000}]


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from(LAYERS), st.data())
@pytest.mark.parametrize("name", TEXTS)
def test_halves_give_the_rows_of_the_whole(
    name: str, seed: int, limits: dict[str, Any], data: st.DataObject
) -> None:
    tree = tree_of(name)
    steps = steps_of(tree, seed)
    divided = data.draw(st.integers(0, len(steps)), "divided after so many steps")
    united = data.draw(st.integers(divided, len(steps)), "united after so many steps")
    sees_all, dumps = data.draw(st.booleans(), "all events"), data.draw(st.booleans(), "dumps")
    queries = frozenset(data.draw(st.sets(st.integers(0, QUERIES - 1)), "queries of a half"))

    def kept(states: States) -> States:
        return tree.load(tree.dump(states)) if dumps else states

    with patch.multiple(key_layers, **limits):
        _, expected = run(tree, tree.initial_state(), steps)
        whole, rows = run(tree, tree.initial_state(), steps[:divided])
        halves = [
            (each, tree.of_keys(whole, among(each))) for each in (queries, EVERYBODY - queries)
        ]
        # The whole goes on as if nobody had divided it.
        _, rest = run(tree, kept(whole), steps[divided:])
        assert bag(rows + rest) == bag(expected)
        after = []
        for own, half in halves:
            seen = None if sees_all else among(own)
            states, found = run(tree, kept(half), steps[divided:united], seen)
            rows += rows_for(found, own)
            after.append(kept(tree.of_keys(states, among(own)) if sees_all else states))
        _, last = run(tree, kept(tree.united(*after)), steps[united:])
    assert bag(rows + last) == bag(expected)


@pytest.mark.parametrize("name", ["tumbling over pattern", "hopping over pattern"])
def test_windows_that_are_not_equally_far_are_united(name: str) -> None:
    tree, ahead = tree_of(name), 0
    for seed in range(12):
        steps = steps_of(tree, seed, 40)
        _, expected = run(tree, tree.initial_state(), steps)
        middle, rows, parts = len(steps) // 2, list[Event](), list[States]()
        for query in EVERYBODY:
            only = among([query])
            states, found = run(tree, tree.initial_state(), steps[:middle], only)
            rows, parts = rows + found, [*parts, states]
        first, *others = parts
        for other in others:
            first = tree.united(first, other)
        ahead += sum(len(each.ahead) for each in first if isinstance(each, WindowState))
        # They can be divided and written as they are.
        parts = [tree.of_keys(first, among(each)) for each in ({0, 4}, {1, 2, 3, 5})]
        first = tree.load(tree.dump(tree.united(*parts)))
        _, last = run(tree, first, steps[middle:])
        assert bag(rows + last) == bag(expected)
    assert ahead


@pytest.mark.parametrize("name", TEXTS)
def test_nothing_remains_of_queries_that_have_gone(name: str) -> None:
    tree = tree_of(name)
    steps = steps_of(tree, 7)
    states, _ = run(tree, tree.initial_state(), steps[: len(steps) // 2])
    nothing = tree.of_keys(states, among(NOBODY))
    assert tree.sizes(nothing) == tree.sizes(tree.initial_state())
    again = tree.united(nothing, states)
    assert [size.tuples for _, size in tree.sizes(again)] == [
        size.tuples for _, size in tree.sizes(tree.of_keys(states, among(EVERYBODY)))
    ]


ROWS = pa.schema([("ts", pa.timestamp("us")), ("$query'", pa.int64())])


def rows_at(*rows: tuple[int, int]) -> pa.RecordBatch:
    """Rows by time and number of their query."""
    return pa.RecordBatch.from_pylist([{"ts": ts, "$query'": query} for ts, query in rows], ROWS)


def test_rows_that_wait_for_other_edges_stay_in_order_of_time() -> None:
    operator = AlignRows(ROWS)
    state, _ = operator.step(operator.initial_state(), (rows_at((5, 1), (6, 2), (8, 1)),), 5)
    one, two = (operator.of_keys(state, among([query])) for query in (1, 2))
    assert (plain(one.waiting), plain(two.waiting)) == (
        plain(rows_at((5, 1), (8, 1))),
        plain(rows_at((6, 2))),
    )
    assert operator.united(two, one) == state


def test_what_is_not_by_query_is_not_divided() -> None:
    numbered = OrderEvents((), ROWS, numbered=True)
    with pytest.raises(UnsupportedError, match="rows are numbered among those of all keys"):
        numbered.of_keys(numbered.initial_state(), among(NOBODY))
    with pytest.raises(UnsupportedError, match="rows are numbered among those of all keys"):
        numbered.united(numbered.initial_state(), numbered.initial_state())
    texts = {
        "SELECT car, COUNT(*) AS n FROM cars GROUP BY car, TUMBLE(ts, INTERVAL '1' SECOND)": (
            r"the state of WindowAggregate cannot be divided by query: its keys have no \$query"
        ),
        'SELECT "$query", COUNT(*) AS n FROM cars [RANGE 9 SECONDS] GROUP BY "$query"': (
            "cannot be divided by query: it is not by key"
        ),
    }
    for text, message in texts.items():
        tree = build_live_tree(plan_sql(text, CATALOG))
        with pytest.raises(UnsupportedError, match=message):
            tree.of_keys(tree.initial_state(), among(NOBODY))
