"""Sequences that read the same events by the same key put them by key once, over history."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.engines.build import build_tree
from eventide.instants import END_OF_TIME_US
from eventide.lang.sql import plan_sql
from eventide.operators.algebra.keyed import KeyEvents
from eventide.operators.tree import OperatorTree
from eventide.plan.passes import optimise
from tests.naive.algebra.plans import CASES, CATALOG, Case, Row, Streams
from tests.operators.algebra.drive import bag, batches, divided, in_other_order, plain


def run(tree: OperatorTree, streams: Streams) -> list[Row]:
    _, found = tree.step(tree.initial_state(), batches(tree, streams), END_OF_TIME_US)
    return plain(found)


@settings(deadline=None)
@given(CASES, st.integers(0, 2**32))
def test_what_is_shared_changes_nothing(case: Case, seed: int) -> None:
    streams = in_other_order(random.Random(seed), case.streams)
    tree = build_tree(optimise(divided(case.plan)))
    shared = tree.shared()
    assert len(shared.placed) <= len(tree.placed)
    assert bag(run(shared, streams)) == bag(case.rows)


def keyed(text: str) -> tuple[int, int]:
    """How often events are put by key, if each does so for itself, and in the shared tree."""
    plan = plan_sql(f"SELECT * FROM CEL ({text})", CATALOG)
    trees = (build_tree(plan), build_tree(plan).shared())
    first, second = (sum(isinstance(each, KeyEvents) for each in tree.operators) for tree in trees)
    return first, second


def test_events_are_put_by_key_once_for_each_key() -> None:
    next_of_k = "NEXT{$1.k = $2.k} (SELECT k FROM s)"
    assert keyed(f"(SELECT k FROM s) {next_of_k} {next_of_k} {next_of_k}") == (3, 1)
    assert keyed(f"(SELECT k FROM s) {next_of_k} NEXT{{}} (SELECT k FROM s)") == (2, 2)
    assert keyed(f"(SELECT k FROM s) {next_of_k} NEXT{{$1.k = $2.k}} (SELECT k FROM t)") == (2, 2)
