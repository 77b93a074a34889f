"""Detection rules as one set: those of benchmarks/rules, over its events."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import pyarrow as pa
import yaml

import eventide as ev
from benchmarks.rules.generated import COLUMNS, STREAM, generated_events, generated_rules
from benchmarks.sharing.sets.running import BATCH, Arrived, Asked, QuerySet, numbered
from eventide.schema import TS, Schema

EVENTS = 120 * BATCH
CATALOG = {STREAM: Schema.of(dict.fromkeys(COLUMNS, "string"))}


@cache
def rule_texts(count: int) -> tuple[str, ...]:
    """Return the queries of generated rules."""
    with tempfile.TemporaryDirectory() as folder, ev.open(Path(folder, "logs.ev")) as db:
        Path(folder, "rules.yml").write_text(yaml.safe_dump_all(generated_rules(count)))
        db.create_stream(STREAM, dict.fromkeys(COLUMNS, "string"))
        return tuple(ev.rules.load(db, Path(folder, "rules.yml")).texts.values())


def asked(count: int) -> list[Asked]:
    """Return so many rules."""
    return [(rule_texts(count), None)]


def events(rules: int) -> Iterator[Arrived]:
    """Yield batches of events, some of which the rules are about."""
    made = generated_events(EVENTS, generated_rules(rules)).drop_columns([TS]).combine_chunks()
    (rows,) = made.to_batches()
    arrays = [column.cast(pa.string()) for column in rows.columns]
    columns = dict(zip(rows.schema.names, arrays, strict=True))
    for first in range(0, EVENTS, BATCH):
        part = {name: column.slice(first, BATCH) for name, column in columns.items()}
        yield {STREAM: numbered(part, first, 1_000)}


def detection_rules(rules: int) -> QuerySet:
    """Return generated rules."""
    about = "Sigma rules: equalities, ends and parts of texts in selections, OR and NOT"
    return QuerySet("detection rules", about, CATALOG, asked, partial(events, rules))
