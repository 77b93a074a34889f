"""The estimate of how much refreshes miss, against simulation."""

from __future__ import annotations

import random

import pytest

from eventide.lang.sql import plan_sql
from eventide.plan.standing.choose import choose_plan
from eventide.plan.standing.joins import WindowJoin
from eventide.plan.standing.nodes import Standing
from eventide.plan.standing.text import described_edges
from eventide.plan.standing.unseen import unseen_share
from eventide.plan.standing.update_patterns import nodes_of
from tests.engines.standing.queries import CATALOG
from tests.engines.standing.runs import run
from tests.naive.standing.windows import SECOND
from tests.naive.windows import Event

TWO = "SELECT x.v, y.v AS w FROM a [RANGE {} s SLIDE 10 s] x JOIN b [RANGE {} s] y ON x.g = y.g"
THREE = (
    "SELECT x.v FROM a [RANGE 20 s SLIDE 10 s] x JOIN b [RANGE 30 s] y ON x.g = y.g "
    "JOIN c [RANGE 15 s] z ON z.g = x.g"
)


def planned(text: str) -> Standing:
    plan = plan_sql(text, CATALOG)
    assert isinstance(plan, Standing)
    return plan


def estimated(text: str) -> float | None:
    (join,) = (node for node in nodes_of(planned(text)) if isinstance(node, WindowJoin))
    return unseen_share(join, 10 * SECOND)


def steady(seed: int, count: int) -> list[Event]:
    choose = random.Random(seed)
    times = sorted(choose.randrange(600 * SECOND) for _ in range(count))
    values = {"k": None, "g": 1, "v": 1, "f": None}
    return [{"ts": ts, "_seq": number, **values} for number, ts in enumerate(times)]


@pytest.mark.parametrize(
    ("text", "count"), [(TWO.format(60, 60), 200), (TWO.format(10, 40), 400), (THREE, 200)]
)
def test_the_share_is_about_that_of_steady_streams(text: str, count: int) -> None:
    streams = {name: steady(ord(name), count) for name in "abc"}
    counts = []
    for report in ("ISTREAM", "ISTREAM RESTORE"):
        *_, last = run(f"{report} ({text})", streams)
        counts.append(len(last.reports))
    assert estimated(text) == pytest.approx(1 - counts[0] / counts[1], rel=0.1)


def test_two_windows_of_one_length_lose_half_a_slide() -> None:
    assert estimated(TWO.format(60, 60)) == pytest.approx(10 / (2 * 60))


def test_what_is_unknown_is_not_estimated() -> None:
    assert estimated(TWO.format(60, 60).replace("RANGE 60 s]", "ROWS 9]")) is None
    assert estimated(TWO.format(60, 60).replace("JOIN b", "JOIN a")) is None


def test_explain_tells_it_unless_nothing_is_lost() -> None:
    text = TWO.format(60, 60)
    told = "about 8.3% unseen between refreshes"
    for query, loses in [
        (text, True),
        (f"ISTREAM ({text})", True),
        (f"ISTREAM RESTORE ({text})", False),
        (text.replace(" SLIDE 10 s", ""), False),
    ]:
        plan = planned(query)
        lines = described_edges(plan, choose_plan(plan))
        assert any(told in line for line in lines) == loses
