"""Who reads a stream sees it as it was at one moment, whatever comes and goes meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import pytest

import eventide as ev
from eventide.instants import TimeRange
from eventide.store import Store, StoredStream
from eventide.store.options import StreamOptions
from tests.store.events import SCHEMA, at, scanned, tiny_files

SECOND = 1_000_000
Change = Callable[[StoredStream], object]


def append_sealed(stream: StoredStream) -> None:
    stream.append(at(*range(300, 340)))
    stream.flush(seal=True)


CHANGES: dict[str, Change] = {
    "drop_before": lambda stream: stream.drop_before(150),
    "thin": lambda stream: stream.thin(150),
    "compact": lambda stream: stream.compact(),
    "retain": lambda stream: (
        stream.set_options(replace(stream.options, keep_us=20)),
        stream.retain(),
    ),
    "append": append_sealed,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_scan_that_has_begun_goes_on_as_it_began(tmp_path: Path, change: str) -> None:
    with tiny_files():
        stream = Store.open(tmp_path / "db").create_stream(
            "cars", SCHEMA, StreamOptions(split_us=15)
        )
        for first in range(0, 200, 20):
            stream.append(at(*range(first, first + 20)))
        snapshot = stream.snapshot()
        expected = scanned(snapshot)
        assert len(expected) == 200
        scan = iter(snapshot.scan(["ts"], TimeRange(0, 200)))
        begun = next(scan)
        before = stream.snapshot().version
        CHANGES[change](stream)
        assert change == "compact" or stream.snapshot().version > before
        times = [
            each
            for batch in (begun, *scan)
            for each in batch.column("ts").cast("int64").to_pylist()
        ]
        assert times == list(range(200))
        assert scanned(snapshot) == expected


def test_queries_see_one_moment_while_events_come_and_go(tmp_path: Path) -> None:
    with tiny_files():
        db = ev.open(tmp_path / "traffic.ev")
        cars = db.create_stream(
            "cars", {"number": "int64", "even": "bool"}, keep="60 s", split="10 s"
        )
        over, failures = Event(), list[BaseException]()
        begun = done = 0

        def write() -> None:
            nonlocal begun, done
            try:
                while not over.is_set():
                    begun += 7
                    cars.append(
                        [
                            {"ts": each * SECOND, "number": each, "even": each % 2 == 0}
                            for each in range(done, begun)
                        ]
                    )
                    done = begun
                    if done % 20 == 0:
                        cars.compact()
            except BaseException as error:
                failures.append(error)

        writer = Thread(target=write)
        writer.start()
        oldest = 0
        try:
            while oldest < 200 and not failures:
                for text in (
                    "SELECT COUNT(*) AS n, MIN(number) AS first, MAX(number) AS last FROM cars",
                    "SELECT COUNT(*) AS n, MIN(number) AS first, MAX(number) AS last FROM cars "
                    "WHERE number + 0 >= 0",
                    "SELECT SUM(n) AS n, MIN(first) AS first, MAX(last) AS last FROM (SELECT even, "
                    "COUNT(*) AS n, MIN(number) AS first, MAX(number) AS last FROM cars "
                    "GROUP BY even)",
                ):
                    least = done
                    ((row),) = db.sql(text).rows()
                    if row["n"]:
                        assert row["n"] == row["last"] - row["first"] + 1
                        assert least - 1 <= row["last"] < begun
                        assert row["first"] >= oldest
                        # What is younger than `keep` is there.
                        assert row["first"] <= max(row["last"] - 60, 0)
                        oldest = row["first"]
        finally:
            over.set()
            writer.join()
        assert not failures
