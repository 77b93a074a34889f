"""Which template a query is of, by its number."""

from __future__ import annotations

from random import Random

import numpy as np

from eventide.engines.live.sharing.numbers import AllNumbers
from eventide.plan.sharing.part_rows import PARTS_FROM


def test_the_count_is_that_of_all_that_are_here() -> None:
    random, numbers, here = Random(1), AllNumbers(), set[int]()
    for step in range(60):
        first = random.choice([0, 5, 40, 200]) + step
        new = [each for each in range(first, first + random.randrange(9)) if each not in here]
        numbers.add(np.array(new, np.int64), 0, 0)
        here.update(new)
        gone = random.sample(sorted(here), min(len(here), random.randrange(8)))
        numbers.drop(np.array([*gone, *gone[:1]], np.int64))
        here.difference_update(gone)
        assert numbers.count == len(numbers.all) == len(here)
    numbers.add(np.array([PARTS_FROM]), 0, 0)
    assert numbers.count == len(here)
