"""Streams of XML documents: what is appended, and at which time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from time import time_ns

import numpy as np
import pyarrow as pa

from eventide.errors import EventideError, IngestError, SchemaError
from eventide.ingest.coerce import to_events
from eventide.ingest.documents import GivenDocument, ReadDocuments, given_documents, read_given
from eventide.lang.xscl.parse import parse_pattern
from eventide.operators.xml.asked import AskedPattern
from eventide.operators.xml.stage import PathStage, string_values
from eventide.plan.times import parse_timestamp
from eventide.schema import (
    BINARY,
    DOCUMENT,
    MAX_TS_US,
    MIN_TS_US,
    TS,
    Attribute,
    DocumentFormat,
    Schema,
)

DOCUMENT_OPTIONS = {"codec": "zstd", "summaries": []}
"""How documents are stored unless users say otherwise: small, and without largest and smallest."""
_STREAM = "document"
_FORMATS = "a time is written as 2026-03-02T08:00:00Z, or as Mon, 02 Mar 2026 08:00:00 GMT"


def document_schema(format: str, time: str | None) -> Schema:
    """Return the schema of a stream of documents; `time` is the path of their times."""
    if format != "xml":
        message = f"{format!r} is no format of documents"
        raise SchemaError(message, hint='write format="xml"; other streams have attributes')
    if time is not None:
        time_pattern(time)
    return Schema((Attribute(DOCUMENT, BINARY),), documents=DocumentFormat(format, time))


def time_pattern(path: str) -> AskedPattern:
    """Return what is asked of documents for the path of their times."""
    if not isinstance(path, str) or not path.startswith("/"):
        message = f"{path!r:.80} is not the path of a time"
        raise SchemaError(message, hint='write time="//item/pubDate"')
    if parse_pattern(f"{_STREAM}{path}").pattern.variables:
        message = f"the path of a time has no variables, as {path!r} does"
        raise SchemaError(message, hint='write time="//item/pubDate"')
    try:
        return AskedPattern.of_variables(parse_pattern(f"{_STREAM}{path}->time").pattern.root)
    except EventideError:
        message = f"the path of a time ends with a step, and not as {path!r} does"
        raise SchemaError(message, hint="write .../step[…]/step") from None


def document_events(data: object, schema: Schema) -> pa.Table:
    """Return documents as events of their stream; rows that have times already are only checked.

    Documents come at the time that they say, or now. Either all of them are fine, or an error names
    the first that is not.
    """
    if is_rows(data):
        events = to_events(data, schema)
        check_documents(events)
        return events
    tables = list(document_tables(given_documents(data), schema))
    return pa.concat_tables(tables) if tables else schema.event_arrow.empty_table()


def check_documents(events: pa.Table, where: str = "") -> None:
    """Refuse events with a document that is hostile or broken; null is none."""
    place = f"{where}, " if where else ""
    rows = enumerate(events.column(DOCUMENT).to_pylist())
    for _ in read_given(GivenDocument(d, f"{place}row {n}") for n, d in rows if d is not None):
        pass


def is_rows(data: object) -> bool:
    """Whether data is a table, a frame, a dict or a list of dicts, not documents."""
    if isinstance(data, (bytes, bytearray, memoryview, str, Path)):
        return False
    if isinstance(data, (list, tuple)):
        return bool(data) and all(isinstance(each, dict) for each in data)
    return not isinstance(data, Iterator)


def document_tables(
    documents: Iterable[GivenDocument], schema: Schema, now_us: int | None = None
) -> Iterator[pa.Table]:
    """Yield documents as events, some at a time."""
    assert schema.documents is not None
    path = schema.documents.time
    stage = None if path is None else PathStage([time_pattern(path)])
    arrived_us = time_ns() // 1000 if now_us is None else now_us
    for read in read_given(documents):
        count = len(read.given)
        times = [arrived_us] * count if stage is None else list(times_of(read, stage, str(path)))
        columns = {
            TS: pa.array(times, pa.int64()).cast(pa.timestamp("us")),
            DOCUMENT: pa.array([each.content for each in read.given], pa.binary()),
        }
        others = {
            name: pa.nulls(count, kind.arrow)
            for name, kind in schema.event_types.items()
            if name not in columns
        }
        found = {**columns, **others}
        yield pa.table([found[name] for name in schema.event_arrow.names], schema.event_arrow)


def times_of(read: ReadDocuments, stage: PathStage, path: str) -> Iterator[int]:
    """Yield the time of each document: the string value of the first node of a path."""
    found: dict[int, str] = {}
    for part in stage.find_in(read.nodes):
        documents, nodes = part.of_view(0)
        known, first = np.unique(documents, return_index=True)
        values = string_values(part.tree, np.ascontiguousarray(nodes[first, 0])).to_pylist()
        found.update(zip(known.tolist(), values, strict=True))
    for number, each in enumerate(read.given):
        text = found.get(number)
        if text is None:
            message = f"{each.name}: there is nothing at {path}, where its time should be"
            raise IngestError(message, hint="without a path, documents have their time of arrival")
        time_us = time_in(text)
        if time_us is None:
            message = f"{each.name}: {text!r:.60} at {path} is not a time"
            raise IngestError(message, hint=_FORMATS)
        yield time_us


def time_in(text: str) -> int | None:
    """Return a time in microseconds; without a zone it is UTC. None if it is none.

    >>> time_in("1970-01-01T00:00:01Z"), time_in("Thu, 01 Jan 1970 01:00:02 +0100"), time_in("soon")
    (1000000, 2000000, None)
    """
    found = parse_timestamp(text)
    if found is None:
        try:
            found = parse_timestamp(parsedate_to_datetime(text.strip()).isoformat())
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    return found if found is not None and MIN_TS_US <= found <= MAX_TS_US else None
