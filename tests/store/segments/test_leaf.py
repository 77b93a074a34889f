"""Leaves come back bit for bit, or not at all."""

from __future__ import annotations

import contextlib
import math
import struct
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, get_args

import google_crc32c
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.store.segments import encodings
from eventide.store.segments.leaf import (
    ENTRY,
    HEADER,
    Codec,
    DamagedLeafError,
    decode_leaf,
    encode_leaf,
    read_directory,
)

CODECS: tuple[Codec, ...] = get_args(Codec)
INT64 = st.integers(-(2**63), 2**63 - 1)
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int64(): INT64 | st.integers(-3, 300) | st.sampled_from([-(2**63), 2**63 - 1, 10**12]),
    pa.float64(): st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 1.5]),
    pa.string(): st.text() | st.sampled_from(["", "a", "ü" * 300]),
    pa.timestamp("us"): INT64.map(lambda value: pa.scalar(value, pa.timestamp("us"))),
    pa.decimal128(12, 2): st.decimals(-(10**9), 10**9, places=2),
    pa.decimal128(38, 0): st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal),
    pa.binary(): st.binary() | st.sampled_from([b"\xff\xfe", b""]),
}


def leaf_of(rows: pa.RecordBatch, codec: Codec = "lz4") -> pa.Buffer:
    pieces = encode_leaf(rows, codec)
    payload = b"".join(memoryview(piece) for piece in pieces)
    assert len(payload) % 8 == 0
    return pa.py_buffer(payload)


def returned(rows: pa.RecordBatch, codec: Codec = "lz4") -> pa.RecordBatch:
    payload = leaf_of(rows, codec)
    assert read_directory(payload)[1] == rows.num_rows
    result = decode_leaf(payload, rows.schema, rows.schema.names)
    result.validate(full=True)
    return result


def entry_of(payload: pa.Buffer, column: int = 0) -> tuple[int, ...]:
    return ENTRY.unpack_from(payload, HEADER.size + column * ENTRY.size)


def encoding_of(values: pa.Array) -> tuple[int, int]:
    """Return the encoding of a column and its width; the column has to come back."""
    rows = batch(values)
    for codec in CODECS:
        assert returned(rows, codec).equals(rows)
    entry = entry_of(leaf_of(rows))
    return entry[3], entry[5]


def batch(*columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns), [f"c{i}" for i in range(len(columns))])


@st.composite
def slices(draw: st.DrawFn) -> pa.RecordBatch:
    """Some columns of every type, with nulls, cut out of longer ones."""
    rows = draw(st.sampled_from([0, 1, 2, 7, 9, 40]))
    before, after = draw(st.integers(0, 11)), draw(st.integers(0, 3))
    columns = []
    for kind, values in VALUES.items():
        length = before + rows + after
        some = draw(st.lists(st.none() | values, min_size=1, max_size=8))
        picked = draw(st.lists(st.sampled_from(some), min_size=length, max_size=length))
        columns.append(pa.array(picked, kind))
    return batch(*columns).slice(before, rows)


@settings(deadline=None, max_examples=150)
@given(rows=slices(), codec=st.sampled_from(CODECS))
def test_rows_come_back(rows: pa.RecordBatch, codec: Codec) -> None:
    assert returned(rows, codec).equals(rows)


@settings(deadline=None)
@given(kind=st.sampled_from(list(VALUES)), data=st.data())
def test_values_that_all_differ_come_back(kind: pa.DataType, data: st.DataObject) -> None:
    rows = batch(pa.array(data.draw(st.lists(VALUES[kind], min_size=1, max_size=50)), kind))
    assert returned(rows).equals(rows)


@settings(deadline=None)
@given(words=st.lists(st.integers(0, 2**64 - 1), min_size=1), copies=st.sampled_from([1, 9]))
def test_doubles_keep_every_bit(words: list[int], copies: int) -> None:
    some = struct.pack("<3d", math.nan, -0.0, math.inf) + struct.pack(f"<{len(words)}Q", *words)
    values = pa.array(np.frombuffer(some * copies))
    result = returned(batch(values)).column(0)
    assert result.buffers()[1].to_pybytes() == values.buffers()[1].to_pybytes()


@pytest.mark.parametrize("kind", VALUES, ids=str)
@pytest.mark.parametrize("rows", [0, 1, 9])
def test_a_column_of_nulls_takes_no_bytes(kind: pa.DataType, rows: int) -> None:
    nulls = batch(pa.nulls(rows, kind))
    assert returned(nulls).equals(nulls)
    assert leaf_of(nulls).size == HEADER.size + ENTRY.size
    assert entry_of(leaf_of(nulls))[3] == encodings.NULLS


def test_no_columns() -> None:
    rows = batch(pa.array([1, 2]))
    assert decode_leaf(leaf_of(rows), rows.schema, []).num_columns == 0


def test_long_strings() -> None:
    rows = batch(pa.array(["a" * 3_000_000, None, "", "b" * 70_000]), pa.array([b"\0" * 10**6] * 4))
    assert returned(rows).equals(rows)


def test_a_field_keeps_what_the_schema_says_of_it() -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False, metadata={"unit": "m"})])
    rows = pa.RecordBatch.from_arrays([pa.array([1, 2])], schema=schema)
    assert returned(rows).schema.equals(schema, check_metadata=True)


def test_columns_in_the_order_asked_for() -> None:
    rows = batch(pa.array([1, 2]), pa.array([0.5, 1.5]), pa.array(["a", None]))
    assert decode_leaf(leaf_of(rows), rows.schema, ["c2", "c0"]).equals(rows.select(["c2", "c0"]))


def test_a_payload_may_lie_anywhere() -> None:
    rows = batch(pa.array(np.arange(100) ** 2), pa.array(np.arange(100) / 7))
    moved = pa.py_buffer(b"." + leaf_of(rows).to_pybytes() + b"more").slice(1)
    assert decode_leaf(moved, rows.schema, rows.schema.names).equals(rows)


def test_plain_doubles_are_not_copied() -> None:
    payload = leaf_of(batch(pa.array(np.random.default_rng(0).random(1000))))
    values = decode_leaf(payload, pa.schema({"c0": pa.float64()}), ["c0"]).column(0).buffers()[1]
    assert payload.address < values.address < payload.address + payload.size
    assert values.address % 8 == 0


@pytest.mark.parametrize(
    ("values", "at_most"),
    [
        (np.random.default_rng(1).random(16_384), 8.0),
        (np.random.default_rng(1).random(16_384).astype(np.float32).astype(np.float64), 7.0),
        (np.arange(16_384) / 4, 6.0),
        (np.where(np.arange(16_384) < 12_000, np.random.default_rng(1).random(16_384), 0.5), 6.5),
    ],
    ids=["full precision", "single precision", "quarters", "constant at last"],
)
def test_doubles_that_shrink_are_compressed_and_others_left_alone(
    values: npt.NDArray[np.float64], at_most: float
) -> None:
    rows = batch(pa.array(values))
    assert returned(rows).equals(rows)
    payload = leaf_of(rows)
    assert entry_of(payload)[1] / len(values) <= at_most
    assert (entry_of(payload)[4] == 0) == (at_most == 8.0)


def test_other_types_are_refused() -> None:
    with pytest.raises(TypeError, match="cannot hold a column of type int32"):
        encode_leaf(batch(pa.array([1], pa.int32())), "lz4")


RANDOM = np.random.default_rng(1)
N = 2000
NUMBERS = np.arange(N)
NOISE = RANDOM.integers(0, 200, N)
ENDS = np.array([2**63 - 1, -(2**63)], np.int64)
SPARSE = RANDOM.random(N) < 0.3
CHOICES = {
    "in sequence": (pa.array(NUMBERS + 10**9), encodings.STEPS, 0),
    "falling": (pa.array(-3 * NUMBERS), encodings.STEPS, 0),
    "jitter": (pa.array(1000 * NUMBERS + NOISE, pa.timestamp("us")), encodings.STEPS, 2),
    "little jitter": (pa.array(1000 * NUMBERS + NOISE // 2), encodings.STEPS, 1),
    "rare jumps": (pa.array(10**7 * NUMBERS + (NUMBERS > 9) * 2**31), encodings.STEPS, 4),
    "constant": (pa.array([7] * N), encodings.FRAME, 0),
    "bytes": (pa.array(NOISE - 100), encodings.FRAME, 1),
    "under nulls": (pa.array(np.where(SPARSE, 2**60, NOISE), mask=SPARSE), encodings.FRAME, 1),
    "two bytes": (pa.array(RANDOM.integers(0, 60_000, N)), encodings.FRAME, 2),
    "four bytes": (pa.array(RANDOM.integers(0, 2**32, N)), encodings.FRAME, 4),
    "any": (pa.array(RANDOM.integers(-(2**63), 2**63 - 1, N)), encodings.FRAME, 8),
    "overflow": (pa.array(ENDS), encodings.FRAME, 8),
    "few far apart": (pa.array(ENDS[NOISE % 2]), encodings.DICTIONARY, 0),
    "random doubles": (pa.array(RANDOM.random(N)), encodings.PLAIN, 0),
    "few doubles": (pa.array(NOISE / 7, mask=SPARSE), encodings.DICTIONARY, 0),
    "symbols": (pa.array([f"car {i}" for i in NOISE]), encodings.TEXT_DICTIONARY, 1),
    "tags": (pa.array([b"\xff" * (i % 3) for i in NOISE]), encodings.TEXT_DICTIONARY, 1),
    "names": (pa.array([f"{i:08}" for i in NUMBERS]), encodings.TEXT, 0),
    "lengths": (pa.array(["x" * i for i in range(300)]), encodings.TEXT, 2),
    "one string": (pa.array(["x"]), encodings.TEXT, 0),
    "prices": (pa.array([Decimal(int(i)) / 4 for i in NOISE], pa.decimal128(38, 2)), 2, 2),
    "long": (pa.array([Decimal(int(i)) ** 9 for i in NOISE], pa.decimal128(38, 0)), 1, 0),
    "bits": (pa.array(SPARSE), encodings.PLAIN, 0),
}


@pytest.mark.parametrize("name", CHOICES)
def test_the_encoding_fits_the_values(name: str) -> None:
    values, encoding, width = CHOICES[name]
    assert encoding_of(values) == (encoding, width)


def test_what_sequence_numbers_and_even_times_cost() -> None:
    rows = batch(pa.array(NUMBERS * 1000, pa.timestamp("us")), pa.array(NUMBERS))
    assert leaf_of(rows).size == HEADER.size + 2 * ENTRY.size


@pytest.mark.parametrize("bits", range(1, 13))
def test_codes_of_any_width(bits: int) -> None:
    different = (1 << bits) - bits // 2
    values = np.tile(np.arange(different), 3) * 2**40 + 5
    for column in (pa.array(values[1:]), pa.array([f"a long string {i}" for i in values])):
        rows = batch(column)
        assert returned(rows).equals(rows)
        assert entry_of(leaf_of(rows))[6] == bits


SHAPES = {
    "every type": batch(
        pa.array(range(50), pa.timestamp("us")),
        pa.array(range(50)),
        pa.array([i % 3 / 7 if i % 4 else None for i in range(50)]),
        pa.array([f"car {i % 5}" for i in range(50)]),
        pa.array([bytes([i] * (i % 4)) for i in range(50)]),
        pa.array([i % 3 == 0 if i % 7 else None for i in range(50)]),
        pa.array([Decimal(i * i) for i in range(50)], pa.decimal128(38, 0)),
        pa.nulls(50, pa.string()),
    ),
    "compressed": batch(
        pa.array([i * i // 900 + 2**62 * (i // 60) for i in range(90)]),
        pa.array([f"{'abc' * 9}{i}" for i in range(90)]),
    ),
    "one row": batch(pa.array([1]), pa.array(["a"]), pa.array([0.5])),
    "empty": batch(pa.array([], pa.int64()), pa.array([], pa.string())),
}


def flipped(payload: bytes) -> Iterator[bytes]:
    """Return the payload with each of its bits flipped in turn."""
    for place, byte in enumerate(payload):
        for bit in range(8):
            yield payload[:place] + bytes([byte ^ 1 << bit]) + payload[place + 1 :]


def same_or_damaged(payload: bytes, rows: pa.RecordBatch, names: Sequence[str]) -> bool:
    """Return whether a leaf is found damaged; if it is not, it must be the same."""
    try:
        result = decode_leaf(pa.py_buffer(payload), rows.schema, names)
    except DamagedLeafError:
        return True
    assert result.equals(rows.select(names))
    return False


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_flipped_bit_is_found(shape: str, codec: Codec) -> None:
    rows = SHAPES[shape]
    payload = leaf_of(rows, codec).to_pybytes()
    assert all(same_or_damaged(other, rows, rows.schema.names) for other in flipped(payload))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_truncation_is_found(shape: str, codec: Codec) -> None:
    rows = SHAPES[shape]
    payload = leaf_of(rows, codec).to_pybytes()
    for size in range(len(payload)):
        assert same_or_damaged(payload[:size], rows, rows.schema.names)
        same_or_damaged(payload[:size], rows, rows.schema.names[:1])


@settings(deadline=None, max_examples=300)
@given(data=st.data(), shape=st.sampled_from(list(SHAPES)))
def test_any_damage_is_found(data: st.DataObject, shape: str) -> None:
    rows = SHAPES[shape]
    payload = bytearray(leaf_of(rows, data.draw(st.sampled_from(CODECS))).to_pybytes())
    start = data.draw(st.integers(0, len(payload) - 1))
    content = data.draw(st.binary(min_size=1, max_size=40))
    payload[start : start + len(content)] = content
    same_or_damaged(bytes(payload), rows, rows.schema.names)


@settings(deadline=None)
@given(content=st.binary(max_size=200))
def test_other_bytes_are_no_leaf(content: bytes) -> None:
    with pytest.raises(DamagedLeafError):
        read_directory(pa.py_buffer(content))


@pytest.mark.parametrize("shape", ["every type", "compressed"])
def test_a_wrong_entry_under_a_right_checksum_is_no_crash(shape: str) -> None:
    rows = SHAPES[shape]
    payload = leaf_of(rows).to_pybytes()
    size = HEADER.size + rows.num_columns * ENTRY.size
    for entries in flipped(payload[HEADER.size : size]):
        checked = payload[4 : HEADER.size] + entries
        signed = google_crc32c.value(checked).to_bytes(4, "little") + checked + payload[size:]
        with contextlib.suppress(DamagedLeafError):
            decode_leaf(pa.py_buffer(signed), rows.schema, rows.schema.names)


def test_only_the_columns_asked_for_are_touched() -> None:
    rows = SHAPES["every type"]
    payload = bytearray(leaf_of(rows).to_pybytes())
    place, length = entry_of(pa.py_buffer(bytes(payload)), column=3)[:2]
    payload[place : place + length] = bytes(length)
    others = [name for name in rows.schema.names if name != "c3"]
    assert not same_or_damaged(bytes(payload), rows, others)
    assert same_or_damaged(bytes(payload), rows, ["c3"])
    with pytest.raises(DamagedLeafError, match="column c3 is damaged"):
        decode_leaf(pa.py_buffer(bytes(payload)), rows.schema, rows.schema.names)


def test_another_schema_is_found() -> None:
    rows = batch(pa.array([1, 2]))
    for kind in (pa.float64(), pa.string(), pa.bool_()):
        with pytest.raises(DamagedLeafError, match="has no encoding"):
            decode_leaf(leaf_of(rows), pa.schema({"c0": kind}), ["c0"])
    with pytest.raises(DamagedLeafError, match="not the 2 columns"):
        decode_leaf(leaf_of(rows), pa.schema({"c0": pa.int64(), "c1": pa.int64()}), ["c0"])
