"""Sorted values in blocks, against a list; blocks are so short that they are split and joined."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.kernels.aggregates.sorted_blocks import make_room, put_in, take_out, word_at
from eventide.kernels.compiled import Int64s
from eventide.kernels.groups.sliding import SORTED
from eventide.kernels.slabs import (
    BASE,
    BLOCK,
    CLASSES,
    LENGTH,
    ROOM,
    SHORTEST,
    USED,
    Slabs,
    empty_slabs,
    with_room,
)
from eventide.operators.standing.groups.slabs import (
    blocks_of,
    compact_slabs,
    needed_words,
    sorted_words,
)
from tests.naive.ordered_values import OrderedValues

OWNERS = 3
KINDS = np.full(OWNERS, SORTED)


def few_slabs(block: int = 16) -> Slabs:
    """A pool that has to grow, with short blocks."""
    notes = np.zeros((OWNERS, 4), np.int64)
    return empty_slabs(block)._replace(words=np.zeros(64, np.int64), notes=notes)


@dataclass
class Driven:
    """Owners whose values come and go, and lists of the same."""

    slabs: Slabs = field(default_factory=few_slabs)
    known: list[OrderedValues] = field(
        default_factory=lambda: [OrderedValues() for _ in range(OWNERS)]
    )

    def put(self, owner: int, value: int) -> None:
        self.known[owner].put(value)
        slabs, block = self.slabs, int(self.slabs.facts[BLOCK])
        while not put_in(slabs.words, slabs.notes, owner, block, value):
            while not make_room(slabs, owner, value):
                slabs = with_room(slabs)
        self.slabs = slabs

    def take(self, owner: int, value: int) -> None:
        self.known[owner].take(value)
        words, notes, free, facts = self.slabs
        take_out(words, notes, free, owner, int(facts[BLOCK]), value)

    def check(self) -> None:
        words, notes, _, facts = self.slabs
        for owner, known in enumerate(self.known):
            count = len(known.values)
            assert (notes[owner, LENGTH], notes[owner, BASE]) == (count, known.distinct)
            block = int(facts[BLOCK])
            found = [word_at(words, notes, owner, block, rank) for rank in range(count)]
            assert found == known.values
        assert held_words(self.slabs) == facts[USED]


def held_words(slabs: Slabs) -> int:
    """Return how many words are somebody's or wait to be: none gets lost."""
    blocks = blocks_of(slabs, slabs.notes, KINDS)
    held = int(slabs.notes[:, ROOM].sum()) + len(blocks.starts) * int(slabs.facts[BLOCK])
    for size_class in range(CLASSES):
        place = slabs.free[size_class]
        while place >= 0:
            held += SHORTEST << size_class
            place = slabs.words[place]
    return held


PHASES = st.lists(
    st.tuples(st.sampled_from([0.0, 0.3, 0.7, 1.0]), st.integers(1, 150), st.sampled_from([2, 60])),
    max_size=5,
)


@settings(max_examples=30, deadline=None)
@given(phases=PHASES, seed=st.integers(0, 99))
def test_blocks_are_a_list_in_order(phases: list[tuple[float, int, int]], seed: int) -> None:
    rng, driven = np.random.default_rng(seed), Driven()
    for growing, steps, spread in phases:
        for _ in range(steps):
            owner = int(rng.integers(0, OWNERS) ** 2 % OWNERS)
            values = driven.known[owner].values
            if rng.random() < growing:
                driven.put(owner, int(rng.integers(-spread, spread)) << 40)
            elif values:
                driven.take(owner, values[int(rng.integers(0, len(values)))])
        driven.check()
        needed = needed_words(driven.slabs, driven.slabs.notes, KINDS)
        driven.slabs = compact_slabs(driven.slabs, driven.slabs.notes, KINDS)
        assert len(driven.slabs.words) == needed
        driven.check()


def filled(values: Int64s) -> Driven:
    driven = Driven()
    for value in values.tolist():
        driven.put(1, value)
    return driven


def test_blocks_are_given_back_in_any_order() -> None:
    rng = np.random.default_rng(4)
    orders = [np.arange(700), -np.arange(700), rng.permutation(700), np.zeros(700, np.int64)]
    for order in orders:
        driven = filled(order)
        driven.check()
        assert len(blocks_of(driven.slabs, driven.slabs.notes, KINDS).starts) > 700 // 16
        assert sorted(sorted_words(driven.slabs, np.array([1, 0])).tolist()) == sorted(order)
        for value in rng.permutation(order)[:-1].tolist():
            driven.take(1, value)
        driven.check()
        assert driven.slabs.notes[1, ROOM] == 16
        assert needed_words(driven.slabs, driven.slabs.notes, KINDS) == SHORTEST


def test_blocks_stay_filled_where_values_go_at_random() -> None:
    rng = np.random.default_rng(5)
    driven = filled(rng.permutation(2000))
    for value in rng.permutation(2000)[:1500].tolist():
        driven.take(1, value)
    driven.check()
    assert len(blocks_of(driven.slabs, driven.slabs.notes, KINDS).starts) < 500 / 4


def test_the_smallest_and_the_largest_words_are_values_as_others() -> None:
    extremes = [-(2**63), 2**63 - 1]
    driven = filled(np.array(extremes * 40))
    driven.check()
    for value in extremes * 39:
        driven.take(1, value)
    driven.check()
