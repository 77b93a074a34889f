"""What waits for the clock, and the memory that it holds."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eventide.engines.live.feeds import MOST_HELD, rest_of


@pytest.mark.parametrize("start", [0, 1, 500, 990, 999])
def test_the_rest_of_events_holds_little_memory_beside_its_own(start: int) -> None:
    rows = pa.record_batch({"ts": range(1_000), "k": [f"key {each}" for each in range(1_000)]})
    rest = rows
    # The rest of a rest holds no more than the rest of all.
    for part in (start // 2, start - start // 2):
        rest = rest_of(rest, part)
    assert rest.equals(rows.slice(start))
    assert rest.get_total_buffer_size() <= MOST_HELD * rest.nbytes
