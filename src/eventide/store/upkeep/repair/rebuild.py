"""Make a manifest for a stream that has lost all of them, with the columns of segment heads."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa

from eventide.errors import EventideError, StoreError
from eventide.store.files.frame import read_frame
from eventide.store.files.json_text import read_json
from eventide.store.files.mapped import map_file, stamp_of
from eventide.store.options import StreamOptions
from eventide.store.segments.manifest import FORMAT, Manifest
from eventide.store.segments.segment import SEGMENT_NAME, SegmentForm
from eventide.store.upkeep.verify_segment import UNREADABLE
from eventide.store.writing.log import log_name


def form_in(content: pa.Buffer, stamp: bytes) -> SegmentForm:
    """Return the form that the head of a segment file has."""
    head = read_json(read_frame(content, 0, stamp).payload.to_pybytes())
    return SegmentForm.from_json(head["form"])


def rebuilt_manifest(folder: Path, damaged: list[str]) -> Manifest:
    """Return a manifest without segments, with the columns of the newest segment."""
    for name in damaged:
        refuse_other_format(folder / name)
    forms = [form for path in by_age(folder) if (form := form_of(path)) is not None]
    if not forms:
        message = (
            f"no version of the manifest in {folder} can be read, "
            "and no segment is there that tells the columns of the stream"
        )
        hint = "restore a manifest file from a backup; without one, a log alone cannot be read"
        raise StoreError(message, hint=hint)
    # A column that was added has a higher number; of equal ones the newest counts.
    form = max(reversed(forms), key=lambda form: max(form.column_ids, default=-1))
    is_all = form.summaries == form.schema.names
    options = StreamOptions(
        codec=form.codec,
        order="time" if any(form.in_order for form in forms) else "arrival",
        summaries=None if is_all else form.summaries,
        aggregates=form.aggregates,
    )
    return Manifest(
        version=0,
        stream_id=uuid.uuid4().hex,
        schema=form.schema,
        column_ids=form.column_ids,
        log=log_name(),
        options=options,
        next_column_id=1 + max(max(form.column_ids, default=-1) for form in forms),
    )


def refuse_other_format(path: Path) -> None:
    """Refuse a manifest that only another Eventide can read: it is not damaged."""
    try:
        found = read_json(path.read_bytes())["format"]
    except (ValueError, LookupError, TypeError):
        return
    if found != FORMAT:
        message = f"{path} has format {found}; this Eventide reads {FORMAT}"
        raise StoreError(message, hint="open the database with the version that wrote it")


def by_age(folder: Path) -> list[Path]:
    """Return the segment files of a folder, the oldest first."""
    found = [path for path in folder.iterdir() if SEGMENT_NAME.fullmatch(path.name)]
    return sorted(found, key=lambda path: (path.stat().st_mtime, path.name))


def form_of(path: Path) -> SegmentForm | None:
    """Return the form of a segment, if its head is whole."""
    try:
        return form_in(map_file(path), stamp_of(path.name))
    except (*UNREADABLE, EventideError, LookupError, TypeError):
        return None
