"""Files of every format become events, or an error that names the place."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from eventide.errors import EventideError, IngestError, SchemaError
from eventide.ingest.files import infer_schema, read_events
from eventide.schema import Schema

SCHEMA = Schema.of({"car": "string", "lane": "int64"})
ROWS = [
    {"ts": 1, "car": "a", "lane": 7},
    {"ts": 2, "car": None, "lane": None},
    {"ts": -3, "car": 'b, "c"\nd', "lane": -9},
]
TABLE = pa.Table.from_pylist(ROWS)


def write_csv(path: Path) -> None:
    pa.csv.write_csv(TABLE, path)


def write_csv_gz(path: Path) -> None:
    write_csv(path.with_suffix(""))
    path.write_bytes(gzip.compress(path.with_suffix("").read_bytes()))


def write_json(path: Path) -> None:
    lines = "\n".join(json.dumps(row) for row in ROWS).encode()
    path.write_bytes(gzip.compress(lines) if path.suffix.lower() == ".gz" else lines)


def write_arrow_stream(path: Path) -> None:
    with pa.ipc.new_stream(str(path), TABLE.schema) as writer:
        writer.write_table(TABLE)


WRITERS: dict[str, Callable[[Path], None]] = {
    "e.parquet": lambda path: pa.parquet.write_table(TABLE, path),
    "e.feather": lambda path: pa.feather.write_feather(TABLE, path),
    "e.arrow": write_arrow_stream,
    "e.ipc": lambda path: pa.feather.write_feather(TABLE, path, compression="uncompressed"),
    "e.CSV": write_csv,
    "e.csv.gz": write_csv_gz,
    "e.jsonl": write_json,
    "e.ndjson": write_json,
    "e.json": write_json,
    "e.jsonl.gz": write_json,
    "E.CSV.GZ": write_csv_gz,
    "E.JSONL.GZ": write_json,
}


def read(path: Path, schema: Schema | None = SCHEMA, ts: str = "ts") -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for events in read_events(path, schema, ts=ts):
        times = events.column("ts").cast(pa.int64())
        found += events.set_column(0, "ts", times).to_pylist()
    return found


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("schema", [SCHEMA, None])
def test_every_format_gives_the_same_events(
    tmp_path: Path, name: str, schema: Schema | None
) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    assert read(path, schema) == ROWS
    assert infer_schema(path) == SCHEMA
    chunks = list(read_events(path, SCHEMA, chunk_rows=2))
    assert [chunk.num_rows for chunk in chunks] == [2, 1]
    assert all(chunk.schema == SCHEMA.arrow.remove(1) for chunk in chunks)


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_cut_short_is_an_error(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) - 9])
    with pytest.raises(EventideError) as caught:
        read(path)
    assert str(path) in caught.value.message


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


GOOD = [
    ("bom.csv", b"\xef\xbb\xbfts,car,lane\n1,a,2\n", [{"ts": 1, "car": "a", "lane": 2}]),
    ("crlf.csv", "ts,car,lane\r\n1,a,2\r\n", [{"ts": 1, "car": "a", "lane": 2}]),
    ("order.csv", "lane,ts,car\n2,1,a\n", [{"ts": 1, "car": "a", "lane": 2}]),
    ("blank.csv", "ts,car,lane\n\n1,a,2\n\n", [{"ts": 1, "car": "a", "lane": 2}]),
    ("spaces.csv", "ts,car,lane\n 1 , a , 2 \n", [{"ts": 1, "car": " a ", "lane": 2}]),
    ("empty.csv", 'ts,car,lane\n1,"",\n', [{"ts": 1, "car": "", "lane": None}]),
    ("na.csv", "ts,car,lane\n1,NA,\n", [{"ts": 1, "car": "NA", "lane": None}]),
    ("header.csv", "ts,car,lane\n", []),
    ("iso.csv", "ts,car,lane\n1970-01-01T00:00:01Z,a,\n5,b,\n", [
        {"ts": 1_000_000, "car": "a", "lane": None}, {"ts": 5, "car": "b", "lane": None},
    ]),
    ("e.jsonl", "", []),
    ("bom.jsonl", b'\xef\xbb\xbf{"ts":1,"car":"a","lane":2}\r\n\r\n', [
        {"ts": 1, "car": "a", "lane": 2},
    ]),
    ("long.csv", f"ts,car,lane\n1,{'a' * 200_000},2\n", [
        {"ts": 1, "car": "a" * 200_000, "lane": 2},
    ]),
    ("iso.jsonl", '{"ts":"1970-01-01T00:00:01Z"}\n{"ts":"1970-01-01T00:00:00.5"}', [
        {"ts": 1_000_000, "car": None, "lane": None}, {"ts": 500_000, "car": None, "lane": None},
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "expected"), GOOD, ids=[case[0] for case in GOOD])
def test_odd_but_good_files_are_read(
    tmp_path: Path, name: str, content: str | bytes, expected: list[dict[str, object]]
) -> None:
    assert read(written(tmp_path, name, content)) == expected


HEAD = "ts,car,lane\n"
# The ten bytes of a header, then what no compressor writes.
DAMAGED_GZIP = gzip.compress(HEAD.encode())[:10] + b"\xff" * 50
BAD = [
    ("fields.csv", HEAD + '1,"a\nb",2\n2,b\n', r"line 4: 2 fields, not 3: '2,b'"),
    ("number.csv", HEAD + '1,"a\nb",2\n2,b,x\n', "line 4, column 'lane': 'x' does not fit int64"),
    ("fraction.csv", HEAD + "1,a,2.5\n", "line 2, column 'lane': '2.5'"),
    ("overflow.csv", HEAD + "1,a,9223372036854775808\n", "line 2, column 'lane': '92233"),
    ("time.csv", HEAD + "1,a,2\nnoon,a,2\n", "line 3, column 'ts': 'noon'"),
    ("no_time.csv", HEAD + "1,a,2\n\n,a,2\n", "line 4, column 'ts': there is no time"),
    ("utf8.csv", HEAD.encode() + b"1,a,1\n2,\xff,2\n", r"line 3: b'\\xff' is not UTF-8"),
    ("names.csv", "ts,caf\xe9\n1,a\n".encode("latin-1"), r"the line of names: b'caf\\xe9'"),
    ("long.csv", f"{HEAD}1,{'a' * 200_000},2\n2,b,x\n", "row 1, column 'lane': 'x'"),
    ("long_fields.csv", f"{HEAD}1,{'a' * 200_000},2\n2,b\n", "Expected 3 columns, got 2"),
    ("empty.csv", "", "empty.csv is empty"),
    ("twice.csv", "ts,car,lane,lane\n1,a,2,3\n", "lane is there twice"),
    ("missing.csv", "ts,car\n1,a\n", "column lane is missing"),
    ("unknown.csv", "ts,car,lane,x\n1,a,2,3\n", "no attribute 'x'"),
    ("seq.csv", "ts,_seq,car,lane\n1,1,a,2\n", "numbers by itself"),
    ("no_ts.csv", "time,car,lane\n1,a,2\n", "no column 'ts', which should hold the time"),
    ("open.csv", HEAD + '1,a,2\n2,"b,3\n3,c,4\n', "line 3: a quote that opens here is not closed"),
    ("open_last.csv", 'ts,lane,car\n1,2,a\n2,3,"b\n3,4,c\n', "line 3: a quote that opens here"),
    ("open_end.csv", 'ts,lane,car\n1,2,a\n2,3,"b', "line 3: a quote that opens here"),
    ("open_name.csv", 'ts,lane,"car\n1,2,a\n2,3,b\n', "line 1: a quote that opens here"),
    ("open_twice.csv", 'ts,lane,car\n1,2,"a\n2,3,"b\n3,4,c\n', "line 2: a quote that opens"),
    (
        "open_later.csv",
        HEAD + '1,"x"y,1\n2,"open,2\n3,"z",3\n4,w",4\n',
        "line 3: a quote that opens here",
    ),
    ("open_cr.csv", 'ts,lane,car\r1,2,"a\r2,3,"b\r3,4,c\r', "line 2: a quote that opens"),
    ("deep.jsonl", f'{{"ts":1}}\n{{"ts":{"[" * 100_000}1{"]" * 100_000}}}\n', "line 2: nested too"),
    ("gzip.csv.gz", b"ts,car,lane\n", "cannot read .*gzip.csv.gz"),
    ("damaged.csv.gz", DAMAGED_GZIP, "cannot read .*damaged.csv.gz"),
    ("damaged.jsonl.gz", DAMAGED_GZIP, "cannot read .*damaged.jsonl.gz"),
    ("syntax.jsonl", '{"ts":1}\n\n{"ts":2,}\n', "line 3: not JSON"),
    ("array.json", '[{"ts":1},\n{"ts":2}]\n', "line 1: not JSON"),
    ("array2.json", '[{"ts":1}]\n', "line 1: not an object"),
    ("type.jsonl", '{"ts":1}\n{"ts":2,"lane":"7"}\n', "line 2, column 'lane': '7' does not fit"),
    ("fraction.jsonl", '{"ts":1}\n{"ts":2,"lane":7.5}\n', "line 2, column 'lane': 7.5"),
    ("big.jsonl", '{"ts":1}\n{"ts":2,"lane":1e99}\n', "line 2, column 'lane': 1e"),
    ("nested.jsonl", '{"ts":1}\n{"ts":2,"lane":[7]}\n', r"line 2, column 'lane': \[7\]"),
    ("object.jsonl", '{"ts":1}\n{"ts":2,"lane":{"x":7}}\n', r"line 2, column 'lane': {'x': 7}"),
    ("times.jsonl", '{"ts":1}\n{"ts":"2024-01-01"}\n', "line 2, column 'ts': '2024-01-01'"),
    ("time.jsonl", '{"ts":"2024-01-01"}\n\n{"ts":"noon"}\n', "line 3, column 'ts': 'noon'"),
    ("no_time.jsonl", '{"ts":1}\n\n{"car":"a"}\n', "line 3, column 'ts': there is no time"),
    (
        "unknown.jsonl",
        '{"ts":1}\n{"ts":2,"colour":"red"}\n',
        "line 2: the stream has no attribute 'colour'",
    ),
    ("guess.jsonl", '{"ts":1}\n{"ts":2,"Lane":7}\n', "line 2: the stream has no attribute 'Lane'"),
    ("float_time.jsonl", '{"ts":1.5}\n', "line 1, column 'ts': 1.5 does not fit timestamp"),
    ("twice.jsonl", '{"ts":1}\n{"ts":2,"ts":3}\n', "line 2: key ts is there twice"),
    ("utf8.jsonl", b'{"ts":1}\n{"ts":2,"car":"\xff"}\n', r"line 2, column 'car': b'\\xff'"),
    ("gzip.jsonl.gz", b'{"ts":1}\n', "cannot read .*gzip.jsonl.gz"),
    ("e.parquet", b"PAR1", "cannot read .*e.parquet"),
    ("e.arrow", b"", "cannot read .*e.arrow"),
    ("e.txt", b"", "cannot tell the format"),
]


@pytest.mark.parametrize(("name", "content", "message"), BAD, ids=[case[0] for case in BAD])
def test_bad_files_are_refused_with_the_place(
    tmp_path: Path, name: str, content: str | bytes, message: str
) -> None:
    path = written(tmp_path, name, content)
    with pytest.raises(EventideError, match=message) as caught:
        read(path)
    assert isinstance(caught.value, (IngestError, SchemaError))
    assert str(path) in caught.value.message
    assert caught.value.hint is not None


def test_a_quote_is_not_closed_behind_one_that_is(tmp_path: Path) -> None:
    path = written(tmp_path, "e.csv", 'ts,car,owner\n1,"x"y,"open\n3,c,"z"\n4,w,w"\n')
    with pytest.raises(IngestError, match="line 2: a quote that opens here"):
        read(path, None)


def test_text_behind_a_closing_quote_swallows_nothing(tmp_path: Path) -> None:
    limit = csv.field_size_limit()
    long = "a\n" * limit
    path = written(tmp_path, "e.csv", HEAD + f'1,"x"y,1\n2,"{long}",2\n3,"",3\n4,"""q""\n",4\n')
    with patch("csv.field_size_limit", side_effect=AssertionError("the limit is the process's")):
        assert [row["car"] for row in read(path)] == ["xy", long, "", '"q"\n']


def test_times_that_are_null_at_first_may_be_numbers_or_text(tmp_path: Path) -> None:
    schema = Schema.of({"seen": "timestamp", "left": "timestamp"})
    lines = ['{"ts": 1, "seen": null}', '{"ts": 2, "seen": 5}', '{"ts": 3, "left": "1970-01-01"}']
    rows = read(written(tmp_path, "e.jsonl", "\n".join(lines)), schema)
    start = datetime(1970, 1, 1)
    assert [row["seen"] for row in rows] == [None, start.replace(microsecond=5), None]
    assert [row["left"] for row in rows] == [None, None, start]


def test_a_change_in_a_later_block_is_found(tmp_path: Path) -> None:
    lines = [json.dumps({"ts": ts, "car": "x" * 50, "lane": ts}) for ts in range(200)]
    csv = [f"{ts},{'x' * 50},{ts}" for ts in range(200)]
    with (
        patch("eventide.ingest.json_lines.BLOCK_BYTES", 1000),
        patch("eventide.ingest.csv_text.BLOCK_BYTES", 1000),
    ):
        for bad, message in [
            ('{"ts": 1, "lane": "x"}', "line 201, column 'lane': 'x'"),
            ('{"ts": 1, "colour": 1}', "line 201.*no attribute 'colour'"),
        ]:
            path = written(tmp_path, "e.jsonl", "\n".join([*lines, bad]))
            with pytest.raises(IngestError, match=message):
                read(path, None)
        path = written(tmp_path, "e.csv", "\n".join(["ts,car,lane", *csv, "1,a,x"]))
        with pytest.raises(IngestError, match="line 202, column 'lane': 'x'"):
            read(path, None)
        path = written(tmp_path, "e.csv", "\n".join(["ts,car,lane", *csv, "1,a"]))
        with pytest.raises(IngestError, match="line 202: 2 fields"):
            read(path, None)


def test_rows_of_columnar_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    pa.parquet.write_table(pa.table({"ts": [1, 2, 3], "lane": [1.0, 2.0, 2.5]}), path)
    with pytest.raises(IngestError, match=r"row 2, column 'lane': 2\.5 does not fit int64"):
        list(read_events(path, Schema.of({"lane": "int64"}), chunk_rows=2))


def test_the_time_can_have_another_name(tmp_path: Path) -> None:
    path = written(tmp_path, "e.csv", "time,car,lane\n1,a,2\n")
    assert read(path, ts="time") == [{"ts": 1, "car": "a", "lane": 2}]
    assert infer_schema(path, ts="time") == SCHEMA
    path = written(tmp_path, "e.jsonl", '{"time":1,"car":"a","lane":2}')
    assert read(path, None, ts="time") == [{"ts": 1, "car": "a", "lane": 2}]
    path = written(tmp_path, "both.csv", "time,ts\n1,2\n")
    with pytest.raises(SchemaError, match="a column 'ts' as well"):
        infer_schema(path, ts="time")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("e.jsonl", "", "is empty"),
        ("e.jsonl", '{"ts":1,"a":1}\n\n{"ts":1,"a":"x"}', "line 3"),
        ("e.jsonl", '{"ts":1,"a":[1]}', "'a' has type list"),
        ("e.csv", "ts,a,a\n1,2,3\n", "there twice"),
        ("e.csv", "ts,a\n1,2,3\n", "line 2: 3 fields"),
        ("e.csv", "time,a\n1,2\n", "no column 'ts'"),
    ],
)
def test_a_schema_that_cannot_be_inferred_is_an_error(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    with pytest.raises(EventideError, match=message):
        infer_schema(written(tmp_path, name, content))


def test_types_are_inferred(tmp_path: Path) -> None:
    head = "ts,i,f,s,b,t,d,nothing\n"
    path = written(tmp_path, "e.csv", head + "1,1,1.5,x,true,2024-01-01T00:00:00,2024-01-01,\n")
    assert infer_schema(path).to_json() == {
        "i": "int64",
        "f": "float64",
        "s": "string",
        "b": "bool",
        "t": "timestamp",
        "d": "timestamp",
        "nothing": "string",
    }
    assert len(read(path, None)) == 1


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IngestError, match="there is no file"):
        read(tmp_path / "nothing.csv")
    with pytest.raises(IngestError, match="is a folder"):
        read(tmp_path)
