"""Allen's relations: named, inverted, composed, and checked through third periods."""

from __future__ import annotations

from itertools import combinations, permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.plan.situations.allen import (
    AFTER,
    ANY,
    BEFORE,
    CONTAINS,
    DURING,
    EQUALS,
    FINISHED_BY,
    FINISHES,
    GROUPS,
    MEETS,
    MET_BY,
    NAMES,
    OVERLAPS,
    SHORTHANDS,
    STARTS,
    ContradictionError,
    compose,
    compositions,
    inverse,
    mask_named,
    names_of,
    path_consistent,
    possible_relations,
    relation_between,
    relations_of,
    words_of,
)

PERIODS = list(combinations(range(6), 2))
"""Every way in which the ends of three periods can lie shows among six places."""
RELATIONS = [1 << bit for bit in range(13)]
MASKS = st.integers(1, ANY)


def brute_force(first: int, second: int) -> int:
    found = 0
    for a, b, c in product(PERIODS, repeat=3):
        if relation_between(a, b) & first and relation_between(b, c) & second:
            found |= relation_between(a, c)
    return found


def matrix(count: int, asked: dict[tuple[int, int], int]) -> list[list[int]]:
    masks = [[ANY] * count for _ in range(count)]
    for (i, j), mask in asked.items():
        masks[i][j], masks[j][i] = mask, inverse(mask)
    return masks


def test_every_pair_of_periods_has_one_relation() -> None:
    found = [relation_between(a, b) for a, b in product(PERIODS, repeat=2)]
    assert set(found) == set(RELATIONS)


def test_what_goes_on_may_become_what_its_later_ends_make_of_it() -> None:
    now = max(end for _, end in PERIODS)
    later = range(now + 1, now + 3)
    for a, b in product(PERIODS, repeat=2):
        for open_a, open_b in product((False, True), repeat=2):
            ends_a, ends_b = (later if open_a else a[1:]), (later if open_b else b[1:])
            found = 0
            for end_a, end_b in product(ends_a, ends_b):
                found |= relation_between((a[0], end_a), (b[0], end_b))
            known = (a[0], None if open_a else a[1]), (b[0], None if open_b else b[1])
            assert possible_relations(*known) == found


@pytest.mark.parametrize("name", NAMES)
def test_a_relation_has_one_name(name: str) -> None:
    relation = mask_named(name)
    assert relation is not None
    assert names_of(relation) == (name,)


def test_what_is_no_relation_has_no_mask() -> None:
    assert mask_named("beside") is None


def test_the_paper_calls_two_relations_differently() -> None:
    assert mask_named("finishes", "paper") == FINISHED_BY
    assert mask_named("finished by", "paper") == FINISHES
    others = [name for name in NAMES if not name.startswith("finish")]
    assert all(mask_named(name, "paper") == mask_named(name) for name in others)


def test_the_inverse_is_the_relation_from_the_other_side() -> None:
    for a, b in product(PERIODS, repeat=2):
        assert inverse(relation_between(a, b)) == relation_between(b, a)


@given(MASKS)
def test_an_inverse_of_an_inverse_is_the_mask(mask: int) -> None:
    assert inverse(inverse(mask)) == mask


def test_the_inverse_of_a_group_is_a_group() -> None:
    assert {inverse(group) for group in GROUPS} == set(GROUPS)
    before_or_met = BEFORE | AFTER | MEETS | MET_BY
    assert sum(GROUPS) | before_or_met == ANY


@pytest.mark.parametrize("first", RELATIONS, ids=[*NAMES])
def test_a_composition_is_what_all_periods_show(first: int) -> None:
    for second in RELATIONS:
        assert compose(first, second) == brute_force(first, second)


@given(MASKS, MASKS)
def test_a_composition_of_masks_is_that_of_their_relations(first: int, second: int) -> None:
    table = compositions()
    single = [table[pair] for pair in product(relations_of(first), relations_of(second))]
    union = 0
    for mask in single:
        union |= mask
    assert compose(first, second) == union


@given(MASKS, MASKS)
def test_a_composition_can_be_seen_from_the_other_side(first: int, second: int) -> None:
    assert inverse(compose(first, second)) == compose(inverse(second), inverse(first))


def test_equals_composes_to_the_other() -> None:
    assert all(compose(EQUALS, each) == compose(each, EQUALS) == each for each in RELATIONS)


def test_what_a_third_period_leaves_is_tightened() -> None:
    left = path_consistent(matrix(3, {(0, 1): BEFORE, (1, 2): MEETS | CONTAINS}))
    assert left[0][2] == BEFORE
    assert left[2][0] == AFTER


def test_a_contradiction_names_its_path() -> None:
    masks = matrix(3, {(0, 1): BEFORE, (1, 2): BEFORE, (0, 2): AFTER})
    with pytest.raises(ContradictionError) as caught:
        path_consistent(masks)
    assert sorted(caught.value.path) == [0, 1, 2]


def test_a_contradiction_is_found_around_a_ring() -> None:
    ring = {(0, 1): DURING, (1, 2): STARTS, (2, 3): OVERLAPS | MEETS, (0, 3): AFTER}
    with pytest.raises(ContradictionError):
        path_consistent(matrix(4, ring))


@given(st.lists(st.sampled_from(PERIODS), min_size=3, max_size=5), st.data())
def test_no_relation_of_real_periods_is_lost(
    periods: list[tuple[int, int]], data: st.DataObject
) -> None:
    pairs = list(permutations(range(len(periods)), 2))
    asked = {
        (i, j): relation_between(periods[i], periods[j]) | data.draw(MASKS)
        for i, j in pairs
        if i < j
    }
    left = path_consistent(matrix(len(periods), asked))
    for i, j in pairs:
        assert left[i][j] & relation_between(periods[i], periods[j])
        if i < j:
            assert left[i][j] & ~asked[i, j] == 0


def test_shorthands_say_what_their_words_do() -> None:
    periods = [(start, end) for start in range(5) for end in range(start + 1, 6)]
    for a, b in product(periods, repeat=2):
        relation = relation_between(a, b)
        shared = set(range(*a)) & set(range(*b))
        assert bool(relation & SHORTHANDS["intersects"]) == bool(shared)
        assert bool(relation & SHORTHANDS["precedes"]) == (a[1] <= b[0])
        assert bool(relation & SHORTHANDS["follows"]) == (b[1] <= a[0])


@given(st.integers(1, ANY))
def test_words_of_a_mask_mean_it(mask: int) -> None:
    masks = [mask_named(word) or 0 for word in words_of(mask)]
    assert sum(masks) == mask
    assert len(masks) <= len(names_of(mask))
