"""Tables, frames and dicts become events, or an error that names the value."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from unittest.mock import patch

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import EventideError, IngestError, SchemaError
from eventide.ingest.coerce import to_events
from eventide.schema import MAX_TS_US, MIN_TS_US, Schema

SCHEMA = Schema.of({"car": "string", "speed": "float64", "lane": "int64"})
EVERY_TYPE = Schema.of(
    {
        "b": "bool",
        "i": "int64",
        "f": "float64",
        "s": "string",
        "t": "timestamp",
        "d": "decimal(6,2)",
        "x": "binary",
    }
)
NEW_YEAR = dt.datetime(2024, 1, 1)
PLUS_TWO = dt.timezone(dt.timedelta(hours=2))
ROWS = [
    {"ts": NEW_YEAR, "car": "a", "speed": 1.5, "lane": 1},
    {"ts": NEW_YEAR, "car": None, "speed": None, "lane": None},
]


def event_schema(schema: Schema) -> pa.Schema:
    return schema.arrow.remove(1)


@pytest.mark.parametrize(
    "data",
    [
        pa.Table.from_pylist(ROWS),
        pa.RecordBatch.from_pylist(ROWS),
        pa.Table.from_pylist(ROWS).select(["lane", "ts", "speed", "car"]),
        pa.Table.from_pylist(ROWS).to_reader(),
        pd.DataFrame(ROWS),
        pd.DataFrame(ROWS, index=[7, 7]),
        pd.DataFrame(ROWS).astype({"car": "category"}),
        pd.DataFrame(ROWS).astype({"car": "string[pyarrow]", "lane": "Int64"}),
        pd.DataFrame(ROWS).astype({"lane": "int64[pyarrow]", "ts": "timestamp[ns][pyarrow]"}),
        pd.DataFrame(ROWS).astype({"ts": object}),
        pl.DataFrame(ROWS),
        pl.DataFrame(ROWS).with_columns(pl.col("car").cast(pl.Categorical)),
        pl.DataFrame(ROWS).with_columns(pl.col("car").cast(pl.Enum(["a", "b"]))),
        ROWS,
        [ROWS[0], {"ts": NEW_YEAR}],
    ],
    ids=lambda data: type(data).__name__,
)
def test_all_kinds_of_data_give_the_same_events(data: object) -> None:
    events = to_events(data, SCHEMA)
    assert events.schema == event_schema(SCHEMA)
    assert events.to_pylist() == ROWS


ODD_ROWS = st.fixed_dictionaries(
    {
        "ts": st.datetimes()
        | st.integers(-(10**12), 10**12)
        | st.just(NEW_YEAR.replace(tzinfo=PLUS_TWO))
        | st.none(),
        "text": st.text() | st.sampled_from(["\ud800", b"a", None]),
        "number": st.floats() | st.integers(2**53 - 2, 2**53 + 2) | st.booleans() | st.none(),
        "whole": st.integers(-(2**63) - 1, 2**63) | st.just(1.0) | st.just(1.5) | st.none(),
        "flag": st.booleans() | st.sampled_from([0, None]),
    }
)
ODD_SCHEMA = Schema.of({"text": "string", "number": "float64", "whole": "int64", "flag": "bool"})


def outcome(data: object) -> object:
    """Return the events, or the error."""
    try:
        return repr(to_events(data, ODD_SCHEMA).to_pydict())
    except (SchemaError, IngestError) as error:
        return type(error), str(error)


@settings(deadline=None)
@given(st.lists(ODD_ROWS, min_size=1, max_size=4))
def test_what_is_converted_at_once_is_what_step_by_step_would_give(
    rows: list[dict[str, object]],
) -> None:
    at_once = outcome(rows)
    with patch("eventide.ingest.coerce.plain_column", return_value=None):
        assert outcome(rows) == at_once


EXACT = pa.table({"ts": [NEW_YEAR], "text": ["ä"], "number": [1.0], "whole": [1], "flag": [True]})
EXACT = EXACT.cast(ODD_SCHEMA.event_arrow)
OUT_OF_RANGE = pa.array([2**62], pa.int64()).cast(pa.timestamp("us"))
NO_TEXT = pa.Array.from_buffers(
    pa.string(), 1, [None, pa.array([0, 1], pa.int32()).buffers()[1], pa.py_buffer(b"\xff")]
)


@pytest.mark.parametrize(
    "table",
    [
        EXACT,
        EXACT.to_batches()[0],
        EXACT.slice(0, 0),
        pa.concat_tables([EXACT, EXACT]),
        pa.concat_tables([EXACT, EXACT]).combine_chunks().slice(1),
        EXACT.replace_schema_metadata({"from": "elsewhere"}),
        EXACT.select([1, 0, 2, 3, 4]),
        EXACT.set_column(0, "ts", pa.nulls(1, pa.timestamp("us"))),
        EXACT.set_column(0, "ts", OUT_OF_RANGE),
        EXACT.set_column(1, "text", NO_TEXT),
        EXACT.set_column(1, "text", pa.nulls(1, pa.string())),
    ],
)
def test_a_table_that_is_taken_as_it_is_is_what_converting_would_give(
    table: pa.Table | pa.RecordBatch,
) -> None:
    at_once = outcome(table)
    with patch("eventide.ingest.coerce.is_exact", return_value=False):
        assert outcome(table) == at_once
    if isinstance(at_once, str):
        assert to_events(table, ODD_SCHEMA).schema.metadata is None


def test_one_dict_is_one_event() -> None:
    assert to_events(ROWS[0], SCHEMA).to_pylist() == ROWS[:1]
    assert to_events([], SCHEMA).schema == event_schema(SCHEMA)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, dt.datetime(1970, 1, 1, microsecond=1)),
        (NEW_YEAR.replace(tzinfo=PLUS_TWO), dt.datetime(2023, 12, 31, 22)),
        (dt.date(2024, 1, 1), NEW_YEAR),
        (dt.date(1, 1, 1), dt.datetime.min),
        (dt.datetime.max, dt.datetime.max),
        ("2024-01-01", NEW_YEAR),
        ("2024-01-01T00:00Z", NEW_YEAR),
        (" 2024-01-01 02:00:00+02:00 ", NEW_YEAR),
        ("2024-01-01T02:00:00+0200", NEW_YEAR),
        ("2024-01-01T00:00:00.1234569", NEW_YEAR.replace(microsecond=123456)),
        (pa.scalar(-1, pa.timestamp("ns")), dt.datetime(1969, 12, 31, 23, 59, 59, 999999)),
        (pa.scalar(1, pa.timestamp("s", "Asia/Tokyo")), dt.datetime(1970, 1, 1, 0, 0, 1)),
        (pa.scalar(1, pa.timestamp("ms")), dt.datetime(1970, 1, 1, microsecond=1000)),
        (pa.scalar(1, pa.date32()), dt.datetime(1970, 1, 2)),
    ],
    ids=str,
)
def test_times_become_utc_microseconds(value: object, expected: dt.datetime) -> None:
    schema = Schema.of({})
    data: object = {"ts": value}
    if isinstance(value, pa.Scalar):
        data = pa.table({"ts": pa.array([value.value], value.type)})
    assert to_events(data, schema).column("ts").to_pylist() == [expected]


def test_times_of_several_kinds_can_stand_together() -> None:
    rows = [{"ts": 0}, {"ts": NEW_YEAR}, {"ts": "2024-01-01"}, {"ts": dt.date(2024, 1, 1)}]
    times = to_events(rows, Schema.of({})).column("ts").to_pylist()
    assert times == [dt.datetime(1970, 1, 1), NEW_YEAR, NEW_YEAR, NEW_YEAR]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("i", 3.0, 3),
        ("i", Decimal("3.00"), 3),
        ("f", 3, 3.0),
        ("f", Decimal("1.5"), 1.5),
        ("d", 3, Decimal("3.00")),
        ("d", Decimal("1.5"), Decimal("1.50")),
        ("t", "2024-01-01", NEW_YEAR),
        ("x", b"\xff", b"\xff"),
        ("s", "", ""),
    ],
)
def test_values_that_fit_are_converted(name: str, value: object, expected: object) -> None:
    events = to_events([{"ts": 1, name: value}, {"ts": 2}], EVERY_TYPE)
    assert events.schema == event_schema(EVERY_TYPE)
    assert events.column(name).to_pylist() == [expected, None]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ts", "yesterday"),
        ("ts", "2024-13-01"),
        ("ts", 1.5),
        ("ts", True),
        ("ts", MAX_TS_US + 1),
        ("ts", MIN_TS_US - 1),
        ("b", 1),
        ("i", 1.5),
        ("i", float("inf")),
        ("i", 2**63),
        ("i", 2**70),
        ("i", "1"),
        ("i", True),
        ("f", 2**53 + 1),
        ("f", "1.5"),
        ("s", 1),
        ("s", b"bytes"),
        ("s", "\ud800"),
        ("t", "soon"),
        ("d", Decimal("1.555")),
        ("d", Decimal("12345")),
        ("d", 12345),
        ("d", 1.5),
        ("x", "text"),
    ],
)
@pytest.mark.parametrize("mixed", [False, True])
def test_values_that_do_not_fit_are_named(name: str, value: object, mixed: bool) -> None:
    good: dict[str, object] = {"ts": 0} if mixed else {"ts": value if name == "ts" else 0}
    rows = [good, good, {"ts": 0, name: value}]
    row = 0 if name == "ts" and not mixed else 2
    with pytest.raises(IngestError) as caught:
        to_events(rows, EVERY_TYPE)
    assert caught.value.message.startswith(f"row {row}, column {name!r}: {value!r} does not fit")
    assert caught.value.hint is not None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pa.table({"ts": [1, 2], "lane": [1.0, 2.5]}), "row 1, column 'lane': 2.5"),
        (pa.table({"ts": [1], "lane": pa.array([2**63], pa.uint64())}), "row 0, column 'lane'"),
        (pa.table({"ts": [1], "lane": ["1"]}), "row 0, column 'lane': '1' does not fit int64"),
        (pa.table({"ts": [1], "lane": [[1]]}), r"row 0, column 'lane': \[1\]"),
        (pd.DataFrame({"ts": [1, 2], "lane": [1, "x"]}), "row 1, column 'lane': 'x'"),
        (pl.DataFrame({"ts": [1, None], "lane": [1, 2]}), "row 1, column 'ts': null"),
        (pa.table({"ts": pa.array([2**60], pa.timestamp("s")), "lane": [1]}), "row 0, column 'ts'"),
        ("ts,lane", "cannot read events from str"),
        (42, "cannot read events from int"),
        ([1], "row 0 is int"),
    ],
)
def test_frames_that_do_not_fit_are_refused(data: object, message: str) -> None:
    with pytest.raises(IngestError, match=message):
        to_events(data, Schema.of({"lane": "int64"}))


def test_text_that_is_not_utf8_is_refused() -> None:
    broken = pa.array([b"ok", b"\xff"]).view(pa.string())
    with pytest.raises(IngestError, match=r"row 1, column 's': b'\\xff'"):
        to_events(pa.table({"ts": [1, 2], "s": broken}), Schema.of({"s": "string"}))


@pytest.mark.parametrize("bad", [b"\xff", "é".encode()[:1]])
def test_text_is_checked_part_by_part(bad: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventide.ingest.convert.CHECKED_AT_ONCE", 3)
    good, schema = [b"ok"] * 10 + ["é".encode()], Schema.of({"s": "string"})
    for texts in ([*good, bad], [bad, *good], [*good[:4], bad, *good]):
        whole = pa.table({"ts": range(len(texts)), "s": pa.array(texts).view(pa.string())})
        with pytest.raises(IngestError, match=f"row {texts.index(bad)}, column 's'"):
            to_events(whole, schema)
    fine = pa.table({"ts": range(len(good)), "s": pa.array(good).view(pa.string())})
    assert to_events(fine, schema).num_rows == len(good)


@pytest.mark.parametrize(
    ("names", "message", "hint"),
    [
        (["ts", "lane"], "column car, speed is missing", "the columns are ts, lane"),
        (["ts", "car", "Speed", "lane"], "no attribute 'Speed'", "did you mean 'speed'"),
        (["ts", "car", "speed", "lane", "_seq"], "numbers by itself", "drop the column"),
        (["ts", "car", "speed", "lane", "lane"], "lane is there twice", "a name of its own"),
    ],
)
def test_columns_that_do_not_fit_are_refused(names: list[str], message: str, hint: str) -> None:
    table = pa.table([pa.array([1])] * len(names), names=names)
    with pytest.raises(SchemaError, match=message) as caught:
        to_events(table, SCHEMA)
    assert caught.value.hint is not None
    assert hint in caught.value.hint


def test_unknown_keys_of_dicts_are_refused() -> None:
    with pytest.raises(SchemaError, match="no attribute 'sped'"):
        to_events([{"ts": 1}, {"ts": 2, "sped": 1}], SCHEMA)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20))
def test_nanoseconds_are_cut_towards_the_past(counts: list[int]) -> None:
    table = pa.table({"ts": pa.array(counts, pa.timestamp("ns"))})
    found = to_events(table, Schema.of({})).column("ts").cast(pa.int64()).to_pylist()
    assert found == [count // 1000 for count in counts]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats() | st.integers(-(2**64), 2**64) | st.none(), max_size=12))
def test_whole_numbers_arrive_as_they_were_or_not_at_all(values: list[float | None]) -> None:
    rows = [{"ts": 0, "lane": value} for value in values]
    fits = [value is None or is_whole(value) for value in values]
    try:
        found = to_events(rows, Schema.of({"lane": "int64"})).column("lane").to_pylist()
    except EventideError:
        assert not all(fits)
    else:
        assert found == values


def is_whole(value: float) -> bool:
    return value == value // 1 and -(2**63) <= value < 2**63
