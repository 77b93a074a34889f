"""The rows of a query in all the forms that readers can ask for."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa

from eventide.api.result import Result

RESULT = Result(pa.table({"car": ["a", "b"], "n": [1, 2]}))


def test_a_result_becomes_what_the_reader_likes() -> None:
    rows = [{"car": "a", "n": 1}, {"car": "b", "n": 2}]
    assert list(RESULT) == RESULT.rows() == rows
    assert RESULT.columns == ["car", "n"]
    assert isinstance(RESULT.to_pandas(), pd.DataFrame)
    assert RESULT.to_pandas().to_dict("records") == rows
    assert isinstance(RESULT.to_polars(), pl.DataFrame)
    assert RESULT.to_polars().to_dicts() == rows
    assert pa.table(RESULT).equals(RESULT.to_arrow())


def test_a_result_shows_itself_in_a_notebook() -> None:
    assert "<td>a</td>" in RESULT._repr_html_()
