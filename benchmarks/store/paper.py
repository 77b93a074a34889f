"""What the ChronicleDB paper measures (§9), as ratios on this machine; no targets."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median

import pyarrow as pa

from benchmarks.race import Finding, at_most, check_close, check_same, median_seconds, race
from benchmarks.sensors import ATTRIBUTES, COLUMNS, GAP_US, STREAM, as_they_arrive, far
from benchmarks.store.answers import ANSWER_CASES
from benchmarks.store.cases import STORE_CASES, StoreCase, count_rows
from benchmarks.store.child import aggregates
from benchmarks.store.setting import StoreSetting, slices
from eventide.instants import TimeRange
from eventide.store import Snapshot, Store, StoredStream, StreamOptions
from eventide.store.writing.open_stream import forget

OPENINGS = 10
Variants = dict[str, tuple[Sequence[pa.Table], StreamOptions]]


def ingest_times(setting: StoreSetting, variants: Variants) -> dict[str, float]:
    """Check that each variant keeps all events, then return its seconds."""
    for name, (tables, options) in variants.items():
        scan = setting.ingested(tables, options).snapshot().scan(COLUMNS)
        check_same(name, scan, [setting.some])
        setting.clear()
    ways = {name: partial(setting.ingested, *variant) for name, variant in variants.items()}
    return race(ways, after=setting.clear)


def interleaved_index(setting: StoreSetting) -> list[Finding]:
    """E1: an uncompressed stream with its index, against its bare bytes in a file."""
    chunks = slices(setting.some, setting.sizes.chunk)
    bare = StreamOptions(codec="none", summaries=())
    ours = ingest_times(setting, {"store": (chunks, bare)})["store"]
    theirs = race({"raw": lambda: write_raw(setting.new_path("raw"), chunks)}, after=setting.clear)[
        "raw"
    ]
    return [Finding("uncompressed, indexed", ours, "bytes in a file", theirs)]


def write_raw(path: Path, tables: Sequence[pa.Table]) -> None:
    """Write the columns' bytes, and wait for the disk after each table."""
    with path.open("wb", buffering=0) as file:
        for table in tables:
            for column in table.columns:
                file.write(column.combine_chunks().to_numpy().view("int64").data)
            os.fdatasync(file.fileno())


def summarised_attributes(setting: StoreSetting) -> list[Finding]:
    """E4: ingest by how many attributes the index has aggregates of."""
    chunks = slices(setting.some, setting.sizes.chunk)
    counts = (0, 3, len(ATTRIBUTES))
    seconds = ingest_times(
        setting,
        {str(n): (chunks, StreamOptions(summaries=ATTRIBUTES[:n])) for n in counts},
    )
    return versus(setting, {f"{n} attributes": seconds[str(n)] for n in counts}, "0 attributes")


def versus(setting: StoreSetting, seconds: dict[str, float], rival: str) -> list[Finding]:
    """Compare variants of ingest with one of them."""
    theirs = seconds[rival]
    return [
        Finding(name, spent, rival, theirs, events=setting.sizes.some)
        for name, spent in seconds.items()
        if name != rival
    ]


def time_travel(setting: StoreSetting) -> list[Finding]:
    """E5: reading a range takes time like its length; aggregating it does not."""
    snapshot = setting.bulk.snapshot()
    whole = snapshot.time_range
    findings: list[Finding] = []
    for name, share in (("0.1 %", 1e-3), ("1 %", 1e-2), ("10 %", 1e-1), ("100 %", 1.0)):
        length = int((whole.end_us - whole.start_us) * share)
        start = whole.start_us + (whole.end_us - whole.start_us - length) // 3
        times = TimeRange(start, start + length)
        check_close(name, aggregates(snapshot, times), {"count": scanned(snapshot, times)})
        scan = median_seconds(partial(scanned, snapshot, times), 3)
        answer = median_seconds(partial(aggregates, snapshot, times), 20)
        findings.append(Finding(f"{name}, aggregate", answer, f"{name}, scan", scan))
    return findings


def scanned(snapshot: Snapshot, times: TimeRange) -> int:
    """Read a range of time, and keep none of it."""
    return count_rows(snapshot.scan(COLUMNS, times))


def share_late(setting: StoreSetting) -> list[Finding]:
    """E12: a tenth late, against a hundredth."""
    seconds = ingest_times(
        setting,
        {f"{share} % late": (arriving(setting, share / 100), StreamOptions()) for share in (1, 10)},
    )
    return versus(setting, seconds, "1 % late")


def arriving(setting: StoreSetting, share: float) -> list[pa.Table]:
    """Return appends of events of which a share is late by up to 100 s."""
    return slices(as_they_arrive(setting.some, share, far), setting.sizes.append)


def split_frequency(setting: StoreSetting) -> list[Finding]:
    """E13: a new segment for every so many events, against one for all."""
    appends = slices(setting.some, setting.sizes.append)
    variants: Variants = {"1 segment": (appends, StreamOptions())}
    for splits in (10, 100, 1_000):
        split_us = max(1, setting.sizes.some * GAP_US // splits)
        variants[f"{splits:,} segments"] = (appends, StreamOptions(split_us=split_us))
    return versus(setting, ingest_times(setting, variants), "1 segment")


def many_segments(setting: StoreSetting) -> list[Finding]:
    """End a segment, and open a stream, when there are few segments and when there are many."""
    rows = setting.sizes.some // setting.sizes.segments
    stream = setting.new_stream(options=StreamOptions(split_us=rows * GAP_US))
    periods = slices(setting.some, rows)
    sealed: list[float] = []
    opened: dict[int, float] = {}
    for number, period in enumerate(periods, 1):
        stream.append(period)
        start = time.perf_counter()
        stream.flush(seal=True)
        sealed.append(time.perf_counter() - start)
        if number in (1, len(periods)):
            check_same("segments", stream.snapshot().scan(COLUMNS), periods[:number])
            opened[number] = median_seconds(partial(count_again, stream), OPENINGS)
    setting.clear()
    first, last = median(sealed[1 : 1 + OPENINGS]), median(sealed[-OPENINGS:])
    many = f"{len(periods):,} segments"
    return [
        Finding(f"commit, {many}", last, "commit, few segments", first, at_most(2)),
        Finding(f"open, {many}", opened[len(periods)], "open, 1 segment", opened[1], at_most(2)),
    ]


def count_again(stream: StoredStream) -> int:
    """Open a stream as if this process had never seen it, and count its events."""
    forget(stream.path)
    return Store.open(stream.path.parents[1]).stream(STREAM).snapshot().row_count


def arrival_order(setting: StoreSetting) -> list[Finding]:
    """E14: keep events as they came, against in order of time."""
    findings: list[Finding] = []
    for share in (0, 1, 10, 50):
        appends = arriving(setting, share / 100)
        seconds = ingest_times(
            setting,
            {
                "time": (appends, StreamOptions()),
                "arrival": (appends, StreamOptions(order="arrival")),
            },
        )
        ours, theirs, events = seconds["arrival"], seconds["time"], setting.sizes.some
        findings.append(
            Finding(f"{share} % late, arrival", ours, "order of time", theirs, events=events)
        )
    return findings


PAPER_CASES = (
    StoreCase("E1 interleaved index", "an index in the file, uncompressed", interleaved_index),
    StoreCase("E4 attributes", "write, by the attributes summarised", summarised_attributes),
    StoreCase("E5 time travel", "read or aggregate a range of time", time_travel),
    StoreCase("E12 share late", "write, some up to 100 s late, 10,000 at a time", share_late),
    StoreCase("E13 splits", "write, 10,000 at a time, beginning segments", split_frequency),
    StoreCase("many segments", "seal a segment; open a stream and count its events", many_segments),
    StoreCase("E14 arrival order", "write, some up to 100 s late, unsorted", arrival_order),
)


def all_store_cases() -> list[StoreCase]:
    """Return every case of the store, those over most events last."""
    return [*STORE_CASES, *PAPER_CASES, *ANSWER_CASES]
