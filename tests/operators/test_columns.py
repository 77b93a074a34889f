"""Rows that pass, and columns that hold too much: an error of ours."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eventide as ev
from eventide.errors import EvaluationError
from eventide.operators.columns import at_places, encode_column, results_that_fit, rows_where


def test_other_errors_of_arrow_stay_what_they_are() -> None:
    with pytest.raises(pa.ArrowInvalid, match="Failed to parse"), results_that_fit():
        pa.array(["x"]).cast(pa.int64())


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.note FROM x [RANGE 1 HOUR] a JOIN y [RANGE 1 HOUR] b ON a.k = b.k",
        """SELECT * FROM x MATCH_RECOGNIZE (
             MEASURES A.note AS note PATTERN (A B) STRATEGY skip_till_any)""",
    ],
    ids=["join", "pattern"],
)
def test_more_text_than_a_column_holds_is_an_error_of_ours(text: str) -> None:
    count = 80
    rows = pa.table(
        {"ts": np.arange(count) * 1000, "k": [1] * count, "note": ["·" * 500_000] * count}
    )
    with pytest.raises(EvaluationError, match="more than 2 GiB of text") as refused:
        ev.sql(text, x=rows, y=rows.select(["ts", "k"])).to_arrow()
    assert refused.value.hint is not None


def test_texts_inside_a_longer_column_are_numbered_where_they_lie() -> None:
    texts = [f"{n % 7}{'é' * (n % 5)}" for n in range(20_000)]
    column = pa.array(texts)
    for start, stop in ((0, 20_000), (0, 9_000), (5_001, 15_001), (12_345, 20_000)):
        codes, count = encode_column(column.slice(start, stop - start))
        known = {text: number for number, text in enumerate(dict.fromkeys(texts[start:stop]))}
        assert count == len(known)
        assert codes.tolist() == [known[text] for text in texts[start:stop]]


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99, 1.0])
def test_rows_that_pass_are_those_that_arrow_leaves(share: float) -> None:
    rng = np.random.default_rng(3)
    numbers = pa.array(rng.integers(0, 9, 10_000), mask=rng.random(10_000) < 0.1)
    rows = pa.record_batch({"x": numbers, "label": numbers.cast(pa.string())})
    for start, stop in ((0, 10_000), (3, 9_997), (64, 9_984), (60, 9_000), (4_000, 4_009)):
        passed = pa.array(rng.random(stop + 50) < share).slice(start, stop - start)
        some = rows.slice(start, stop - start)
        assert rows_where(passed, some).equals(some.filter(passed))


@settings(deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.text("aé", max_size=40)), min_size=1, max_size=20),
    st.integers(0, 19),
    st.lists(st.integers(0, 19), max_size=40),
)
def test_values_at_places_are_those_that_arrow_takes(
    texts: list[str | None], begin: int, places: list[int]
) -> None:
    for values in (texts, ["" if text is None else text for text in texts]):
        column = pa.array(values, pa.string()).slice(min(begin, len(values) - 1))
        chosen = np.array([place % len(column) for place in places], np.int64)
        found = at_places(column, chosen)
        found.validate(full=True)
        assert found.equals(column.take(pa.array(chosen)))
