"""Events of several streams, taken by time."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.ingest.by_time import by_time

TIMES = st.lists(st.lists(st.integers(0, 50), max_size=6), max_size=4)


def batch(times: list[int], first: int) -> pa.RecordBatch:
    numbers = range(first, first + len(times))
    return pa.record_batch({"ts": pa.array(times, pa.timestamp("us")), "n": list(numbers)})


def batches(parts: list[list[int]]) -> list[pa.RecordBatch]:
    starts = [sum(map(len, parts[:place])) for place in range(len(parts))]
    return [batch(times, first) for times, first in zip(parts, starts, strict=True)]


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from("abc"), TIMES),
    st.one_of(st.none(), st.integers(0, 20)),
    st.integers(1, 5),
)
def test_every_event_comes_once_and_none_runs_ahead(
    parts: dict[str, list[list[int]]], lag_us: int | None, most: int
) -> None:
    left = {name: [ts for times in each for ts in times] for name, each in parts.items()}
    counts = dict.fromkeys(parts, 0)
    streams = {name: iter(batches(each)) for name, each in parts.items()}
    for stream, rows in by_time(streams, {"b"}, lag_us, most):
        assert 1 <= rows.num_rows <= most
        own = left[stream]
        others = {name: each[0] for name, each in left.items() if name != stream and each}
        assert all((own[0], stream != "b") <= (ts, name != "b") for name, ts in others.items())
        if lag_us is not None and others and rows.num_rows > 1:
            assert max(own[: rows.num_rows]) <= min(others.values()) + lag_us
        first = counts[stream]
        assert rows.column("n").to_pylist() == list(range(first, first + rows.num_rows))
        counts[stream] += rows.num_rows
        del own[: rows.num_rows]
    assert not any(left.values())
