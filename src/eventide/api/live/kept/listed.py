"""The durable queries that a database keeps, whether they run or not."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from eventide.api.live.durable import QUERIES, RUNNER
from eventide.errors import StoreError
from eventide.store import Store
from eventide.store.files.lock import is_locked
from eventide.store.progress import read_progress, received_rows


@dataclass(frozen=True, slots=True)
class KeptQuery:
    """A durable query as its files have it.

    running    whether a process runs it now
    process    which one, if it is known
    rows       how many of its rows have been received
    behind     how many stored events its newest checkpoint does not have
    damage     why it cannot go on, and what would help; None if its files are whole
    """

    name: str
    text: str
    running: bool
    process: str | None
    rows: int
    behind: int
    damage: str | None = None


def kept_queries(store: Store) -> tuple[KeptQuery, ...]:
    """Return the durable queries of a database, in order of their names."""
    folder = store.path / QUERIES
    folders = sorted(folder.iterdir()) if folder.is_dir() else []
    found = (kept_query(store, each) for each in folders)
    return tuple(each for each in found if each is not None)


def kept_query(store: Store, folder: Path) -> KeptQuery | None:
    """Return the durable query of a folder, None if it has not begun."""
    running = is_locked(folder)
    process = None
    if running and (folder / RUNNER).is_file():
        process = (folder / RUNNER).read_text().strip() or None
    received = received_rows(folder)
    try:
        progress = read_progress(folder)
        if progress is None:
            return None
        checkpoint = progress.checkpoint
        definition = json.loads(checkpoint.definition)
        text = definition["text"]
        if "count" in definition:
            text = f"{definition['count']:,} queries, {text}"
    except (StoreError, ValueError, LookupError, TypeError) as error:
        return KeptQuery(folder.name, "", running, process, received, 0, str(error))
    streams = store.streams()
    behind = sum(
        max(0, store.stream(name).current().next_seq - at)
        for name, at in checkpoint.next_seqs.items()
        if name in streams
    )
    return KeptQuery(folder.name, text, running, process, received, behind)
