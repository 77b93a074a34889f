"""Concatenate batches, and number their keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.accumulators.columns import one_spelling
from eventide.arrays import TEXT, no_rows, to_arrow, to_numpy
from eventide.errors import EvaluationError
from eventide.kernels.aggregates.extremes import first_by_group
from eventide.kernels.compiled import Int32s, Int64s, frozen
from eventide.kernels.texts import SPARE_BYTES, Words, gather_texts, number_texts
from eventide.operators.fingerprints import list_bytes

BLOCK_BYTES = 128 << 20
"""Batches are not concatenated beyond this size: a column of text holds at most 2 GiB."""
FEW_TEXTS = 4096
"""Up to this many different texts are numbered by our own kernel, which is quicker than Arrow's."""
FEW_ROWS = 512
"""To copy so few rows takes no longer than to keep them apart."""
USUAL_BYTES = 24
"""There is room for texts of this length on average, before it is known how long they are."""
MOST_BYTES = 1 << 30
"""A column of text has room for twice as much."""
MANY_ROWS = 4096
"""Arrow itself numbers and filters fewer rows than this in less time."""


Numbered = tuple[Int32s, list[pa.Array], int]
"""The number of each row's key, the columns of the keys by number, and how many there are."""

TextTable = tuple[Words, Words, Int32s]
"""A hash table of texts; see `kernels/texts.py`."""

# As they are: to look them up and to make options for each call takes longer than to copy few rows.
_TAKE, _UNCHECKED = pc.get_function("take"), pc.TakeOptions(boundscheck=False)
_FEWER = "select fewer or shorter columns, or keep less in a window"


class results_that_fit:  # noqa: N801 - read as a word of a with statement
    """Says what is too much if the rows of one step hold more text than a column can."""

    __slots__ = ()

    def __enter__(self) -> None:
        """Begin: every step of a live query does, so this is no generator."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Tell the error, if there is one."""
        if not isinstance(error, (pa.ArrowInvalid, pa.ArrowCapacityError)):
            return
        if "overflow" not in str(error) and not isinstance(error, pa.ArrowCapacityError):
            return
        message = "the rows of one step hold more than 2 GiB of text in a column"
        raise EvaluationError(message, hint=_FEWER) from error


def concat_batches(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows of all batches as one batch."""
    filled = [batch for batch in batches if batch.num_rows]
    if len(filled) == 1:
        return filled[0]
    if not filled:
        return no_rows(schema)
    return pa.concat_batches(filled)


def unchecked_take(column: pa.Array, places: pa.Array) -> pa.Array:
    """Return the values at places that are known to be there: not to look takes half the time."""
    return pc.take(column, places, boundscheck=False)


def with_later(
    batches: Sequence[pa.RecordBatch], rows: pa.RecordBatch
) -> tuple[pa.RecordBatch, ...]:
    """Return batches and rows that follow, as few batches: a row is copied a few times at most."""
    found = [*batches, rows]
    while len(found) > 1 and found[-2].num_rows <= FEW_ROWS + 2 * found[-1].num_rows:
        found[-2:] = [concat_batches(found[-2:], rows.schema)]
    return tuple(found)


def in_blocks(
    batches: Iterable[pa.RecordBatch], size: int, most_bytes: int = BLOCK_BYTES
) -> Iterator[pa.RecordBatch]:
    """Yield the rows in few batches, of at least `size` rows or `most_bytes`, except the last."""
    waiting: list[pa.RecordBatch] = []
    rows = held = 0
    for batch in batches:
        waiting.append(batch)
        rows, held = rows + batch.num_rows, held + batch.nbytes
        if rows >= size or held >= most_bytes:
            yield concat_batches(waiting, batch.schema)
            waiting, rows, held = [], 0, 0
    if waiting:
        yield concat_batches(waiting, waiting[0].schema)


def rows_where(passed: pa.BooleanArray, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows that pass; `passed` has no nulls."""
    count = passed.true_count
    if count == len(passed):
        return rows
    if len(passed) < MANY_ROWS:
        return rows.filter(passed)
    numbers = to_arrow(numbers_of(passed, count))
    # Column by column: Arrow takes a batch in twice the time.
    columns = [column.take(numbers) for column in rows.columns]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def numbers_of(passed: pa.BooleanArray, count: int) -> Int32s:
    """Return the numbers of the rows that are true, of which there are `count`."""
    # Few rows are filtered without it.
    from eventide.kernels.true_rows import WORD_BITS, true_rows

    word, first = divmod(passed.offset, WORD_BITS)
    end = first + len(passed)
    octets = np.frombuffer(passed.buffers()[1], np.uint8)[8 * word :][: -(-end // 8)]
    words = np.zeros(-(-end // WORD_BITS), np.uint64)
    words.view(np.uint8)[: len(octets)] = octets
    # Other bits of the column may lie before and behind.
    every = np.uint64(2**WORD_BITS - 1)
    words[0] &= every << np.uint64(first)
    words[-1] &= every >> np.uint64(-end % WORD_BITS)
    numbers = np.empty(count, np.int32)
    true_rows(frozen(words), first, numbers)
    return numbers


def rows_at(rows: pa.RecordBatch, places: Int64s) -> pa.RecordBatch:
    """Return the rows at some places, which are there: that is not checked again."""
    return _TAKE.call([rows, to_arrow(places)], _UNCHECKED)


def at_places(column: pa.Array, places: Int64s) -> pa.Array:
    """Return a column at some places, which are there.

    For few texts that takes half as long as by Arrow.
    """
    count = len(places)
    if column.type.id != TEXT or column.null_count or not 0 < count < MANY_ROWS:
        return _TAKE.call([column, to_arrow(places)], _UNCHECKED)
    _, bounds, data = column.buffers()
    offsets = frozen(np.frombuffer(bounds, np.int32, len(column) + 1, 4 * column.offset))
    octets = frozen(np.frombuffer(data or b"", np.uint8))
    ends, out = np.empty(count + 1, np.int32), np.empty(USUAL_BYTES * count, np.uint8)
    total = gather_texts(offsets, octets, frozen(places), ends, out)
    if total > len(out):
        # One text may be at many places.
        if total > MOST_BYTES:
            return _TAKE.call([column, to_arrow(places)], _UNCHECKED)
        out = np.empty(total, np.uint8)
        gather_texts(offsets, octets, frozen(places), ends, out)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(out[:total])]
    return pa.Array.from_buffers(column.type, count, buffers)


def encode_keys(columns: Sequence[pa.Array], length: int) -> Numbered:
    """Number the distinct keys; return the code of each row, the key columns by code, the count.

    Null is a key like any other. Without columns, all rows share one key.
    """
    if not columns:
        return frozen(np.zeros(length, np.int32)), [], 1
    columns = [one_spelling(column) for column in columns]
    codes, count = encode_column(columns[0])
    for column in columns[1:]:
        more, width = encode_column(column)
        codes, count = encode_column(to_arrow(codes.astype(np.int64) * width + more))
    first = np.full(count, -1, np.int64)
    first_by_group(codes, first)
    # The first row of each code provides the values of its key.
    return codes, [column.take(to_arrow(first)) for column in columns], count


def encode_more(known: Sequence[pa.Array], columns: Sequence[pa.Array], length: int) -> Numbered:
    """Number keys as `encode_keys` does, the known ones (all different) first."""
    if len(columns) == 1 and len(known[0]) and columns[0].type in (pa.string(), pa.int64()):
        found = pc.index_in(columns[0], value_set=known[0])
        if not found.null_count:
            return frozen(to_numpy(found)), list(known), len(known[0])
    if not columns:
        return frozen(np.zeros(length, np.int32)), [], 1
    old = len(known[0])
    if not old:
        return encode_keys(columns, length)
    both = [pa.concat_arrays(pair) for pair in zip(known, columns, strict=True)]
    codes, keys, count = encode_keys(both, old + length)
    return frozen(codes[old:]), keys, count


def encode_column(column: pa.Array) -> tuple[Int32s, int]:
    """Number the distinct values of a column in the order in which they first occur."""
    if pa.types.is_list(column.type):
        column = list_bytes(column)
    found = short_texts(column)
    if found is not None:
        return found[0], len(found[1])
    encoded = column.dictionary_encode(null_encoding="encode")
    return frozen(to_numpy(encoded.indices)), len(encoded.dictionary)


def short_texts(column: pa.Array) -> tuple[Int32s, Int64s] | None:
    """Return the number of each text, and the first row with each number, in order of occurrence.

    None if the column has few rows, nulls, long texts or many different ones.
    """
    if len(column) < MANY_ROWS or column.type.id != TEXT or column.null_count:
        return None
    return number_more(column, text_table(), 0)


def text_table() -> TextTable:
    """Return a table without texts."""
    low, high = np.zeros((2, 4 * FEW_TEXTS), np.uint64)
    return low, high, np.full(4 * FEW_TEXTS, -1, np.int32)


def number_more(column: pa.Array, table: TextTable, known: int) -> tuple[Int32s, Int64s] | None:
    """Number texts by a table of `known` ones, and put others into it with the next numbers.

    Returns the number of each text, and the first row with each new one. None if texts are long, or
    would be more than `FEW_TEXTS`: then the table is spoilt. There are no nulls.
    """
    offsets, words = text_words(column)
    codes, first = np.empty(len(column), np.int32), np.empty(FEW_TEXTS - known, np.int64)
    count = number_texts(offsets, words, *table, known, codes, first)
    return (frozen(codes), first[: count - known]) if count >= 0 else None


def text_words(column: pa.Array) -> tuple[Int32s, Words]:
    """Return where each text begins and ends, and the bytes of all of them as kernels read them."""
    _, bounds, data = column.buffers()
    offsets = np.frombuffer(bounds, np.int32, len(column) + 1, 4 * column.offset)
    begin, end = int(offsets[0]), int(offsets[-1])
    if end + SPARE_BYTES < (0 if data is None else data.size) and data.address % 8 == 0:
        words = np.frombuffer(data, np.uint64, data.size // 8)
    else:
        words = np.zeros((end - begin + SPARE_BYTES) // 8, np.uint64)
        if begin < end:
            words.view(np.uint8)[: end - begin] = np.frombuffer(data, np.uint8)[begin:end]
        offsets = offsets - np.int32(begin) if begin else offsets
    return frozen(offsets), frozen(words)
