"""Work that is due once segments of a stream were sealed. The events are safe either way."""

from __future__ import annotations

import logging

from eventide.errors import StoreError
from eventide.store.upkeep.changes import as_of_now, choose_by_correlation, commit_jobs, retain
from eventide.store.upkeep.compaction import small_run
from eventide.store.upkeep.maintenance import Job, run_here
from eventide.store.writing.open_stream import OpenStream
from eventide.store.writing.view import StreamView

log = logging.getLogger("eventide.store")


def settle(stream: OpenStream, before: StreamView, after: StreamView) -> None:
    """Do what is due if a flush has sealed segments."""
    if len(after.manifest.segments) == len(before.manifest.segments):
        return
    try:
        after_seal(stream, after)
    except (OSError, StoreError) as error:
        log.warning("stream %s could not be tidied up: %s", stream.folder.name, error)


def after_seal(stream: OpenStream, view: StreamView) -> None:
    """Choose indexes, apply retention, merge small segments."""
    view = choose_by_correlation(stream, view)
    retain(stream, view)
    merge_small(stream)


def merge_small(stream: OpenStream) -> None:
    """Merge small segments where many have piled up."""
    view = stream.view()
    try:
        while small := small_run(view.manifest.segments, view.manifest.options.split_us):
            job = Job("merge", stream.folder, as_of_now(view), tuple(small))
            commit_jobs(stream, view, [job], run_here([job]))
            view = stream.view()
    except (OSError, StoreError) as error:
        log.warning("stream %s could not be compacted: %s", stream.folder.name, error)
