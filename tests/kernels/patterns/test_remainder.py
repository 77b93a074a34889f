"""What remains of the rows of keys after a step, against the slow twin."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.kernels.compiled import frozen
from eventide.kernels.patterns.remainder import (
    BEGIN,
    DUE,
    FACTS,
    KEPT,
    NEVER,
    NUMBER,
    SEEN,
    WHOLE,
    RestRules,
    keep_rest,
)
from eventide.kernels.patterns.tables import Partitions
from tests.naive.patterns.remainder import Rest, Standing, naive_rest


@st.composite
def standings(draw: st.DrawFn) -> Standing:
    """Draw the rows of a key; start rows behind its last one stand for none."""
    ts = sorted(draw(st.lists(st.integers(0, 9), max_size=6)))
    begin, known = draw(st.integers(0, len(ts) + 1)), draw(st.integers(0, len(ts)))
    return Standing(ts, begin, known, draw(st.booleans()), draw(st.integers(0, 5)))


@settings(deadline=None)
@given(
    keys=st.lists(standings(), max_size=5),
    back=st.integers(0, 2),
    stay=st.tuples(st.booleans(), st.booleans()),
    within=st.none() | st.integers(0, 5),
    watermark=st.integers(0, 12),
    seed=st.integers(0, 99),
)
def test_the_rest_is_that_of_the_slow_twin(
    keys: list[Standing],
    back: int,
    stay: tuple[bool, bool],
    within: int | None,
    watermark: int,
    seed: int,
) -> None:
    offsets = np.cumsum([0, *(len(key.ts) for key in keys)])
    order = np.random.default_rng(seed).permutation(offsets[-1])
    low = offsets[:-1]
    parts = Partitions(
        frozen(offsets),
        frozen(low + np.array([key.begin for key in keys], np.int64)),
        frozen(low + np.array([key.known for key in keys], np.int64)),
        frozen(np.array([key.whole for key in keys], np.bool_)),
        frozen(low),
        frozen(np.array([key.number for key in keys], np.int64)),
    )
    ts = frozen(np.array([ts for key in keys for ts in key.ts], np.int64))
    facts, stayed = np.empty((FACTS, len(keys)), np.int64), np.empty(len(keys), np.int64)
    rows = np.empty(len(ts), np.int64)
    keeps_keys, idle = stay
    keeping = RestRules(back, keeps_keys, -1 if within is None else within, watermark, idle)
    count, kept = keep_rest(ts, frozen(order), parts, keeping, stayed, facts, rows)
    found, start = [], 0
    for place in range(count):
        key = int(stayed[place])
        length, begin, seen, number, whole, due = (
            int(facts[each, place]) for each in (KEPT, BEGIN, SEEN, NUMBER, WHOLE, DUE)
        )
        places = {int(row): i for i, row in enumerate(order)}
        own = [places[int(row)] - int(low[key]) for row in rows[start : start + length]]
        when = None if due == NEVER else due
        found.append(Rest(key, own, begin, seen, number, bool(whole), when))
        start += length
    assert start == kept
    assert found == list(naive_rest(keys, back, keeps_keys, idle, within, watermark))
