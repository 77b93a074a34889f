"""Rows in files: what is written, and that it can be read back."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from eventide.ingest.files import read_events
from eventide.schema import Schema
from eventide.sinks.files import WRITERS, Writer, write_csv, write_json_lines, write_parquet

ODD = pa.table(
    {
        "text": ["", None, 'a "quote"', "a,b", "two\nlines", " spaced"],
        "real": [1.0, float("nan"), None, 2.5, float("-inf"), 1e300],
        "flag": [True, None, False, True, True, False],
        "time": pa.array([0, 1, None, -62_135_596_800_000_000, 1_500_000, 0], pa.timestamp("us")),
        "price": pa.array([Decimal("1.50"), *[None] * 5], pa.decimal128(10, 2)),
        "bytes": pa.array([b"\x00\xff", None, b"", b"a", b"b", b"c"]),
        "whole": [1, None, -3, 2**62, 0, 5],
        "nothing": pa.nulls(6),
        "gap": pa.array([1_000_000, *[None] * 5], pa.duration("us")),
    }
)


def written(writer: Writer, table: pa.Table) -> bytes:
    out = io.BytesIO()
    writer(table, out)
    return out.getvalue()


def test_csv_quotes_what_needs_quotes_and_nothing_else() -> None:
    lines = written(write_csv, ODD).decode().split("\n")
    assert lines[:6] == [
        "text,real,flag,time,price,bytes,whole,nothing,gap",
        '"",1.0,true,1970-01-01T00:00:00Z,1.50,00ff,1,,1000000',
        ",nan,,1970-01-01T00:00:00.000001Z,,,,,",
        '"a ""quote""",,false,,,,-3,,',
        '"a,b",2.5,true,0001-01-01T00:00:00Z,,61,4611686018427387904,,',
        '"two',
    ]


def test_json_lines_are_json_that_keeps_every_value() -> None:
    first, second, third, fourth, fifth, _ = map(
        json.loads, written(write_json_lines, ODD).decode().splitlines()
    )
    assert first == {
        "text": "",
        "real": 1.0,
        "flag": True,
        "time": "1970-01-01T00:00:00Z",
        "price": "1.50",
        "bytes": "00ff",
        "whole": 1,
        "nothing": None,
        "gap": 1_000_000,
    }
    assert (second["text"], second["real"], second["flag"]) == (None, "NaN", None)
    assert (third["text"], third["real"], third["bytes"]) == ('a "quote"', None, "")
    assert fourth["whole"] == 2**62
    assert (fifth["text"], fifth["real"], fifth["time"]) == (
        "two\nlines",
        "-Infinity",
        "1970-01-01T00:00:01.500000Z",
    )


def test_parquet_keeps_types_and_makes_times_utc() -> None:
    back = pyarrow.parquet.read_table(io.BytesIO(written(write_parquet, ODD)))
    assert back.schema.field("time").type == pa.timestamp("us", "UTC")
    assert back.schema.field("price").type == pa.decimal128(10, 2)
    assert back["time"][0].as_py() == datetime(1970, 1, 1, tzinfo=UTC)
    assert back["bytes"].to_pylist() == ODD["bytes"].to_pylist()


@pytest.mark.parametrize("writer", WRITERS.values(), ids=WRITERS)
def test_no_rows_make_a_valid_file(writer: Writer) -> None:
    data = written(writer, ODD.slice(0, 0))
    if writer is write_csv:
        assert data.count(b"\n") == 1
    elif writer is write_json_lines:
        assert data == b""
    else:
        assert pyarrow.parquet.read_table(io.BytesIO(data)).num_rows == 0


@pytest.mark.parametrize("form", WRITERS)
def test_ingest_reads_back_what_was_written(form: str, tmp_path: Path) -> None:
    events = pa.table(
        {
            "ts": pa.array([0, 1_500_000, 2_000_000], pa.timestamp("us")),
            "name": ["a", None, 'say "so", please\n'],
            "speed": [1.0, None, 0.1 + 0.2],
            "count": [1, None, 2**62],
            "at": pa.array([1, None, 2], pa.timestamp("us")),
        }
    )
    path = tmp_path / f"events.{form}"
    with path.open("wb") as out:
        WRITERS[form](events, out)
    back = pa.concat_tables(read_events(path, Schema.from_arrow(events.schema)))
    assert back.to_pylist() == events.to_pylist()


def test_many_batches_of_lines() -> None:
    table = pa.table({"n": list(range(120_001))})
    assert written(write_json_lines, table).count(b"\n") == 120_001
    assert written(write_csv, table).count(b"\n") == 120_002
