"""The versioned list of a stream's segments: what is committed, and nothing else.

Version n is the file `manifest-<n, 20 digits>.json`. **The file with the highest number is the
stream**; there is no other pointer. A commit writes n + 1 beside it: a temporary file, fsync,
rename, fsync of the folder. So a crash leaves version n or version n + 1, both complete. The
last `KEPT_VERSIONS` files stay, for repair by hand; readers need only the newest.

The file is one JSON object: `format`, `checksum` (CRC-32 of the text of `stream`), `stream`.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eventide.errors import EventideError, StoreError
from eventide.schema import Schema
from eventide.store.durable import remove, write_atomically
from eventide.store.segment import Segment

FORMAT = 2
KEPT_VERSIONS = 8
MANIFEST_NAME = re.compile(r"manifest-(\d{20})\.json")
# A reader that lists the folder just before a burst of commits may find its file swept.
READ_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class Retired:
    """A file that compaction replaced, and when: older snapshots may still read it."""

    file: str
    at_s: float


@dataclass(frozen=True, slots=True)
class Manifest:
    """One version of a stream. `commit_ids` are the newest last."""

    version: int
    schema: Schema
    next_seq: int = 0
    segments: tuple[Segment, ...] = ()
    commit_ids: tuple[str, ...] = ()
    retired: tuple[Retired, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads back."""
        return {
            "version": self.version,
            "schema": self.schema.to_json(),
            "next_seq": self.next_seq,
            "segments": [segment.to_json() for segment in self.segments],
            "commit_ids": list(self.commit_ids),
            "retired": [[retired.file, retired.at_s] for retired in self.retired],
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Manifest:
        """Read what `to_json` wrote."""
        return cls(
            version=int(entry["version"]),
            schema=Schema.of(entry["schema"]),
            next_seq=int(entry["next_seq"]),
            segments=tuple(Segment.from_json(segment) for segment in entry["segments"]),
            commit_ids=tuple(map(str, entry["commit_ids"])),
            retired=tuple(Retired(str(file), float(at_s)) for file, at_s in entry["retired"]),
        )

    @property
    def files(self) -> frozenset[str]:
        """Every file that this version or an older snapshot may read."""
        return frozenset(s.file for s in self.segments) | {r.file for r in self.retired}


def manifest_path(folder: Path, version: int) -> Path:
    """Return where a version is written."""
    return folder / f"manifest-{version:020}.json"


def versions_in(folder: Path) -> list[int]:
    """Return the versions in a folder, ascending; none if there is no such folder."""
    try:
        names = [path.name for path in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(int(match[1]) for match in map(MANIFEST_NAME.fullmatch, names) if match)


def load_manifest(folder: Path) -> Manifest:
    """Read the newest version."""
    for _ in range(READ_ATTEMPTS):
        versions = versions_in(folder)
        if not versions:
            break
        try:
            content = manifest_path(folder, versions[-1]).read_bytes()
        except FileNotFoundError:
            continue
        return decode_manifest(content, manifest_path(folder, versions[-1]))
    message = f"{folder} holds no stream"
    raise StoreError(message, hint="it was dropped, or its manifest files were deleted")


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Commit a version; see the module's docstring for what a crash leaves."""
    path = manifest_path(folder, manifest.version)
    try:
        write_atomically(path, encode_manifest(manifest))
    except OSError as error:
        if path.exists():
            message = f"{path} is written, but may not survive a power failure: {error}"
            hint = "the events are visible; check the disk before you append them again"
        else:
            message = f"cannot commit {path}: {error}"
            hint = "nothing was stored; check the disk's free space and the folder's permissions"
        raise StoreError(message, hint=hint) from error
    for version in versions_in(folder):
        if version <= manifest.version - KEPT_VERSIONS:
            remove(manifest_path(folder, version))


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the file's content."""
    stream = json.dumps(manifest.to_json(), separators=(",", ":"))
    return f'{{"format":{FORMAT},"checksum":{checksum(stream)},"stream":{stream}}}\n'.encode()


def checksum(stream: str) -> int:
    """Return what tells a damaged manifest from a whole one."""
    return zlib.crc32(stream.encode())


def decode_manifest(content: bytes, path: Path) -> Manifest:
    """Read a file's content, refusing one that is damaged or from a later Eventide."""
    try:
        entry = json.loads(content)
        if entry["format"] != FORMAT:
            message = f"{path} has format {entry['format']}; this Eventide reads {FORMAT}"
            raise StoreError(message, hint="open the database with the version that wrote it")
        stream = json.dumps(entry["stream"], separators=(",", ":"))
        if entry["checksum"] == checksum(stream):
            return Manifest.from_json(entry["stream"])
        reason = "its checksum does not match"
    except StoreError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, EventideError) as error:
        reason = f"{type(error).__name__}: {error}"
    message = f"{path} is damaged: {reason}"
    hint = (
        "restore it from a backup. Deleting it goes back to the version before, "
        "without the events of the last commit"
    )
    raise StoreError(message, hint=hint)
