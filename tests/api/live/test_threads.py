"""Many threads do everything at once: nobody waits for ever, and every event counts once."""

from __future__ import annotations

import faulthandler
import random
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Lock, Thread

import pytest

import eventide as ev
from eventide.api.live.subscription import Subscription
from eventide.errors import EventideError, StateError
from tests.api.live.kinds import Rows, database, events

PATIENCE_S = 180.0
LASTING = "SELECT _seq FROM a"
TEXTS = (
    LASTING,
    "SELECT v FROM odd",
    "SELECT window_start, COUNT(*) AS n FROM a GROUP BY TUMBLE(ts, INTERVAL '10 us')",
    "SELECT o.v FROM other AS o",
)


class Chaos:
    """Threads that append, subscribe, hold, move, end and define, each as its seed says."""

    def __init__(self, db: ev.Database, seed: int) -> None:
        self.db = db
        self.dbs = (db, ev.open(db.path))
        self.seed = seed
        self.times = count(0, 3)
        self.lasting = [
            (rows, db.subscribe(LASTING, rows, lateness="100 us", queue_rows=most))
            for rows, most in ((Rows(), 2), (Rows(), 100_000))
        ]
        self.others: list[Subscription] = []
        self.failures: list[BaseException] = []
        self.defining, self.changing = Lock(), Lock()

    def append(self, chance: random.Random) -> None:
        """Append in this process, or as another one."""
        start = next(self.times)
        chance.choice(self.dbs).stream("a").append(events(range(start, start + 3)))

    def subscribe(self, chance: random.Random) -> None:
        """Start a query, with a receiver or without."""
        receiver = chance.choice([None, Rows()])
        queue_rows = chance.choice([1, 100])
        try:
            query = self.db.subscribe(chance.choice(TEXTS), receiver, queue_rows=queue_rows)
        except EventideError as error:
            if "other" not in str(error):  # which is not always there
                raise
        else:
            with self.changing:
                self.others = [*self.others, query]

    def pause(self, chance: random.Random) -> None:
        """Hold a query, and let it go on."""
        _, query = chance.choice(self.lasting)
        query.pause()
        self.append(chance)
        query.resume()

    def cancel(self, chance: random.Random) -> None:
        """End one of the queries that do not last."""
        with self.changing:
            chosen = chance.sample(self.others, min(1, len(self.others)))
            self.others = [each for each in self.others if each not in chosen]
        for query in chosen:
            chance.choice([query.cancel, query.finish])()

    def wait(self, chance: random.Random) -> None:
        """Wait for a query."""
        _, query = chance.choice(self.lasting)
        with suppress(StateError):  # it was paused
            query.wait(chance.choice([0.0, 0.01, None]))

    def move(self, chance: random.Random) -> None:
        """Move one of the queries that do not last, and ask for its size."""
        for query in self.others[-1:]:
            query.advance(chance.randrange(1_000))
            query.sizes()

    def define(self, _: random.Random) -> None:
        """Define a derived stream, or drop it."""
        with self.defining:
            if "other" in self.db.streams():
                self.db.sql("DROP STREAM other")
            else:
                self.db.sql("CREATE STREAM other AS SELECT ts, v FROM a WHERE v > 3")

    def run(self, place: int, steps: int) -> None:
        """Do some steps by chance."""
        chance = random.Random(f"{self.seed} {place}")
        every: tuple[Callable[[random.Random], None], ...] = (
            self.append,
            self.append,
            self.append,
            self.subscribe,
            self.pause,
            self.cancel,
            self.wait,
            self.move,
            self.define,
        )
        try:
            for _ in range(steps):
                chance.choice(every)(chance)
        except BaseException as error:
            self.failures.append(error)


def joined(threads: list[Thread]) -> None:
    """Wait for threads; if one hangs, say where all of them are."""
    for thread in threads:
        thread.join(PATIENCE_S)
        if thread.is_alive():
            faulthandler.dump_traceback(2)
            pytest.fail(f"{thread.name} hangs")


@pytest.mark.parametrize("seed", range(6))
def test_nobody_hangs_and_every_event_counts_once(tmp_path: Path, seed: int) -> None:
    db = database(tmp_path)
    chaos = Chaos(db, seed)
    threads = [Thread(target=chaos.run, args=(place, 60), daemon=True) for place in range(4)]
    for thread in threads:
        thread.start()
    joined(threads)
    assert chaos.failures == []
    end = Thread(target=lambda: [query.finish() for _, query in chaos.lasting], daemon=True)
    end.start()
    joined([end])
    for rows, query in chaos.lasting:
        assert query.failure is None
        taken = [row["_seq"] for row in (*rows.rows, *query.late().rows())]
        assert sorted(taken) == list(range(len(db.stream("a"))))
    closing = Thread(target=db.close, daemon=True)
    closing.start()
    joined([closing])
    assert db.delivery.queries == []
