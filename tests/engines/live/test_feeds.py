"""What waits for the clock, and the memory that it holds."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eventide.engines.live.feeds import MOST_HELD, SPARE_BYTES, rest_of


@pytest.mark.parametrize("start", [0, 1, 5_000, 99_000, 99_999])
def test_the_rest_of_events_holds_little_memory_beside_its_own(start: int) -> None:
    rows = pa.record_batch({"ts": range(100_000), "k": [f"key {each}" for each in range(100_000)]})
    rest = rows
    # The rest of a rest holds no more than the rest of all.
    for part in (start // 2, start - start // 2):
        rest = rest_of(rest, part)
    assert rest.equals(rows.slice(start))
    assert rest.get_total_buffer_size() <= max(SPARE_BYTES, MOST_HELD * rest.nbytes)
