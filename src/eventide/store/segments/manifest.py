"""The versioned list of a stream's segments: what is committed, and nothing else.

Version n is the file `manifest-<n, 20 digits>.json`. **The file with the highest number is the
stream**; there is no other pointer, only a note that saves looking for it (lock.py). A commit
writes n + 1 beside it: a temporary file, sync, rename, sync of the folder. So a crash leaves
version n or version n + 1, both complete. The last `KEPT_VERSIONS` files stay, for repair; readers
need only the newest.

The manifest lists the sealed segments and names the log; the log knows the open segment and the
events that are in none yet. `next_seq` is a lower bound, and `log_end` too: the log may have grown
and counted on. A log that is shorter than that was cut off.

Segments before the newest are in listings, files that do not change from version to version
(listing.py), so a commit writes about as much however many there are.

The file is one JSON object: `format`, `checksum` (CRC-32C of the text of `stream`), `stream`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import google_crc32c

from eventide.errors import EventideError, StoreError
from eventide.schema import Attribute, DataType, DocumentFormat, Schema
from eventide.store.files.disk import remove, write_atomically
from eventide.store.files.json_text import read_json, whole
from eventide.store.files.lock import noted_newest
from eventide.store.options import StreamOptions
from eventide.store.segments.listing import Listing, SegmentList, in_listings
from eventide.store.segments.segment import Segment, SegmentForm

FORMAT = 4
WITHOUT_LISTINGS = 3
"""The format of a manifest that names no listing: older versions of Eventide read it too."""
KEPT_VERSIONS = 8
KEPT_DECISIONS = 100
LOG_NAME = re.compile(r"log-[0-9a-f]{32}\.log")
BEFORE_STREAM = re.compile(rb'\{"format":\d+,"checksum":\d+,"stream":')
MANIFEST_NAME = re.compile(r"manifest-(\d{20})\.json")
# A reader that lists the folder just before a burst of commits may find its file swept.
READ_ATTEMPTS = 20
DAMAGED = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""The errors that reading a manifest can raise if its content is not one of ours."""


@dataclass(frozen=True, slots=True)
class Retired:
    """A file that was replaced or dropped, and when: older snapshots may still read it."""

    file: str
    at_s: float


@dataclass(frozen=True, slots=True)
class Decision:
    """Something the store decided by itself, when and why."""

    at_s: float
    what: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """One version of a stream. `commit_ids` and `decisions` are the newest last."""

    version: int
    stream_id: str
    schema: Schema
    column_ids: tuple[int, ...]
    log: str
    log_end: int = 0
    """How long the log was when this was committed: all of that was acknowledged."""
    options: StreamOptions = field(default_factory=StreamOptions)
    next_column_id: int = 0
    next_seq: int = 0
    segments: SegmentList = field(default_factory=SegmentList)
    commit_ids: tuple[str, ...] = ()
    retired: tuple[Retired, ...] = ()
    decisions: tuple[Decision, ...] = ()
    dropped_before: int | None = None
    """Segments that ended before this time were dropped."""
    clock_us: int | None = None
    """The time of the newest event that is gone, if events have lifetimes: time never goes back."""

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads back."""
        # Only relations have a key: folders without any stay readable for what knows of none.
        key = {"key": list(self.schema.key)} if self.schema.key else {}
        given = self.schema.documents
        documents = {} if given is None else {"documents": [given.format, given.time]}
        clock = {} if self.clock_us is None else {"clock": self.clock_us}
        return {
            "version": self.version,
            "stream_id": self.stream_id,
            **key,
            **documents,
            "columns": [
                [name, str(attribute.type), identity]
                for name, attribute, identity in zip(
                    self.schema.names, self.schema.attributes, self.column_ids, strict=True
                )
            ],
            "log": self.log,
            "log_end": self.log_end,
            "options": self.options.to_json(),
            "next_column_id": self.next_column_id,
            "next_seq": self.next_seq,
            "segments": [part.to_json() for part in self.segments.parts],
            "commit_ids": list(self.commit_ids),
            "retired": [[retired.file, retired.at_s] for retired in self.retired],
            "decisions": [[decision.at_s, decision.what] for decision in self.decisions],
            "dropped_before": self.dropped_before,
            **clock,
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any], folder: Path) -> Manifest:
        """Read what `to_json` wrote; listings are in the folder."""
        columns = entry["columns"]
        dropped, clock = entry["dropped_before"], entry.get("clock")
        return cls(
            version=whole(entry["version"]),
            stream_id=str(entry["stream_id"]),
            schema=Schema(
                tuple(Attribute(str(name), DataType.parse(kind)) for name, kind, _ in columns),
                tuple(map(str, entry.get("key", ()))),
                documents=document_format(entry.get("documents")),
            ),
            column_ids=tuple(whole(identity) for _, _, identity in columns),
            log=checked_name(entry["log"]),
            # Folders written by earlier versions have none.
            log_end=whole(entry.get("log_end", 0)),
            options=StreamOptions.from_json(entry["options"]),
            next_column_id=whole(entry["next_column_id"]),
            next_seq=whole(entry["next_seq"]),
            segments=SegmentList(
                Listing.from_json(folder, part) if "listing" in part else Segment.from_json(part)
                for part in entry["segments"]
            ),
            commit_ids=tuple(map(str, entry["commit_ids"])),
            retired=tuple(Retired(str(file), float(at_s)) for file, at_s in entry["retired"]),
            decisions=tuple(Decision(float(at_s), str(what)) for at_s, what in entry["decisions"]),
            dropped_before=None if dropped is None else whole(dropped),
            clock_us=None if clock is None else whole(clock),
        )

    def check_listings(self) -> None:
        """Read all listings, and raise what is wrong with them."""
        for listing in self.segments.listings:
            assert len(listing.segments) == listing.count

    @property
    def files(self) -> frozenset[str]:
        """Every file that this version or an older snapshot may read."""
        listed = {name for segment in self.segments for name in segment.files}
        listed |= {listing.file for listing in self.segments.listings}
        return frozenset(listed | {self.log} | {retired.file for retired in self.retired})

    def bare(self) -> Manifest:
        """Return what is needed to read and write segments: the manifest without its lists."""
        return replace(self, segments=SegmentList(), commit_ids=(), retired=(), decisions=())

    @property
    def form(self) -> SegmentForm:
        """The form of a segment that begins now."""
        chosen = self.options.summaries
        return SegmentForm.of(
            self.schema,
            self.column_ids,
            self.schema.names if chosen is None else chosen,
            self.options.aggregates,
            self.options.codec,
            in_order=self.options.order == "time",
        )


def checked_name(name: object) -> str:
    """Return the name of a log; it must not point out of the folder."""
    if not isinstance(name, str) or not LOG_NAME.fullmatch(name):
        message = f"{name!r} is not the name of a log"
        raise ValueError(message)
    return name


def document_format(entry: object) -> DocumentFormat | None:
    """Return how the documents of a stream are written, if it has any."""
    match entry:
        case None:
            return None
        case [str(name), (str() | None) as time]:
            return DocumentFormat(name, time)
    message = f"{entry!r} is no format of documents"
    raise ValueError(message)


def manifest_path(folder: Path, version: int) -> Path:
    """Return where a version is written."""
    return folder / f"manifest-{version:020}.json"


def versions_in(folder: Path) -> list[int]:
    """Return the versions in a folder, ascending; none if there is no such folder."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 - there may be thousands
    except (FileNotFoundError, NotADirectoryError):
        return []
    likely = [name for name in names if name.startswith("manifest-")]
    return sorted(int(match[1]) for match in map(MANIFEST_NAME.fullmatch, likely) if match)


def is_newest(folder: Path, version: int) -> bool:
    """Whether a version is there and the next one is not, without listing the folder."""
    # As text: a Path for each would cost more than asking.
    newer = os.path.exists(f"{folder}/manifest-{version + 1:020}.json")  # noqa: PTH110
    return not newer and os.path.exists(f"{folder}/manifest-{version:020}.json")  # noqa: PTH110


def load_manifest(folder: Path) -> Manifest:
    """Read the newest version."""
    for attempt in range(READ_ATTEMPTS):
        noted = None if attempt else noted_newest(folder)
        is_known = noted is not None and is_newest(folder, noted)
        versions = [noted] if noted is not None and is_known else versions_in(folder)
        if not versions:
            break
        try:
            content = manifest_path(folder, versions[-1]).read_bytes()
        except FileNotFoundError:
            continue
        return decode_manifest(content, manifest_path(folder, versions[-1]))
    message = f"{folder} holds no stream"
    raise StoreError(message, hint="it was dropped, or its manifest files were deleted")


def with_listings(folder: Path, manifest: Manifest, before: Manifest, now_s: float) -> Manifest:
    """Return a manifest with its segments in listings, as far as they are due, and write those.

    Listings of the manifest before that are not needed any more are retired.
    """
    segments = in_listings(folder, manifest.segments, before.segments)
    gone: list[str] = []
    if not manifest.segments.follows(before.segments):
        still = {each.file for each in segments.listings}
        gone = [each.file for each in before.segments.listings if each.file not in still]
    retired = (*manifest.retired, *(Retired(file, now_s) for file in gone))
    return replace(manifest, segments=segments, retired=retired)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Commit a version; see the module's docstring for what a crash leaves."""
    path = manifest_path(folder, manifest.version)
    try:
        write_atomically(path, encode_manifest(manifest))
    except OSError as error:
        if path.exists():
            message = f"{path} is written, but may not survive a power failure: {error}"
            hint = "what was done is visible; check the disk before you do it again"
        else:
            message = f"cannot commit {path}: {error}"
            hint = "nothing was stored; check the disk's free space and the folder's permissions"
        raise StoreError(message, hint=hint) from error
    for version in versions_in(folder):
        if version <= manifest.version - KEPT_VERSIONS:
            remove(manifest_path(folder, version))


class OtherFormatError(StoreError):
    """A manifest is whole, but only another Eventide can read it."""


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the file's content."""
    stream = json.dumps(manifest.to_json(), separators=(",", ":"))
    is_listed = any(isinstance(part, Listing) for part in manifest.segments.parts)
    number = FORMAT if is_listed else WITHOUT_LISTINGS
    return f'{{"format":{number},"checksum":{checksum(stream)},"stream":{stream}}}\n'.encode()


def checksum(stream: str) -> int:
    """Return the checksum that tells a damaged manifest from a whole one."""
    return int(google_crc32c.value(stream.encode()))


def is_whole(content: bytes, entry: Mapping[str, Any]) -> bool:
    """Whether the checksum is that of the stream: of its text as it is, or as we would write it."""
    start = BEFORE_STREAM.match(content)
    if start is not None and google_crc32c.value(content[start.end() : -2]) == entry["checksum"]:
        return content.endswith(b"}\n")
    stream = json.dumps(entry["stream"], separators=(",", ":"))
    return bool(entry["checksum"] == checksum(stream))


def decode_manifest(content: bytes, path: Path) -> Manifest:
    """Read a file's content, refusing one that is damaged or from another Eventide.

    Listings that it names are read when they are needed: `Manifest.check_listings` reads them all.
    """
    try:
        entry = read_json(content)
        found = entry["format"]
        if type(found) is int and found in (WITHOUT_LISTINGS, FORMAT):
            if is_whole(content, entry):
                return Manifest.from_json(entry["stream"], path.parent)
            reason = "its checksum does not match"
        elif type(found) is int:
            message = f"{path} has format {found}; this Eventide reads up to {FORMAT}"
            raise OtherFormatError(message, hint="open the database with the version that wrote it")
        else:
            reason = f"its format is {str(found)[:40]!r}"
    except OtherFormatError:
        raise
    except EventideError as error:
        reason = error.message
    except DAMAGED as error:
        reason = f"{type(error).__name__}: {error}"
    message = f"{path} is damaged: {reason}"
    hint = "`eventide repair` goes back to the newest version that is whole; a backup has all"
    raise StoreError(message, hint=hint)
