"""Temporal correlation, against its definition."""

from __future__ import annotations

import math
from datetime import datetime
from decimal import Decimal
from functools import reduce
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.store.index.correlation import (
    CorrelationPart,
    IndexChoice,
    choose_indexes,
    correlation_of,
)

numbers = st.none() | st.sampled_from([math.nan, math.inf, 0.0]) | st.floats(-1e9, 1e9)


def naive_correlation(values: list[float | None]) -> float:
    kept = [value for value in values if value is not None and math.isfinite(value)]
    if len(set(kept)) < 2:
        return 1.0
    steps = [abs(after - before) for before, after in pairwise(kept)]
    return 1 - sum(steps) / len(steps) / (max(kept) - min(kept))


def part(values: list[object], kind: pa.DataType | None = None) -> CorrelationPart:
    found = correlation_of(pa.array(values, kind))
    assert found is not None
    return found


@settings(deadline=None)
@given(st.lists(st.lists(numbers, max_size=8), max_size=6))
def test_leaves_combine_to_the_definition(leaves: list[list[float | None]]) -> None:
    parts = [part(list(leaf), pa.float64()) for leaf in leaves]
    whole = reduce(CorrelationPart.merge, parts, CorrelationPart())
    together = [value for leaf in leaves for value in leaf]
    assert whole.value == pytest.approx(naive_correlation(together), abs=1e-9)
    assert whole.sum_of_steps == pytest.approx(part(list(together), pa.float64()).sum_of_steps)


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=8))
def test_always_between_zero_and_one(values: list[float]) -> None:
    assert 0.0 <= part(list(values), pa.float64()).value <= 1.0


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], 1.0),
        ([None], 1.0),
        ([4, None], 1.0),
        ([4, 4, 4], 1.0),
        ([1, 2, 3], 0.5),
        ([0, 10, 0, 10], 0.0),
        ([True, True, None, False], 0.5),
        ([datetime(2024, 1, 1), datetime(2024, 1, 3), datetime(2024, 1, 2)], 0.25),
        ([Decimal("0.5"), Decimal("1.5"), None, Decimal("2.5")], 0.5),
        ([0.0, 5e-324, 0.0], 0.0),
        ([math.nan, 1.0, math.inf, 2.0, -math.inf, 3.0], 0.5),
    ],
)
def test_correlation(values: list[object], expected: float) -> None:
    kind = pa.int64() if all(value is None for value in values) else None
    assert part(values, kind).value == pytest.approx(expected)


@pytest.mark.parametrize("values", [["a", "b"], [b"a"]])
def test_text_has_no_distance(values: list[object]) -> None:
    assert correlation_of(pa.array(values)) is None


def test_distances_that_no_double_holds() -> None:
    assert part([1.7e308, -1.7e308] * 5).value == 0.0


def test_choice_of_indexes() -> None:
    correlations = {"noise": 0.66, "name": None, "level": 0.95, "edge": 0.9}
    assert choose_indexes(correlations, 0.9) == IndexChoice(
        ("noise",), ("level", "edge"), ("name",)
    )
