"""Use the secondary indexes of a segment to find which of its leaves hold wanted values.

The index only rules leaves out; the rows of the others are tested as usual. So an answer never
depends on which segments have an index, nor on whether an index can be read.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from eventide.errors import StoreError
from eventide.kernels.compiled import Int64s
from eventide.schema import DataType
from eventide.store.files.mapped import MAPPED
from eventide.store.index.ranges import ValueRange
from eventide.store.index.secondary import DamagedRunError, SecondaryReader
from eventide.store.segments.segment import Segment, SegmentIndex

log = logging.getLogger("eventide.store")


def index_hits(
    folder: Path, segment: Segment, where: Mapping[str, ValueRange], most: int
) -> Int64s | None:
    """Return the times of all events that meet the most selective indexed condition, ascending.

    None if there is no such index, or if more than `most` events would qualify: then it would
    hardly rule out a leaf.
    """
    best: tuple[int, SecondaryReader, ValueRange] | None = None
    for index in segment.indexes:
        condition = where.get(index.attribute)
        if condition is None:
            continue
        try:
            kind = segment.form.schema.type_of(index.attribute)
            reader = reader_of(folder, index, kind)
            count = reader.count(condition)
        except (DamagedRunError, StoreError) as error:
            log.warning("index %s is not used: %s", folder / index.file, error)
            continue
        if count <= most and (best is None or count < best[0]):
            best = (count, reader, condition)
    if best is None:
        return None
    try:
        return best[1].lookup(best[2])[0]
    except DamagedRunError as error:
        log.warning("an index of %s is not used: %s", folder / segment.file, error)
        return None


@lru_cache(maxsize=512)
def reader_of(folder: Path, index: SegmentIndex, kind: DataType) -> SecondaryReader:
    """Return the reader of an index; its directory is read once."""
    end = max((start + length for start, length in index.extents), default=0)
    path = folder / index.file
    return SecondaryReader(MAPPED.content(path, end), index.extents, kind, path)
