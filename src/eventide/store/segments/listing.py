"""Listings: files with the entries of sealed segments, so that a commit need not write them again.

A manifest names listings in place of the segments in them, and where there are many listings, those
that name these. So a manifest is short however many segments there are. A listing never changes. If
one of its segments is replaced, the others get a new one, and the old one is kept as long as
replaced segments are. A listing is read when one of its segments is asked for, so opening a stream
reads none.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias, overload

import google_crc32c

from eventide.errors import EventideError
from eventide.store.files.disk import remove, write_atomically
from eventide.store.files.json_text import read_json, whole
from eventide.store.files.mapped import damaged
from eventide.store.segments.segment import Segment, SegmentForm

LISTED = 8
"""How many segments, or listings of one level, a listing has; a manifest has fewer of each."""
LISTING_NAME = re.compile(r"listing-[0-9a-f]{32}\.json")
WRONG = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)


@dataclass(frozen=True, eq=False)
class Listing:
    """A file of a stream's folder, and what is known of the segments in it."""

    folder: Path
    file: str
    checksum: int
    count: int
    """How many segments it has, those in its listings too."""
    rows: int
    """How many events its segments have that were not thinned."""
    level: int = 0
    """0 if it has segments; else it has listings of lower levels."""
    read: list[tuple[Part, ...]] = field(default_factory=list, repr=False)
    """What is in it, once that was asked for."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """The segments in it, or the listings."""
        if not self.read:
            self.read.append(self.read_file())
        return self.read[0]

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments in it, and in its listings."""
        return tuple(chain.from_iterable(map(segments_in, self.parts)))

    def read_file(self) -> tuple[Part, ...]:
        """Read what is in it, refusing a file that is not the one that is named."""
        path = self.folder / self.file
        try:
            content = path.read_bytes()
            if checksum(content) != self.checksum:
                raise damaged(path, "its checksum is not the one that it is known with")
            found = decoded(read_json(content), self)
        except FileNotFoundError:
            raise damaged(path, "it is missing") from None
        except WRONG as error:
            raise damaged(path, f"{type(error).__name__}: {error}") from error
        if (sum(map(count_of, found)), sum(map(rows_of, found))) != (self.count, self.rows):
            raise damaged(path, "it is known with other segments")
        return found

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads back."""
        level = {"level": self.level} if self.level else {}
        return {
            "listing": self.file,
            "checksum": self.checksum,
            "segments": self.count,
            "rows": self.rows,
            **level,
        }

    @classmethod
    def from_json(cls, folder: Path, entry: Mapping[str, Any]) -> Listing:
        """Read what `to_json` wrote."""
        name = str(entry["listing"])
        told, count, rows = (whole(entry[each]) for each in ("checksum", "segments", "rows"))
        level = whole(entry.get("level", 0))
        if not LISTING_NAME.fullmatch(name) or count < 1 or level < 0:
            message = f"no listing is {dict(entry)}"
            raise ValueError(message)
        return cls(folder, name, told, count, rows, level)

    @classmethod
    def write(cls, folder: Path, parts: tuple[Part, ...], level: int = 0) -> Listing:
        """Put segments or listings into a new file, which is on the disk at the end."""
        name = f"listing-{uuid.uuid4().hex}.json"
        content = encoded(parts)
        try:
            write_atomically(folder / name, content)
        except BaseException:
            remove(folder / name)
            raise
        count, rows = sum(map(count_of, parts)), sum(map(rows_of, parts))
        return cls(folder, name, checksum(content), count, rows, level, [parts])


Part: TypeAlias = Listing | Segment


def segments_in(part: Part) -> tuple[Segment, ...]:
    """Return the segments that a part stands for, which reads its listings."""
    return part.segments if isinstance(part, Listing) else (part,)


def count_of(part: Part) -> int:
    """Return how many segments a part stands for."""
    return part.count if isinstance(part, Listing) else 1


def rows_of(part: Part) -> int:
    """Return how many events a part has in segments that were not thinned."""
    return 0 if isinstance(part, Segment) and part.thinned else part.rows


class SegmentList(Sequence[Segment]):
    """The sealed segments of a manifest, some of them in listings; equal to a tuple of them."""

    def __init__(self, parts: Iterable[Part] = ()) -> None:
        self.parts = tuple(parts)

    @cached_property
    def every(self) -> tuple[Segment, ...]:
        """All segments, which reads the listings."""
        return tuple(chain.from_iterable(map(segments_in, self.parts)))

    def __iter__(self) -> Iterator[Segment]:
        return iter(self.every)

    def __len__(self) -> int:
        return sum(map(count_of, self.parts))

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
        """All listings, those in listings too, which reads the latter."""
        return tuple(listings_in(self.parts))

    @property
    def rows(self) -> int:
        """How many events there are in segments that were not thinned; reads no listing."""
        return sum(map(rows_of, self.parts))

    def with_more(self, segments: Iterable[Segment]) -> SegmentList:
        """Return the list with segments behind the last; reads no listing."""
        return SegmentList((*self.parts, *segments))

    def follows(self, before: SegmentList) -> bool:
        """Whether nothing of the list before has gone; reads no listing."""
        return self.parts[: len(before.parts)] == before.parts


def listings_in(parts: Iterable[Part], *, known: bool = False) -> Iterator[Listing]:
    """Yield listings, each before those in it; with `known`, as far as no file has to be read."""
    for part in parts:
        if isinstance(part, Listing):
            yield part
            if part.level and (part.read or not known):
                yield from listings_in(part.parts, known=known)


def in_listings(folder: Path, segments: SegmentList, before: SegmentList) -> SegmentList:
    """Return the same segments with all but the newest in listings, and write those that are new.

    A listing of the list before stays if its segments still follow each other.
    """
    listed: list[Listing] = []
    loose: list[Segment] = []
    try:
        for part in with_known(segments, before):
            if isinstance(part, Segment):
                loose.append(part)
            if loose and (part is not loose[-1] or len(loose) == LISTED):
                add_listing(folder, listed, Listing.write(folder, tuple(loose)))
                loose.clear()
            if isinstance(part, Listing):
                add_listing(folder, listed, part)
    except BaseException:
        remove_new(folder, SegmentList(listed), before)
        raise
    return SegmentList((*listed, *loose))


def add_listing(folder: Path, listed: list[Listing], listing: Listing) -> None:
    """Add a listing to others, of which fewer than `LISTED` are of one level, the highest first."""
    listed.append(listing)
    lower = len(listed) - 1
    while lower and listed[lower - 1].level < listing.level:
        lower -= 1
    if lower < len(listed) - 1:
        # Segments before it were replaced: it may have no listings of a lower level before it.
        listed[lower:-1] = [Listing.write(folder, tuple(listed[lower:-1]), listing.level)]
    alike = listed[-LISTED:]
    if len(alike) == LISTED and {each.level for each in alike} == {listing.level}:
        upper = Listing.write(folder, tuple(alike), listing.level + 1)
        del listed[-LISTED:]
        add_listing(folder, listed, upper)


def remove_new(folder: Path, segments: SegmentList, before: SegmentList) -> None:
    """Delete the listings that a commit which failed has written."""
    known = {each.file for each in listings_in(before.parts, known=True)}
    for listing in listings_in(segments.parts, known=True):
        if listing.file not in known:
            remove(folder / listing.file)


def with_known(segments: SegmentList, before: SegmentList) -> Iterator[Part]:
    """Yield the parts of a list; segments that are a listing of the list before are that."""
    if segments.follows(before):
        yield from segments.parts
        return
    known: dict[int, list[Listing]] = {}
    for each in before.listings:
        known.setdefault(id(each.segments[0]), []).append(each)
    every = tuple(map(id, segments))
    place = 0
    while place < len(every):
        for listing in known.get(every[place], ()):
            if every[place : place + listing.count] == tuple(map(id, listing.segments)):
                yield listing
                place += listing.count
                break
        else:
            yield segments[place]
            place += 1


def encoded(parts: Iterable[Part]) -> bytes:
    """Return the content of a listing; what several segments look like is written once."""
    forms: dict[SegmentForm, int] = {}
    listings = [part.to_json() for part in parts if isinstance(part, Listing)]
    entries = [
        part.to_json(forms.setdefault(part.form, len(forms)))
        for part in parts
        if isinstance(part, Segment)
    ]
    of_segments = {"forms": [form.to_json() for form in forms], "segments": entries}
    content = {"listings": listings} if listings else of_segments
    return f"{json.dumps(content, separators=(',', ':'))}\n".encode()


def decoded(content: Mapping[str, Any], listing: Listing) -> tuple[Part, ...]:
    """Return the segments of a listing, or the listings."""
    try:
        if listing.level:
            found = [Listing.from_json(listing.folder, each) for each in content["listings"]]
            if any(each.level >= listing.level for each in found):
                message = f"a listing of level {listing.level} has only lower ones in it"
                raise ValueError(message)
            return tuple(found)
        forms = [SegmentForm.from_json(each) for each in content["forms"]]
        return tuple(
            Segment.from_json(each, forms[whole(each["form"])]) for each in content["segments"]
        )
    except EventideError as error:
        raise ValueError(error.message) from error


def checksum(content: bytes) -> int:
    """Return the checksum by which a manifest knows a listing."""
    return int(google_crc32c.value(content))
