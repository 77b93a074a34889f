"""Columns of users that are called as something of ours: theirs are kept, or refused by name."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import eventide as ev
from eventide.errors import SchemaError

TIMES = [0, 1_000_000, 2_000_000, 3_000_000]


def test_seq_is_an_ordinary_attribute(tmp_path: Path) -> None:
    db = ev.open(tmp_path / "db")
    stream = db.create_stream("s", {"seq": "string"})
    stream.append([{"ts": ts, "seq": text} for ts, text in zip(TIMES, "dcba", strict=True)])
    again = ev.open(tmp_path / "db")
    assert again.sql("SELECT * FROM s").to_arrow().column_names == ["ts", "seq"]
    rows = again.sql("SELECT seq, _seq FROM s ORDER BY seq LIMIT 2").rows()
    assert rows == [{"seq": "a", "_seq": 3}, {"seq": "b", "_seq": 2}]


@pytest.mark.parametrize("name", ["_seq", "_SEQ", "ts", "Ts"])
def test_the_names_of_every_event_are_no_attributes(name: str, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="clashes with") as caught:
        ev.open(tmp_path / "db").create_stream("s", {name: "string"})
    assert caught.value.hint is not None
    assert "ts and _seq are always there" in caught.value.hint


def test_a_table_may_number_its_rows_itself() -> None:
    """So what came out of a query can go into another one."""
    table = pa.table({"ts": [5, 5], "_seq": [1, 0], "seq": ["b", "a"]})
    text = "SELECT FIRST(seq) AS first FROM s GROUP BY TUMBLE(ts, INTERVAL '1' SECOND)"
    assert ev.sql(text, s=table).rows() == [{"first": "a"}]


def test_a_number_of_rows_that_is_none_is_refused() -> None:
    with pytest.raises(SchemaError, match="column '_seq' has type string") as caught:
        ev.sql("SELECT x FROM s", s=pa.table({"ts": [0], "_seq": ["a"], "x": [1]}))
    assert caught.value.hint == "drop it, or rename it: 'seq' is free"
