"""The log of values, against a list."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.operators.standing.row_log import RowLog, is_sparse

SCHEMA = pa.schema([("n", pa.int64()), ("text", pa.string())])


def rows_of(numbers: list[int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": numbers, "text": [str(n) for n in numbers]}, SCHEMA)


@settings(deadline=None)
@given(
    sizes=st.lists(st.integers(0, 40), max_size=12),
    dropped=st.integers(0, 200),
    data=st.data(),
)
def test_rows_are_found_by_number(sizes: list[int], dropped: int, data: st.DataObject) -> None:
    log, end = RowLog.empty(SCHEMA), 0
    for size in sizes:
        log = log.append(rows_of(list(range(end, end + size))))
        end += size
    assert (log.end, log.size) == (end, end)
    log = log.drop_before(min(dropped, end))
    assert log.end == end
    assert log.start <= min(dropped, end)
    held = st.lists(st.integers(log.start, max(log.start, end - 1)), max_size=30)
    numbers = data.draw(held) if log.size else []
    taken = log.take(np.array(numbers, np.int64))
    assert taken.to_pydict() == {"n": numbers, "text": [str(n) for n in numbers]}
    kept = log.kept(np.array(numbers, np.int64))
    assert kept.take(np.arange(len(numbers))).column("n").to_pylist() == numbers


def test_memory_of_forgotten_rows_is_given_back() -> None:
    log = RowLog.empty(SCHEMA).append(rows_of(list(range(10_000))))
    log = log.drop_before(9_000)
    assert log.size == 1_000
    assert log.nbytes < 50_000
    assert not is_sparse(log.size, 1_000)
