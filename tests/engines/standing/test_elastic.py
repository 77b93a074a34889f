"""Answers for shorter windows: those of the same query with such windows."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eventide as ev
from eventide.api.live.query import LiveQuery
from eventide.engines.live.engine import LiveEngine
from eventide.errors import UnsupportedError
from eventide.lang.sql import plan_sql
from eventide.plan.standing.elastic import shortened_by
from eventide.plan.standing.nodes import Standing
from tests.engines.standing.queries import histories
from tests.engines.standing.runs import bag, batch, cuts, plan_of, run, tree_of
from tests.naive.standing.answers import Streams
from tests.naive.standing.windows import SECOND

LONG, SLIDE = 6, 2
TEXTS = (
    "SELECT x.k, x.v FROM a [RANGE {0}] x WHERE x.v > 0",
    "SELECT x.k, y.v FROM a [RANGE {0}] x JOIN b [RANGE {0}] y ON x.k = y.k",
    "SELECT x.k FROM a [RANGE {0}] x, b [RANGE {0}] y, c [RANGE {0}] z "
    "WHERE x.k = y.k AND y.g = z.g",
    "SELECT x.k FROM a [RANGE {0}] x UNION ALL SELECT y.k FROM b [RANGE {0}] y",
)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("slide", ["", f" SLIDE {SLIDE} SECONDS"])
@settings(deadline=None, max_examples=6)
@given(streams=histories(), seed=st.integers(0, 2**32), steps=st.integers(1, LONG // SLIDE))
def test_the_answer_is_that_of_shorter_windows(
    text: str, slide: str, streams: Streams, seed: int, steps: int
) -> None:
    last = steps * SLIDE
    untils = cuts(streams, random.Random(seed))
    shorter = list(run(text.format(f"{last} SECONDS{slide}"), streams, untils=untils))
    longer = text.format(f"{LONG} SECONDS{slide}")
    tree = tree_of(longer, "aware")
    sooner_us = shortened_by(plan_of(longer), last * SECOND)
    state, since = tree.initial_state(), None
    for until, expected in zip(untils, shorter, strict=True):
        rows = tuple(
            batch(streams[leaf.scan.stream], leaf.schema, since, until) for leaf in tree.leaves
        )
        state, _ = tree.step(state, rows, until)
        since = until
        assert bag(tree.current(state, sooner_us)) == expected.answer


@pytest.mark.parametrize(
    ("text", "last_s", "message"),
    [
        ("SELECT x.k FROM a [RANGE 6 SECONDS] x", 7, "hold 6 s"),
        ("SELECT x.k FROM a [RANGE 6 SECONDS] x", 0, "hold 6 s"),
        ("SELECT x.k FROM a [RANGE 6 SECONDS SLIDE 2 SECONDS] x", 3, "slides by 2 s"),
        ("SELECT x.k FROM a [ROWS 6] x", 3, "not all windows are"),
        ("SELECT x.k FROM a [RANGE 6 SECONDS INTERNAL] x", 3, "not all windows are"),
        ("SELECT x.k FROM a [RANGE 6 s] x JOIN b [RANGE 5 s] y ON x.k = y.k", 3, "different"),
        ("SELECT DISTINCT x.k FROM a [RANGE 6 SECONDS] x", 3, "shorter window does not have"),
        ("SELECT COUNT(*) AS n FROM a [RANGE 6 SECONDS] x", 3, "shorter window does not have"),
        ("DSTREAM (SELECT x.k FROM a [RANGE 6 SECONDS] x)", 3, "rows of this report"),
    ],
)
def test_what_has_no_shorter_answer_is_said(text: str, last_s: int, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message) as refused:
        shortened_by(plan_of(text), last_s * SECOND)
    assert refused.value.hint


def test_a_live_query_is_asked(tmp_path: Path) -> None:
    db = ev.open(tmp_path)
    stream = db.create_stream("a", {"k": "string"})
    standing = db.subscribe("SELECT x.k FROM a [RANGE 60 SECONDS] x")
    for second in (0, 20, 40, 50):
        stream.append([{"ts": second * SECOND, "k": f"at {second}"}])
    standing.advance(51 * SECOND)
    assert standing.current(last="15 s").to_arrow().column("k").to_pylist() == ["at 40", "at 50"]
    assert len(standing.current(last="60 s")) == len(standing.current()) == 4
    text = "SELECT x.k FROM a [RANGE 60 SECONDS] x"
    plan = plan_sql(text, db.catalog())
    assert isinstance(plan, Standing)
    engine = LiveEngine.of(plan, db.catalog(), 0, execution="negative")
    other = LiveQuery(engine, None, text=text)
    other.advance(60 * SECOND)
    with pytest.raises(UnsupportedError, match="negative execution"):
        other.current(last="15 s")
