"""The twin of plans: what a FOLD becomes is what it means, and passes keep what plans give."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.plan.algebra.conditions import parts_of
from eventide.plan.algebra.nodes import Carried, Follows, Iterate
from eventide.plan.expressions import ALWAYS, Column, Expression, Named
from eventide.plan.nodes import Project, Scan
from eventide.plan.passes import optimise
from eventide.plan.passes.bound_lengths import bound_lengths
from eventide.plan.passes.divide_conditions import divide_conditions
from eventide.plan.tree import Plan
from eventide.schema import START_TS, TS
from tests.naive.algebra.events import Bag, bag, introduce, mu, rename, select
from tests.naive.algebra.plans import CASES, Case, Columns, call, condition, streams, typed
from tests.naive.algebra.trees import answer, events, value

S = typed(Scan("s"))
FIELDS = ("k", "n", "v")


def own(**meaning: str) -> dict[str, Expression]:
    return {name: Column(column) for name, column in meaning.items()}


def named(source: Plan, **meaning: str) -> Plan:
    """A source with its times, and other columns under these names."""
    meaning = {TS: TS, START_TS: START_TS, **meaning}
    return Project(source, tuple(Named(name, Column(each)) for name, each in meaning.items()))


def row_of(kind: str) -> Columns:
    return {name + kind: S.row[name] for name in FIELDS}


IN_FOLD = {**row_of(""), **row_of(".last"), **row_of(".first"), TS: S.row[TS]}


@settings(deadline=None)
@given(st.integers(0, 2**32))
def test_a_fold_as_it_is_written_and_as_it_is_planned(seed: int) -> None:
    """Names stand for the newest event, the one before and the first; `n_sum` is carried."""
    choose = random.Random(seed)
    given_, asked = streams(choose, 8), condition(choose, IN_FOLD)
    proceed: Expression = condition(choose, IN_FOLD) if choose.random() < 0.5 else ALWAYS
    more: Expression = call("+", Column("n_sum"), Column("n"))
    source: Bag = events([{TS: r[TS], START_TS: r[START_TS]} | {n: r[n] for n in FIELDS}
                          for r in given_["s"]])  # fmt: skip
    begun = introduce({"n_sum": lambda row: row["n"]}, source)

    def chain(found: Bag) -> Bag:
        return introduce({"n_sum": value(more)}, select(value(proceed), found))

    written = mu(begun, source, value(asked), chain)

    firsts = {f"{name}.first": name for name in FIELDS}
    left, right = named(S, **firsts), named(S, **{name: name for name in FIELDS})
    carried = [Carried(f"{name}.last", f"{name}.first", Column(name)) for name in FIELDS]
    total = Carried("n_sum", "n.first", more)
    fold = Iterate(left, right, asked, proceed, (*carried, total))
    kept = {name: name for name in (*FIELDS, *firsts, "n_sum")}
    assert bag(events(answer(typed(named(fold, **kept)), given_))) == bag(written)


@settings(deadline=None)
@given(CASES)
def test_passes_keep_what_a_plan_gives(case: Case) -> None:
    for change in (divide_conditions, bound_lengths, divided_and_bounded, optimise):
        found = answer(optimise(change(case.plan)), case.streams)
        assert Counter(map(str, found)) == Counter(map(str, case.rows)), change


def divided_and_bounded(plan: Plan) -> Plan:
    return bound_lengths(divide_conditions(plan))


@settings(deadline=None)
@given(CASES)
def test_a_divided_condition_has_no_parts_to_divide(case: Case) -> None:
    def check(node: Plan) -> None:
        if isinstance(node, Follows):
            parts = parts_of(node)
            assert not [*parts.left, *parts.right, *parts.keys]
        for each in node.children:
            check(each)

    check(divide_conditions(case.plan))


def test_renaming_is_one_to_one() -> None:
    with pytest.raises(AssertionError, match="one to one"):
        rename({"a": "c", "b": "c"}, [])
