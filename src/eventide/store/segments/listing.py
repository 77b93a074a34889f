"""Listings: files with the entries of sealed segments, so that a commit need not write them again.

A manifest names listings in place of the segments in them. A listing never changes. If one of its
segments is replaced, the others get a new one, and the old one is kept as long as replaced segments
are. A listing is read when one of its segments is asked for, so opening a stream reads none.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, overload

import google_crc32c

from eventide.errors import EventideError
from eventide.store.files.disk import remove, write_atomically
from eventide.store.files.json_text import read_json, whole
from eventide.store.files.mapped import damaged
from eventide.store.segments.segment import Segment, SegmentForm

LISTED = 8
"""How many segments a listing has; of the newest, fewer than this are in the manifest itself."""
LISTING_NAME = re.compile(r"listing-[0-9a-f]{32}\.json")
WRONG = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)


@dataclass(frozen=True, eq=False)
class Listing:
    """A file of a stream's folder, and what a manifest knows of the segments in it."""

    folder: Path
    file: str
    checksum: int
    count: int
    rows: int
    """How many events its segments have that were not thinned."""
    read: list[tuple[Segment, ...]] = field(default_factory=list, repr=False)
    """The segments, once they were asked for."""

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments in it."""
        if not self.read:
            self.read.append(self.read_file())
        return self.read[0]

    def read_file(self) -> tuple[Segment, ...]:
        """Read the segments, refusing a file that is not the one the manifest names."""
        path = self.folder / self.file
        try:
            content = path.read_bytes()
            if checksum(content) != self.checksum:
                raise damaged(path, "its checksum is not the one that the manifest has")
            found = decoded(read_json(content))
        except FileNotFoundError:
            raise damaged(path, "it is missing") from None
        except WRONG as error:
            raise damaged(path, f"{type(error).__name__}: {error}") from error
        if (len(found), stored_rows(found)) != (self.count, self.rows):
            raise damaged(path, "the manifest knows it with other segments")
        return found

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads back."""
        return {
            "listing": self.file,
            "checksum": self.checksum,
            "segments": self.count,
            "rows": self.rows,
        }

    @classmethod
    def from_json(cls, folder: Path, entry: Mapping[str, Any]) -> Listing:
        """Read what `to_json` wrote."""
        name = str(entry["listing"])
        told, count, rows = (whole(entry[each]) for each in ("checksum", "segments", "rows"))
        if not LISTING_NAME.fullmatch(name) or count < 1:
            message = f"no listing is {dict(entry)}"
            raise ValueError(message)
        return cls(folder, name, told, count, rows)

    @classmethod
    def write(cls, folder: Path, segments: tuple[Segment, ...]) -> Listing:
        """Put segments into a new file, which is on the disk at the end."""
        name = f"listing-{uuid.uuid4().hex}.json"
        content = encoded(segments)
        try:
            write_atomically(folder / name, content)
        except BaseException:
            remove(folder / name)
            raise
        rows = stored_rows(segments)
        return cls(folder, name, checksum(content), len(segments), rows, [segments])


Part: TypeAlias = Listing | Segment


class SegmentList(Sequence[Segment]):
    """The sealed segments of a manifest, some of them in listings; equal to a tuple of them."""

    def __init__(self, parts: Iterable[Part] = ()) -> None:
        self.parts = tuple(parts)

    @cached_property
    def every(self) -> tuple[Segment, ...]:
        """All segments, which reads the listings."""
        found: list[Segment] = []
        for part in self.parts:
            found += part.segments if isinstance(part, Listing) else (part,)
        return tuple(found)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self.every)

    def __len__(self) -> int:
        return sum(part.count if isinstance(part, Listing) else 1 for part in self.parts)

    @overload
    def __getitem__(self, place: int) -> Segment: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Segment, ...]: ...
    def __getitem__(self, place: int | slice) -> Segment | tuple[Segment, ...]:
        return self.every[place]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SegmentList | tuple):
            return self.every == tuple(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.every)

    def __repr__(self) -> str:
        return f"SegmentList({list(self.parts)})"

    def __reduce__(self) -> tuple[object, ...]:
        # Whoever gets it may have no such folder.
        return SegmentList, (self.every,)

    @property
    def listings(self) -> tuple[Listing, ...]:
        """The listings, in order."""
        return tuple(part for part in self.parts if isinstance(part, Listing))

    @property
    def rows(self) -> int:
        """How many events there are in segments that were not thinned; reads no listing."""
        loose = (part for part in self.parts if isinstance(part, Segment))
        return sum(each.rows for each in self.listings) + stored_rows(loose)

    def with_more(self, segments: Iterable[Segment]) -> SegmentList:
        """Return the list with segments behind the last; reads no listing."""
        return SegmentList((*self.parts, *segments))


def stored_rows(segments: Iterable[Segment]) -> int:
    """Return how many events segments have that were not thinned."""
    return sum(each.rows for each in segments if not each.thinned)


def in_listings(folder: Path, segments: SegmentList, before: SegmentList) -> SegmentList:
    """Return the same segments with all but the newest in listings, and write those that are new.

    A listing of the list before stays if its segments still follow each other.
    """
    parts: list[Part] = []
    loose: list[Segment] = []
    try:
        for part in with_known(segments, before):
            if isinstance(part, Segment):
                loose.append(part)
            if loose and (part is not loose[-1] or len(loose) == LISTED):
                parts.append(Listing.write(folder, tuple(loose)))
                loose.clear()
            if isinstance(part, Listing):
                parts.append(part)
    except BaseException:
        remove_new(folder, SegmentList(parts), before)
        raise
    return SegmentList((*parts, *loose))


def remove_new(folder: Path, segments: SegmentList, before: SegmentList) -> None:
    """Delete the listings that a commit which failed has written."""
    known = {each.file for each in before.listings}
    for listing in segments.listings:
        if listing.file not in known:
            remove(folder / listing.file)


def with_known(segments: SegmentList, before: SegmentList) -> Iterator[Part]:
    """Yield the parts of a list; segments that are a listing of the list before are that."""
    if segments.parts[: len(before.parts)] == before.parts:
        yield from segments.parts
        return
    known = {id(each.segments[0]): each for each in before.listings}
    every = segments.every
    place = 0
    while place < len(every):
        listing = known.get(id(every[place]))
        following = () if listing is None else every[place : place + listing.count]
        if listing is not None and list(map(id, following)) == list(map(id, listing.segments)):
            yield listing
            place += listing.count
        else:
            yield every[place]
            place += 1


def encoded(segments: Iterable[Segment]) -> bytes:
    """Return the content of a listing; what several segments look like is written once."""
    forms: dict[SegmentForm, int] = {}
    entries = [segment.to_json(forms.setdefault(segment.form, len(forms))) for segment in segments]
    listing = {"forms": [form.to_json() for form in forms], "segments": entries}
    return f"{json.dumps(listing, separators=(',', ':'))}\n".encode()


def decoded(listing: Mapping[str, Any]) -> tuple[Segment, ...]:
    """Return the segments of a listing."""
    try:
        forms = [SegmentForm.from_json(each) for each in listing["forms"]]
        return tuple(
            Segment.from_json(each, forms[whole(each["form"])]) for each in listing["segments"]
        )
    except EventideError as error:
        raise ValueError(error.message) from error


def checksum(content: bytes) -> int:
    """Return the checksum by which a manifest knows a listing."""
    return int(google_crc32c.value(content))
