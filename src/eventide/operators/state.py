"""States as bytes: Arrow streams whose metadata say what wrote them, and lists of such."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

import pyarrow as pa

from eventide.errors import StateError

VERSION = "1"


def dump_rows(operator: str, rows: pa.RecordBatch, facts: dict[str, int]) -> bytes:
    """Write rows and a few integers, under the operator's name and the version."""
    told = {"operator": operator, "version": VERSION}
    metadata = told | {name: str(value) for name, value in facts.items()}
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema.with_metadata(metadata)) as writer:
        writer.write_batch(rows.replace_schema_metadata(metadata))
    return bytes(sink.getvalue())


def load_rows(
    operator: str, dumped: bytes, schema: pa.Schema
) -> tuple[pa.RecordBatch, dict[str, int]]:
    """Read back what `dump_rows` wrote."""
    try:
        table = pa.ipc.open_stream(dumped).read_all()
    except (pa.ArrowInvalid, OSError) as error:
        message = f"the state of {operator} is damaged: {error}"
        raise StateError(message) from error
    metadata = {
        key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()
    }
    found = (metadata.pop("operator", None), metadata.pop("version", None))
    if found != (operator, VERSION):
        message = f"expected a state of {operator}, version {VERSION}, found {found}"
        raise StateError(message, hint="load a state with the query and the release that wrote it")
    rows = table.replace_schema_metadata(None)
    if not rows.schema.equals(schema):
        message = f"the state of {operator} has other columns than the query: {rows.schema.names}"
        raise StateError(message, hint="load a state with the query that wrote it")
    batches = rows.combine_chunks().to_batches()
    empty = pa.RecordBatch.from_pylist([], schema=schema)
    return batches[0] if batches else empty, {key: int(value) for key, value in metadata.items()}


def join_parts(parts: Sequence[bytes]) -> bytes:
    """Return several states as one: a count, then each behind its length.

    >>> split_parts(join_parts([b"a", b"", b"bc"]))
    [b'a', b'', b'bc']
    """
    framed = [struct.pack("<q", len(part)) + part for part in parts]
    return b"".join([struct.pack("<q", len(parts)), *framed])


def split_parts(joined: bytes) -> list[bytes]:
    """Return the states that `join_parts` joined."""
    parts, place = [], 8
    try:
        (count,) = struct.unpack_from("<q", joined)
        for _ in range(count):
            (length,) = struct.unpack_from("<q", joined, place)
            parts.append(joined[place + 8 : place + 8 + length])
            place += 8 + length
    except struct.error as error:
        message = "the state is cut short"
        raise StateError(message) from error
    if place != len(joined):
        message = f"the state has {len(joined)} bytes, expected {place}"
        raise StateError(message)
    return parts


def with_checksum(state: bytes) -> bytes:
    """Return a state behind the checksum of its bytes.

    >>> without_checksum(with_checksum(b"state"))
    b'state'
    """
    return struct.pack("<I", zlib.crc32(state)) + state


def without_checksum(checked: bytes) -> bytes:
    """Return the state that `with_checksum` was given; refuse one that has changed since."""
    state = checked[4:]
    if len(checked) < 4 or struct.unpack_from("<I", checked) != (zlib.crc32(state),):
        message = "the state is damaged, or is none: its checksum is another"
        raise StateError(message, hint="load all the bytes that dump returned, as they were")
    return state


def parts_of(name: str, dumped: bytes, count: int) -> list[bytes]:
    """Return the parts of a dumped state, of which there have to be so many."""
    parts = split_parts(dumped)
    if len(parts) != count:
        message = f"the state of {name} has {len(parts)} parts, expected {count}"
        raise StateError(message, hint="load a state with the query that wrote it")
    return parts
