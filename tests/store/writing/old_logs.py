"""Logs as an earlier Eventide wrote them, for streams that are opened today."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import google_crc32c

from eventide.store import StoredStream
from eventide.store.writing.log import (
    OLD_MAGIC,
    RecordKind,
    Rows,
    payload_parts,
    read_records,
    stamp_of,
)
from eventide.store.writing.old_log import masked


def old_record(
    kind: RecordKind, number: int, stamp: bytes, facts: Mapping[str, Any], batches: Sequence[Rows]
) -> bytes:
    """Return a record of the format `EVL3`."""
    payload = masked(b"".join(bytes(part) for part in payload_parts(facts, batches)))
    crc = google_crc32c.value(payload)
    header = struct.pack("<4sB3xQQ16sI", OLD_MAGIC, kind, number, len(payload), stamp, crc)
    return header + struct.pack("<I", google_crc32c.value(header)) + payload


def rewritten_as_old(stream: StoredStream) -> list[int]:
    """Rewrite the log of a closed stream in the old format; return where its records end.

    A log that a manifest has counted has to be at least as long as before: see the callers.
    """
    manifest = stream.snapshot().manifest
    path, stamp, schema = stream.path / manifest.log, stamp_of(manifest.log), manifest.schema.arrow
    schemas = {RecordKind.CHECKPOINT: schema, RecordKind.EVENTS: schema.remove(1)}
    content, ends = b"", []
    for number, record in enumerate(read_records(path.read_bytes(), stamp, schemas, synced=True)):
        facts = {key: value for key, value in record.facts.items() if key != "lengths"}
        content += old_record(record.kind, number, stamp, facts, record.batches)
        ends.append(len(content))
    path.write_bytes(content)
    return ends
