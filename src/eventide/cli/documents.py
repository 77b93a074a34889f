"""`eventide ingest` of XML documents: each file is one, all of them are stored or none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from eventide.cli.app import ASKED_WRONGLY, Failure
from eventide.cli.ingest import print_summary, stored_schema, stream_for
from eventide.cli.terminal import notices
from eventide.errors import StoreError

if TYPE_CHECKING:
    import pyarrow as pa

    from eventide.schema import Schema
    from eventide.sinks.progress import Advance


def ingest_documents(
    files: Sequence[Path],
    database: Path,
    name: str,
    ts: str,
    attributes: Sequence[str],
    *,
    shown: bool,
) -> None:
    """Append documents to a stream of documents, which is created if it does not exist."""
    from eventide.api.documents import DOCUMENT_OPTIONS
    from eventide.api.stream import options_from
    from eventide.ingest.documents import document_files
    from eventide.sinks.progress import counting
    from eventide.store import Store

    started = perf_counter()
    if attributes:
        text = "documents have no attributes\nhint: leave --attribute out, and ask by paths"
        raise Failure(text, ASKED_WRONGLY)
    schema = schema_for(stored_schema(database, name), name, None if ts == "ts" else ts)
    paths = [path for each in files for path in document_files(each)]
    options = options_from(DOCUMENT_OPTIONS)
    with (
        stream_for(Store.open(database), name, schema, declared=False, options=options) as stream,
        counting(notices(), "reading", len(paths), shown=shown) as advance,
    ):
        staged = stream.stage(batches_of(paths, schema, advance))
        try:
            rows = stream.commit([staged]).rows
        except BaseException:
            with suppress(StoreError):
                stream.discard([staged])
            raise
    print_summary(stream, rows, perf_counter() - started)


def schema_for(stored: Schema | None, name: str, path: str | None) -> Schema:
    """Return the schema of the stream; refuse one that is no stream of documents, or has others."""
    from eventide.api.documents import document_schema

    if stored is None:
        return document_schema("xml", path)
    if stored.documents is None:
        text = f"stream {name!r} has events, no documents\nhint: name another stream"
        raise Failure(text, ASKED_WRONGLY)
    if path not in (None, stored.documents.time):
        has = stored.documents.time or "no path: they have their time of arrival"
        text = f"the times of the documents of {name!r} have {has}\nhint: leave --ts out"
        raise Failure(text, ASKED_WRONGLY)
    return stored


def batches_of(paths: Sequence[Path], schema: Schema, advance: Advance) -> Iterator[pa.RecordBatch]:
    """Yield the documents of files as events, counting them."""
    from eventide.api.documents import document_tables
    from eventide.ingest.documents import given_documents

    for table in document_tables(given_documents(paths), schema):
        yield from table.to_batches()
        advance(table.num_rows)
