"""Events that change nothing wait for others, and nobody sees it."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from eventide.engines.live.sharing import held
from eventide.instants import START_OF_TIME_US
from eventide.plan.sharing.rules import SharingRules
from tests.engines.live.sharing.test_many_queries import Compared
from tests.engines.live.sharing.texts import SECOND, events
from tests.exploring import EXPLORING

WINDOW = (
    "SELECT {}window_start, SUM(speed) AS total FROM cars "
    "GROUP BY {}TUMBLE(ts, INTERVAL '{}' SECOND)"
)


def window(random: Random) -> str:
    """Return sums of windows of some size."""
    key = random.choice(["", "car, "])
    return WINDOW.format(key, key, random.choice([7, 20, 33, 60]))


def run(random: Random, disorder: float) -> int:
    """Let windows come and go while events flow; return how often events were held."""
    compared, now_us, following, times_held = Compared(random.choice([0, 2 * SECOND])), 0, 0, 0
    compared.add([window(random) for _ in range(4)])
    for _ in range(30):
        if random.random() < 0.1:
            compared.add([window(random) for _ in range(random.choice([1, 3]))])
        if len(compared.alone) > 2 and random.random() < 0.1:
            compared.drop(random.choice(list(compared.alone)))
        count = random.choice([0, 1, 3, 6])
        rows, now_us = events(random, "cars", count, now_us, following, disorder)
        following += count
        compared.take("cars", rows)
        times_held += sum(bool(each.held and each.held.batches) for each in compared.many.shared)
        twins = [each.state for each in compared.alone.values()]
        clocks = [each.clock_us for each in twins if each.clock_us != START_OF_TIME_US]
        assert compared.many.clock_us == min(clocks, default=START_OF_TIME_US)
        if any(each.held and each.held.batches for each in compared.many.shared):
            newest = min(each.feeds[0].newest_us for each in twins)
            assert compared.many.newest_us("cars") == newest
        if random.random() < 0.1:
            compared.dump_and_load()
        if random.random() < 0.1:
            compared.advance(now_us, random.choice([None, "cars"]))
    compared.finish()
    compared.check()
    return times_held


@pytest.mark.parametrize("disorder", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(200 if EXPLORING else 5))
def test_windows_answer_as_alone_while_events_are_held(
    seed: int, disorder: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held, "MOST_HELD", (65_536, 8)[seed % 2])
    assert run(Random(seed), disorder) > (0 if disorder else 3)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT car FROM cars WHERE speed > 5",
        WINDOW.format("", "", 60).replace("GROUP BY", "WHERE speed > 5 GROUP BY"),
    ],
)
def test_events_that_may_matter_are_not_held(text: str) -> None:
    compared = Compared(0, SharingRules(share_parts=False))
    compared.add([text, WINDOW.format("", "", 60)])
    for step in range(3):
        rows, _ = events(Random(step), "cars", 5, step * SECOND, 5 * step, 0.0)
        compared.take("cars", rows)
        assert not any(each.held and each.held.batches for each in compared.many.shared)
    compared.finish()
    compared.check()


def test_late_events_are_not_held() -> None:
    compared = Compared(0)
    compared.add([WINDOW.format("", "", 60)])
    rows, now_us = events(Random(1), "cars", 20, SECOND, 0, 0.0)
    compared.take("cars", rows)
    compared.take("cars", rows.set_column(1, "_seq", pa.array(range(20, 40), pa.int64())))
    step = compared.many.take({"cars": rows.slice(0, 1)})
    assert [late["cars"].num_rows for late, _ in step.late] == [1]
    assert compared.many.clock_us == now_us
