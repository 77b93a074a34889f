"""Sizes as text."""

from __future__ import annotations

import pytest

from eventide.errors import SchemaError
from eventide.plan.sizes import size_bytes


@pytest.mark.parametrize(
    ("size", "wanted"),
    [
        (17, 17),
        ("17", 17),
        ("17 B", 17),
        ("1 kB", 1000),
        ("1KB", 1000),
        ("500 MB", 500_000_000),
        ("1 GB", 10**9),
        (" 0.5 TB ", 5 * 10**11),
        ("1 GiB", 2**30),
    ],
)
def test_sizes_are_read(size: int | str, wanted: int) -> None:
    assert size_bytes(size, "max_state_bytes") == wanted


@pytest.mark.parametrize("size", [0, -1, "0 B", "", "GB", "1 XB", "1 G", "-1 kB", True, 1.5, None])
def test_what_is_no_size_is_refused(size: object) -> None:
    with pytest.raises(SchemaError, match='max_state_bytes="1 GB"'):
        size_bytes(size, "max_state_bytes")  # type: ignore[arg-type]
