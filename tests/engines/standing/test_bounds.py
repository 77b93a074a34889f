"""What a standing query keeps for ever, what it holds back, and what it refuses while it runs."""

from __future__ import annotations

import warnings
from pathlib import Path
from threading import Barrier, Thread

import numpy as np
import pyarrow as pa
import pytest

import eventide as ev
from eventide.engines.build import build_tree
from eventide.engines.live.engine import LiveEngine
from eventide.engines.standing.options import StandingOptions
from eventide.engines.standing.resume import resumed
from eventide.errors import (
    EvaluationError,
    StateError,
    StateLimitError,
    UnboundedStateWarning,
    UnsupportedError,
)
from eventide.operators.envelope import seal, unseal
from eventide.operators.standing.answer.refresh import MOST_ROWS, Lifetimes
from eventide.plan.standing.choose import choose_plan
from eventide.plan.standing.execution import EXECUTIONS, Execution
from eventide.schema import SEQ, TS
from tests.engines.standing.queries import CATALOG, history
from tests.engines.standing.runs import plan_of
from tests.engines.standing.test_live import rows_of
from tests.naive.standing.windows import SECOND

ENDLESS = ("[RANGE UNBOUNDED]", "[RANGE 4 SECONDS INTERNAL]")


def opened(path: Path) -> ev.Database:
    db = ev.open(path)
    db.create_stream("a", {"k": "string", "v": "int64"})
    return db


def append(db: ev.Database, *seconds: int) -> None:
    db.stream("a").append([{"ts": at * SECOND, "k": "p", "v": at} for at in seconds])


@pytest.mark.parametrize("window", ENDLESS)
@pytest.mark.parametrize("report", ["ISTREAM", "DSTREAM"])
def test_an_answer_that_only_grows_is_not_kept(tmp_path: Path, report: str, window: str) -> None:
    db = opened(tmp_path / "db.ev")
    told: list[int] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnboundedStateWarning)
        query = db.subscribe(
            f"{report} (SELECT v FROM a {window})",
            lambda result: told.extend(row["v"] for row in result),
        )
    append(db, *range(50))
    query.wait()
    assert told == (list(range(49)) if report == "ISTREAM" else [])
    assert dict(query.sizes())["answer"].tuples == 0
    with pytest.raises(UnsupportedError, match=rf"{report} is not kept.*\nhint: .*leave {report}"):
        query.current()
    engine = query.standing("dumped")
    query.state = engine.load(engine.dump(query.state))
    append(db, 60)
    query.wait()
    assert told == (list(range(50)) if report == "ISTREAM" else [])
    assert not query.finished


def test_such_a_query_goes_on_from_its_state() -> None:
    plan = plan_of("ISTREAM (SELECT a.v FROM a [RANGE UNBOUNDED])")
    live = LiveEngine.of(choose_plan(plan).plan, CATALOG)
    state, _ = live.take(live.initial_state(), {"a": rows_of("a", history(3)["a"])})
    again, found = resumed(live, plan, CATALOG, live.dump(state))
    assert found.clock_us == state.clock_us
    assert again.tree.answer.keeps_answer is False


@pytest.mark.parametrize("report", ["", "RSTREAM"])
def test_the_cure_for_what_is_kept_for_ever_is_one(tmp_path: Path, report: str) -> None:
    db = opened(tmp_path / "db.ev")
    with pytest.warns(UnboundedStateWarning, match=r"write \[RANGE 1 HOUR\], or ISTREAM"):
        db.subscribe(f"{report} (SELECT v FROM a [RANGE UNBOUNDED])")
    # ISTREAM would not help a join, which keeps both of its sides.
    joined = "SELECT x.v FROM a [RANGE UNBOUNDED] x, a [RANGE 1 h] y"
    with pytest.warns(UnboundedStateWarning, match=r"write \[RANGE 1 HOUR\]$"):
        db.subscribe(f"ISTREAM ({joined})")


def test_reports_that_last_are_kept_for_windows_that_end(tmp_path: Path) -> None:
    db = opened(tmp_path / "db.ev")
    query = db.subscribe("ISTREAM (SELECT v FROM a [RANGE 3 SECONDS])")
    append(db, *range(9))
    assert [row["v"] for row in query.current()] == [5, 6, 7]


def test_a_query_can_begin_while_others_append(tmp_path: Path) -> None:
    """Each thread delivers what it appends: nobody has to deliver for all the others."""
    db = opened(tmp_path / "db.ev")
    threads, batches = 3, 40
    begin = Barrier(threads + 1)

    def work(number: int) -> None:
        stream = db.stream("a")
        begin.wait()
        for batch in range(batches):
            stream.append([{"ts": SECOND, "k": "p", "v": number * batches + batch}])

    workers = [Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    begin.wait()
    text = "SELECT v FROM a [RANGE 1 HOUR]"
    queries = [db.subscribe(text, from_history=True) for _ in range(5)]
    for worker in workers:
        worker.join()
    for query in queries:
        query.advance(2 * SECOND)
        assert sorted(row["v"] for row in query.current()) == list(range(threads * batches))
        assert query.late_count == 0


def test_what_a_callback_appends_is_delivered_too(tmp_path: Path) -> None:
    db = opened(tmp_path / "db.ev")
    db.create_stream("doubled", {"v": "int64"})
    seen: list[int] = []

    def double(result: ev.Result) -> None:
        db.stream("doubled").append([{"ts": row["at"], "v": 2 * row["v"]} for row in result])

    db.subscribe("SELECT v FROM a [RANGE 1 SECOND]", double)
    db.subscribe("SELECT v FROM doubled", lambda result: seen.extend(row["v"] for row in result))
    append(db, 1, 2, 3)
    db.wait()
    assert seen == [2]


def test_a_state_with_a_flipped_bit_is_refused() -> None:
    text = "SELECT a.k, COUNT(*) AS n, MEDIAN(a.v) AS m FROM a [RANGE 4 SECONDS] GROUP BY a.k"
    live = LiveEngine.of(choose_plan(plan_of(text)).plan, CATALOG)
    state, _ = live.take(live.initial_state(), {"a": rows_of("a", history(4)["a"])})
    dumped = live.dump(state)
    assert live.dump(live.load(dumped)) == dumped
    chance = np.random.default_rng(7)
    for place, bit in zip(
        chance.integers(0, len(dumped), 300), chance.integers(0, 8, 300), strict=True
    ):
        damaged = bytearray(dumped)
        damaged[place] ^= 1 << int(bit)
        with pytest.raises(StateError, match="damaged"):
            live.load(bytes(damaged))
    for cut in (0, 3, 4, len(dumped) - 1):
        with pytest.raises(StateError, match="damaged"):
            live.load(dumped[:cut])
    with pytest.raises(StateError, match="cut short"):
        live.load(seal(live.owner, unseal(dumped)[1][:9]))


def test_more_refreshes_than_memory_are_refused(tmp_path: Path) -> None:
    db = opened(tmp_path / "db.ev")
    text = "RSTREAM (SELECT v FROM a [RANGE 1 h SLIDE 1 us])"
    append(db, 0, 1800)
    with pytest.raises(StateLimitError, match=r"1,800,000,00\d rows at once.*\nhint: .*SLIDE"):
        db.sql(text)
    query = db.subscribe(text)
    append(db, 3600, 3601)
    append(db, 5400)
    assert isinstance(query.failure, StateLimitError)
    assert "ISTREAM and DSTREAM" in str(query.failure)
    assert len(db.sql(text.replace("RSTREAM", "ISTREAM"))) == 5


def test_how_many_rows_there_will_be_is_known_before_there_are() -> None:
    numbers = np.arange(2)
    lives = Lifetimes(numbers, np.zeros(2, np.int64), np.full(2, MOST_ROWS // 2 + 1))
    with pytest.raises(StateLimitError, match="50,000,002 rows"):
        lives.at_refreshes(1)
    far = Lifetimes(numbers, np.full(2, -(2**62)), np.full(2, 2**62))
    with pytest.raises(StateLimitError):
        far.at_refreshes(2)


@pytest.mark.parametrize("time", [2**70, -(2**70), 2**63])
def test_time_has_an_end(tmp_path: Path, time: int) -> None:
    query = opened(tmp_path / "db.ev").subscribe("SELECT v FROM a [RANGE 1 SECOND]")
    with pytest.raises(EvaluationError, match=r"beyond the times there are"):
        query.advance(time)
    assert not query.finished


def test_what_expires_after_the_year_9999_can_be_shown(tmp_path: Path) -> None:
    db = opened(tmp_path / "db.ev")
    told: list[ev.Result] = []
    db.subscribe("SELECT v FROM a [RANGE 3600000 DAYS]", told.append)
    append(db, 0, 1)
    db.wait()
    (row,) = told[0].rows()
    assert row["exp"] == "11826-06-20 00:00:00"
    assert "11826-06-20 00:00:00" in str(told[0])
    assert told[0].to_arrow().schema.field("exp").type == pa.timestamp("us")


BURSTS = (
    "SELECT x.k FROM a [RANGE 4 SECONDS] x JOIN b [RANGE 3 SECONDS] y ON x.k = y.k",
    "SELECT x.k FROM a [RANGE 4 SECONDS] x LEFT JOIN b [RANGE 3 SECONDS] y ON x.k = y.k",
    "SELECT x.k FROM a [RANGE 4 s] x FULL JOIN b [RANGE 3 s] y ON x.k = y.k AND x.v < y.v",
    "SELECT k FROM a [RANGE 4 SECONDS] INTERSECT SELECT k FROM b [RANGE 3 SECONDS]",
    "SELECT DISTINCT x.k FROM a [RANGE 4 s] x JOIN b [RANGE 3 s] y ON x.k = y.k",
    "SELECT x.k FROM a [RANGE 4 s] x WHERE NOT EXISTS "
    "(SELECT 1 FROM b [RANGE 3 s] y WHERE y.k = x.k)",
    "SELECT k, MAX(v) AS high FROM a [RANGE 4 SECONDS] GROUP BY k",
    "SELECT k, SUM(v) AS total FROM a [RANGE 4 SECONDS SLIDE 2 SECONDS] GROUP BY k",
    "DSTREAM (SELECT x.k FROM a [RANGE 4 s] x JOIN b [RANGE 3 s] y ON x.k = y.k)",
    "DSTREAM (SELECT k FROM a [RANGE 4 SECONDS])",
)


@pytest.mark.parametrize("execution", EXECUTIONS)
@pytest.mark.parametrize("text", BURSTS)
def test_after_a_burst_hardly_more_is_held_than_before(text: str, execution: Execution) -> None:
    tree = build_tree(plan_of(text), standing=StandingOptions(execution))
    state, sizes = tree.initial_state(), []
    for second, count in enumerate([5, 5, 3_000, 5, *[0] * 8, 5, 5]):
        moments = pa.array(np.full(count, second * SECOND)).cast(pa.timestamp("us"))
        numbers = pa.array(np.arange(count, dtype=np.int64) + 10_000 * second)
        keys = pa.array([f"{second % 2}.{i}" for i in range(count)], pa.string())
        known = {TS: moments, "k": keys, SEQ: numbers}
        rows = tuple(
            pa.record_batch(
                [known.get(field.name, numbers).cast(field.type) for field in leaf.schema],
                schema=leaf.schema,
            )
            for leaf in tree.leaves
        )
        state, _ = tree.step(state, rows, (second + 1) * SECOND)
        sizes.append(sum(size.bytes for _, size in tree.sizes(state)))
    assert max(sizes) > 5 * sizes[1]
    assert sizes[-1] < 2 * sizes[1] + 150_000
