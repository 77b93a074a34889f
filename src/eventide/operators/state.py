"""The format that operators write: Arrow streams with the writer's name, and lists of such.

It has no checksum of its own: the envelope has one (envelope.py).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pyarrow as pa

from eventide.arrays import no_rows
from eventide.errors import StateError


def write_rows(operator: str, rows: pa.RecordBatch, facts: dict[str, int]) -> bytes:
    """Write rows and a few integers, under the operator's name."""
    metadata = {"operator": operator} | {name: str(value) for name, value in facts.items()}
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema.with_metadata(metadata)) as writer:
        writer.write_batch(rows.replace_schema_metadata(metadata))
    return bytes(sink.getvalue())


def read_rows(
    operator: str, written: bytes, schema: pa.Schema
) -> tuple[pa.RecordBatch, dict[str, int]]:
    """Read back what `write_rows` wrote; all offsets in the rows are checked."""
    try:
        table = pa.ipc.open_stream(written).read_all()
        # Arrow follows offsets anywhere; this checks all of them, and every text.
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        message = f"the state of {operator} is damaged: {error}"
        raise StateError(message) from error
    metadata = {
        key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()
    }
    found = metadata.pop("operator", None)
    if found != operator:
        message = f"expected a state of {operator}, found one of {found}"
        raise StateError(message, hint="load a state with the query that wrote it")
    rows = table.replace_schema_metadata(None)
    if not rows.schema.equals(schema):
        message = f"the state of {operator} has other columns than the query: {rows.schema.names}"
        raise StateError(message, hint="load a state with the query that wrote it")
    facts = {key: int(value) for key, value in metadata.items()}
    if not all(-(2**63) <= fact < 2**63 for fact in facts.values()):
        message = f"the state of {operator} has facts beyond 64 bits: {facts}"
        raise StateError(message)
    batches = rows.combine_chunks().to_batches()
    empty = no_rows(schema)
    found_rows = batches[0] if batches else empty
    for field, column in zip(schema, found_rows.columns, strict=True):
        # Kernels take the values of such lists as they are, and Arrow does not check this.
        filled = pa.types.is_list(field.type) and not field.type.value_field.nullable
        if filled and column.flatten().null_count:
            message = f"the state of {operator} has a null in a list of {field.name}"
            raise StateError(message)
    return found_rows, facts


def join_parts(parts: Sequence[bytes]) -> bytes:
    """Return several states as one: a count, then each behind its length.

    >>> split_parts(join_parts([b"a", b"", b"bc"]))
    [b'a', b'', b'bc']
    """
    framed = [struct.pack("<Q", len(part)) + part for part in parts]
    return b"".join([struct.pack("<Q", len(parts)), *framed])


def split_parts(joined: bytes) -> list[bytes]:
    """Return the states that `join_parts` joined."""
    parts, place = [], 8
    try:
        (count,) = struct.unpack_from("<Q", joined)
        for _ in range(count):
            (length,) = struct.unpack_from("<Q", joined, place)
            parts.append(joined[place + 8 : place + 8 + length])
            place += 8 + length
    except (struct.error, OverflowError) as error:
        message = "the state is cut short"
        raise StateError(message) from error
    if place != len(joined):
        message = f"the state has {len(joined)} bytes, expected {place}"
        raise StateError(message)
    return parts


def parts_of(name: str, written: bytes, count: int) -> list[bytes]:
    """Return the parts of a written state; their number is given."""
    parts = split_parts(written)
    if len(parts) != count:
        message = f"the state of {name} has {len(parts)} parts, expected {count}"
        raise StateError(message, hint="load a state with the query that wrote it")
    return parts
