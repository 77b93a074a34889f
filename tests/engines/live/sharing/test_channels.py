"""Sets of queries that take a row together: each query has its rows, and none more."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from eventide.engines.live.sharing.channels import CHANNELS_FROM, Channels
from eventide.engines.live.sharing.engine import shared_of
from eventide.plan.sharing.rules import RULES_OF_SETS
from tests.engines.live.sharing.test_many_queries import SEEDS, Compared, run
from tests.engines.live.sharing.texts import HYBRIDS, SEQUENCES, events

pytestmark = pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")
FASTER = "SELECT * FROM FILTER{{speed > {}}}(cars) NEXT{{$1.car = $2.car AND DUR <= 20s}}(photos)"


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rows have a channel however few queries take them."""
    monkeypatch.setattr("eventide.engines.live.sharing.tree.matching.FEWEST_PAIRS", 0)
    monkeypatch.setattr("eventide.engines.live.sharing.channels._MANY", 3)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("disorder", [0.0, 0.1])
@pytest.mark.parametrize("seed", SEEDS)
def test_each_query_has_its_rows(seed: int, disorder: float) -> None:
    run(Random(seed), (*SEQUENCES, *HYBRIDS[3:6]), disorder, RULES_OF_SETS).check()


@pytest.mark.usefixtures("always")
def test_a_hundred_queries_in_one_channel_that_come_and_go() -> None:
    random, compared, now_us, following = Random(3), Compared(0, RULES_OF_SETS), 0, 0
    for step in range(5):
        compared.add([FASTER.format(random.randrange(60)) for _ in range(100)])
        for stream in ("cars", "photos"):
            rows, now_us = events(random, stream, 12, now_us, following, 0)
            compared.take(stream, rows)
        following += 12
        for number in random.sample(list(compared.alone), 40):
            compared.drop(number)
        compared.dump_and_load()
        (shared,) = compared.many.shared
        if step == 3:
            shared.forget_gone()
    (state,) = shared.states
    kept = shared.engine.shared.channels.members
    assert max(map(len, kept.values())) > 64
    waiting = sum(size.tuples for _, size in shared_of(state).runs[0].sizes)
    assert 0 < waiting < 2 * following  # not one for each query
    compared.finish()
    compared.check()


def test_rows_with_the_same_members_have_one_channel() -> None:
    channels = Channels()
    events_of = np.array([0, 0, 3, 5, 5, 5, 6, 6], np.int64)
    numbers = np.array([1, 2, 7, 1, 2, 7, 1, 2], np.int64)
    starts, sets = channels.together(events_of, numbers)
    assert starts.tolist() == [0, 2, 3, 6]
    assert sets[1] == 7
    assert sets[0] == sets[3] != sets[2]
    rows = pa.RecordBatch.from_pydict({"x": [10, 11, 12, 13], "$query": sets})
    found = channels.spread(rows).to_pydict()
    assert list(zip(found["x"], found["$query"], strict=True)) == list(
        zip([10, 10, 11, 12, 12, 12, 13, 13], numbers.tolist(), strict=True)
    )
    channels.keep([int(sets[2])])
    assert list(channels.members) == [sets[2]]
    assert channels.add(np.array([1, 2], np.int64)) == CHANNELS_FROM + 2
    other = Channels()
    other.read(channels.write(channels.members))
    assert {n: own.tolist() for n, own in other.members.items()} == {
        n: own.tolist() for n, own in channels.members.items()
    }
