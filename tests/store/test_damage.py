"""Every change to a stored byte is found, or does not matter."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import StoreError
from eventide.schema import Schema
from eventide.store import Store, StoredStream
from eventide.store.block import BlockEncoder, DamagedBlockError, read_block
from tests.store.events import segment_files

SCHEMA = Schema.of(
    {
        "car": "string",
        "speed": "float64",
        "lit": "bool",
        "toll": "decimal(9,2)",
        "tag": "binary",
        "seen": "timestamp",
    }
)


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> StoredStream:
    stream = Store.open(tmp_path_factory.mktemp("db")).create_stream("cars", SCHEMA)
    rows = [
        {"ts": i * 10, "car": f"car-{i % 7}" if i % 5 else None, "speed": i / 3, "lit": i % 2 == 0}
        for i in range(300)
    ]
    schema = SCHEMA.arrow.remove(SCHEMA.arrow.get_field_index("seq"))
    stream.append(pa.Table.from_pylist(rows, schema=schema))
    return stream


def everything(stream: StoredStream) -> pa.Table:
    return pa.Table.from_batches(stream.snapshot().scan(SCHEMA.arrow.names))


@settings(deadline=None, max_examples=300)
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_no_flipped_bit_changes_an_answer(stream: StoredStream, place: float, bit: int) -> None:
    (path,) = segment_files(stream)
    whole, expected = path.read_bytes(), everything(stream)
    at = int(place * len(whole))
    path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << bit)]) + whole[at + 1 :])
    try:
        found = everything(stream)
    except StoreError as error:
        told: str | None = str(error)
    else:
        told = None
    finally:
        path.write_bytes(whole)
    if told is None:
        # Only padding may change unseen, and that is all zeros.
        assert found.equals(expected)
        assert whole[at] == 0
    else:
        assert str(path) in told


def test_an_undamaged_column_can_still_be_read(stream: StoredStream) -> None:
    (path,) = segment_files(stream)
    whole = path.read_bytes()
    path.write_bytes(whole[:-64] + bytes(64))  # the last column
    try:
        assert sum(len(batch) for batch in stream.snapshot().scan(["ts", "car"])) == 300
        with pytest.raises(StoreError, match="column seen"):
            list(stream.snapshot().scan(["seen"]))
    finally:
        path.write_bytes(whole)


@pytest.mark.parametrize("cut", [0, 3, 11, 40])
def test_a_block_that_ends_early_is_refused(cut: int) -> None:
    schema = pa.schema([("a", pa.int64())])
    block = BlockEncoder(schema).encode(pa.RecordBatch.from_pydict({"a": [1, 2, 3]}, schema))
    assert read_block(pa.py_buffer(block), 0, schema, ["a"]).to_pydict() == {"a": [1, 2, 3]}
    with pytest.raises(DamagedBlockError):
        read_block(pa.py_buffer(block[:cut]), 0, schema, ["a"])


def test_a_segment_of_another_kind_is_refused(stream: StoredStream) -> None:
    (path,) = segment_files(stream)
    whole = path.read_bytes()
    path.write_bytes(b"PAR1" + whole[4:])
    try:
        with pytest.raises(StoreError, match="does not begin as a segment"):
            everything(stream)
    finally:
        path.write_bytes(whole)


def test_files_of_another_format_are_refused(tmp_path: Path) -> None:
    stream = Store.open(tmp_path).create_stream("cars", SCHEMA)
    (manifest,) = stream.path.glob("manifest-*.json")
    manifest.write_text(manifest.read_text().replace('"format":2', '"format":1'))
    with pytest.raises(StoreError, match="has format 1; this Eventide reads 2"):
        stream.snapshot()
