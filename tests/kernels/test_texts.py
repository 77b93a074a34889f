"""Short texts as numbers, against a twin that uses a dictionary."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.operators import columns
from eventide.operators.columns import encode_column, short_texts
from tests.naive.texts import numbered

ALIKE = st.text(st.sampled_from("ab\0é"), max_size=7)
TEXTS = st.one_of(ALIKE, ALIKE.map(lambda text: text + "\0"), st.text(max_size=3))


@settings(deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=60), st.integers(0, 59))
def test_texts_are_numbered_as_by_the_twin(texts: list[str], begin: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "MANY_ROWS", 1)
        column = pa.array(texts, pa.string())[min(begin, len(texts) - 1) :]
        found = short_texts(column)
        codes, first = numbered(column.to_pylist())
        assert found is not None
        assert found[0].tolist() == codes
        assert found[1].tolist() == first


@pytest.mark.parametrize("length", range(16))
def test_every_byte_counts(length: int) -> None:
    texts = ["x" * length] + [
        "x" * place + "y" + "x" * (length - place - 1) for place in range(length)
    ]
    found = short_texts(pa.array(texts * 300 + ["x"] * 4096))
    assert found is not None
    assert found[0].tolist() == numbered(texts * 300 + ["x"] * 4096)[0]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", None] * 4096),
        pa.array(["a"] * 5000 + ["sixteen bytes, so"]),
        pa.array([str(number) for number in range(5000)]),
        pa.array(["a"]),
        pa.array([1] * 5000),
    ],
    ids=["nulls", "long", "many", "few rows", "numbers"],
)
def test_other_columns_are_numbered_by_arrow(column: pa.Array) -> None:
    assert short_texts(column) is None
    codes, count = encode_column(column)
    assert count == len(column.unique())
    assert column.unique().take(pa.array(codes)).equals(column)


def test_empty_texts_need_no_bytes() -> None:
    found = short_texts(pa.array([""] * 5000))
    assert found is not None
    assert np.all(found[0] == 0)
