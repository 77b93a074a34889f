"""`eventide ingest`: files into a stream, all of them or none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import click

from eventide.cli.app import ASKED_WRONGLY, Command, Failure, LocalPath
from eventide.cli.terminal import notices, output
from eventide.errors import StoreError
from eventide.sinks.words import plural, rough_period_text

if TYPE_CHECKING:
    import pyarrow as pa

    from eventide.schema import Schema
    from eventide.sinks.progress import Advance
    from eventide.store import StagedSegment, Store, StoredStream, StreamOptions


@click.command(cls=Command, short_help="Store the events of files in a stream.")
@click.argument("files", nargs=-1, required=True, type=LocalPath(), metavar="FILE…")
@click.option(
    "--into",
    "database",
    required=True,
    metavar="DB",
    type=LocalPath(),
    help="The database: a folder.",
)
@click.option("--stream", "name", required=True, metavar="NAME", help="The stream to append to.")
@click.option(
    "--ts",
    "ts",
    default="ts",
    metavar="COLUMN",
    help="The column with the time [ts]; of XML, the path of a document's time.",
)
@click.option(
    "--attribute",
    "attributes",
    multiple=True,
    metavar="NAME:TYPE",
    help="Attributes of a new stream, instead of those found in the first file. Repeat it.",
)
@click.option("--no-progress", is_flag=True, help="Show no progress bar.")
def ingest(
    files: tuple[Path, ...],
    database: Path,
    name: str,
    ts: str,
    attributes: tuple[str, ...],
    no_progress: bool,
) -> None:
    """Append the events in FILEs to a stream: Parquet, CSV, JSON lines, Arrow or XML.

    The suffix says the format; .csv.gz and .jsonl.gz work too. A database or a stream that does
    not exist is created, with the columns and types of the first file. Times are ISO-8601 text,
    timestamps, or microseconds since 1970; those without a zone are UTC.

    An XML file is one document of a stream of documents; a folder stands for the XML files in it.
    Without a path, a document has the time at which it is stored.

    Either all events of all files are stored, or, if one does not fit, none.

    Examples:
      eventide ingest cars.csv --into traffic.ev --stream cars
      eventide ingest 2026-*.parquet --into traffic.ev --stream cars --ts measured_at
      eventide ingest log.jsonl --into web.ev --stream hits
          --attribute path:string --attribute cost:"decimal(10,2)"
      eventide ingest posts/*.xml --into news.ev --stream blog --ts //item/pubDate

    Types: bool, int64, float64, string, timestamp, decimal(p,s), binary
    """
    from eventide.ingest.files import infer_schema
    from eventide.sinks.progress import counting, rows_in
    from eventide.store import Store

    if are_documents(files):
        from eventide.cli.documents import ingest_documents

        ingest_documents(files, database, name, ts, attributes, shown=not no_progress)
        return
    check_files(files)
    started = perf_counter()
    with naming_ts_option():
        schema = (
            declared_schema(attributes)
            or stored_schema(database, name)
            or infer_schema(files[0], ts=ts)
        )
    with (
        naming_ts_option(),
        stream_for(Store.open(database), name, schema, declared=bool(attributes)) as stream,
        counting(notices(), "reading", rows_in(files), shown=not no_progress) as advance,
    ):
        rows = store_files(stream, files, ts, advance)
    print_summary(stream, rows, perf_counter() - started)


def are_documents(files: Sequence[Path]) -> bool:
    """Whether files are XML documents, or folders of them; refuse other files among them."""
    from eventide.ingest.documents import document_files

    folders = {path for path in files if path.is_dir() and document_files(path)}
    documents = [path for path in files if path.suffix.lower() == ".xml" or path in folders]
    if documents and len(documents) < len(files):
        text = "XML documents and files of events in one call\nhint: call ingest for each of both"
        raise Failure(text, ASKED_WRONGLY)
    return bool(documents)


def check_files(files: Sequence[Path]) -> None:
    """Refuse arguments that are not files we can read, before anything is touched."""
    from eventide.errors import IngestError
    from eventide.ingest.files import format_of

    for path in files:
        try:
            format_of(path)
        except IngestError as error:
            raise Failure(str(error), ASKED_WRONGLY) from error


def declared_schema(attributes: Sequence[str]) -> Schema | None:
    """Return the schema that `--attribute` gives, if any."""
    from eventide.errors import SchemaError
    from eventide.schema import Schema

    types: dict[str, str] = {}
    for attribute in attributes:
        name, colon, kind = attribute.rpartition(":")
        if not colon or not name or name in types:
            problem = "is given twice" if name in types else "is not NAME:TYPE"
            text = f"--attribute {attribute!r} {problem}\nhint: write --attribute speed:float64"
            raise Failure(text, ASKED_WRONGLY)
        types[name] = kind
    try:
        return Schema.of(types) if types else None
    except SchemaError as error:
        raise Failure(str(error), ASKED_WRONGLY) from error


def stored_schema(database: Path, name: str) -> Schema | None:
    """Return the schema of a stream that exists: it decides, not the types in a file."""
    from eventide.store import Store

    try:
        store = Store.open(database, create=False)
    except StoreError:
        return None  # opening it for writing makes it, or says what is wrong
    return store.stream(name).schema if name in store.streams() else None


@contextmanager
def naming_ts_option() -> Iterator[None]:
    """Name the option that helps if the time is in another column."""
    from eventide.errors import SchemaError

    try:
        yield
    except SchemaError as error:
        if "which should hold the time" in error.message and error.hint is not None:
            raise SchemaError(error.message, hint=f"{error.hint}, with --ts COLUMN") from error
        raise


@contextmanager
def stream_for(
    store: Store,
    name: str,
    schema: Schema,
    *,
    declared: bool,
    options: StreamOptions | None = None,
) -> Iterator[StoredStream]:
    """Lend the stream. One that was not there is created, and gone again after an error."""
    store.refuse_derived(name)
    if name in store.streams():
        stream = store.stream(name)
        if declared and stream.schema != schema:
            text = (
                f"stream {name!r} has other attributes\nhint: it has {fields_text(stream.schema)}"
            )
            raise Failure(text, ASKED_WRONGLY)
        yield stream
        return
    stream = store.create_stream(name, schema, options)
    try:
        yield stream
    except BaseException:
        with suppress(StoreError):
            # Someone else may have found it in the meantime.
            if stream.snapshot().row_count == 0:
                store.drop_stream(name)
        raise
    created = f"created stream {name} ({fields_text(schema)})"
    notices().print(created, markup=False, soft_wrap=True)


def fields_text(schema: Schema) -> str:
    """Return the attributes as a person writes them."""
    return ", ".join(f"{each.name} {each.type}" for each in schema.attributes) or "no attributes"


def store_files(stream: StoredStream, files: Sequence[Path], ts: str, advance: Advance) -> int:
    """Stage all files, then commit once: an error in any of them leaves the stream as it was."""
    staged: list[StagedSegment] = []
    try:
        for path in files:
            staged.append(stream.stage(batches_of(path, stream.schema, ts, advance)))
    except BaseException:
        # The first error is reported; files that stay are swept after a day.
        with suppress(StoreError):
            stream.discard(staged)
        raise
    return stream.commit(staged).rows


def batches_of(path: Path, schema: Schema, ts: str, advance: Advance) -> Iterator[pa.RecordBatch]:
    """Yield the events of a file, counting them."""
    from eventide.ingest.files import read_events

    for table in read_events(path, schema, ts=ts):
        if schema.documents is not None:
            from eventide.api.documents import check_documents

            check_documents(table, str(path))
        yield from table.to_batches()
        advance(table.num_rows)


def print_summary(stream: StoredStream, rows: int, seconds: float) -> None:
    """Say what was stored."""
    times = stream.snapshot().time_range
    period = (
        ""
        if times.is_empty
        else f"; it spans {rough_period_text(times.start_us, times.end_us - 1)}"
    )
    rate = f"{rows / max(seconds, 1e-9):,.0f} events/s"
    text = f"stored {plural(rows, 'event')} in {stream.name}, {seconds:.2f} s, {rate}{period}"
    output().print(text, markup=False, soft_wrap=True)
