"""How the values of one column of a leaf become plain buffers, and back.

An encoding is chosen by cheap measurement, for each column of each leaf. Its parameters are in an
`Encoded`, which the directory of the leaf stores; leaf.py describes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide.kernels.compiled import Int64s
from eventide.kernels.store import packing

NULLS = 0
PLAIN = 1
FRAME = 2
STEPS = 3
DICTIONARY = 4
TEXT = 5
TEXT_DICTIONARY = 6

BOOL = pa.bool_().id
INTEGERS = frozenset({pa.int64().id, pa.timestamp("us").id})
DOUBLE = pa.float64().id
DECIMAL = pa.decimal128(1).id
TEXTS = frozenset({pa.string().id, pa.binary().id})
ENCODINGS_OF = {
    BOOL: frozenset({PLAIN}),
    DOUBLE: frozenset({PLAIN, DICTIONARY}),
    DECIMAL: frozenset({PLAIN, FRAME, STEPS, DICTIONARY}),
    **dict.fromkeys(INTEGERS, frozenset({FRAME, STEPS, DICTIONARY})),
    **dict.fromkeys(TEXTS, frozenset({TEXT, TEXT_DICTIONARY})),
}

UNSIGNED: dict[int, type[np.unsignedinteger[Any]]] = {1: np.uint8, 2: np.uint16, 4: np.uint32}
LONGEST_TEXT = 2**31 - 1
ALIGNMENT = 8
RAW = 0
CODEC_NAMES = {1: "lz4_raw", 2: "zstd"}

Raw: TypeAlias = pa.Buffer | npt.NDArray[Any]


class DamagedLeafError(Exception):
    """A leaf is not what was written. It never leaves this package: readers name the file."""


@dataclass(slots=True)
class Encoded:
    """The encoded values of a column."""

    encoding: int
    buffers: list[Raw]
    width: int = 0
    base: int = 0
    step: int = 0
    bits: int = 0
    different: int = 0
    text: int = 0


class EncodedColumn:
    """A column as it is read: the same facts, and its buffers, to be taken one after the other."""

    __slots__ = (
        *("base", "bits", "codecs", "content", "different", "encoding", "nulls"),
        *("place", "position", "sizes", "step", "text", "width"),
    )

    def __init__(self, content: pa.Buffer, entry: tuple[int, ...]) -> None:
        self.content = content
        _, _, _, self.encoding, self.codecs, self.width, self.bits = entry[:7]
        self.nulls, self.base, self.step = entry[7:10]
        self.sizes = entry[10:14]
        self.different, self.text = entry[14:]
        self.position = 0
        self.place = 0

    def take_validity(self, rows: int) -> pa.Buffer | None:
        """Return the first buffer, if there is one."""
        if self.nulls:
            return self.take(-(-rows // 8))
        self.position = 1
        return None

    def take(self, size: int) -> pa.Buffer:
        """Return the next buffer, which has `size` bytes once it is decompressed."""
        stored = self.sizes[self.position]
        codec = self.codecs >> 2 * self.position & 3
        end = self.place + stored
        if end > self.content.size or (codec == RAW and stored != size):
            message = f"{size} bytes are stored in {stored}"
            raise DamagedLeafError(message)
        buffer = self.content.slice(self.place, stored)
        self.position += 1
        self.place = end + -end % ALIGNMENT
        if codec == RAW:
            return buffer
        if codec not in CODEC_NAMES:
            message = f"no codec {codec} is known"
            raise DamagedLeafError(message)
        return pa.Codec(CODEC_NAMES[codec]).decompress(buffer, decompressed_size=size)


def encode_values(column: pa.Array) -> Encoded:
    """Return the values of a column that has at least one, without its validity."""
    kind = column.type.id
    if kind in INTEGERS:
        return encode_integers(without_nulls(words_of(column), column))
    if kind == DOUBLE:
        values = without_nulls(words_of(column), column)
        return encode_few(values) or Encoded(PLAIN, [values])
    if kind in TEXTS:
        return encode_text(column)
    if kind == DECIMAL:
        return encode_decimals(column)
    if kind == BOOL:
        return Encoded(PLAIN, [bitmap_of(column.buffers()[1], column.offset, len(column))])
    message = f"a leaf cannot hold a column of type {column.type}"
    raise TypeError(message)


def decode_values(
    stored: EncodedColumn, kind: pa.DataType, rows: int, picked: pa.Array | None = None
) -> pa.Array:
    """Return a column of at least one row that is not null; with `picked`, of these rows only."""
    number = kind.id
    if stored.encoding not in ENCODINGS_OF.get(number, ()):
        message = f"{kind} has no encoding {stored.encoding}"
        raise DamagedLeafError(message)
    validity = stored.take_validity(rows)
    if number == DOUBLE:
        buffers = [validity, decode_words(stored, rows)]
    elif number in INTEGERS:
        buffers = [validity, decode_integers(stored, rows)]
    elif stored.encoding == TEXT_DICTIONARY:
        return decode_text_dictionary(stored, kind, rows, validity, picked)
    elif number in TEXTS:
        buffers = [validity, *decode_text(stored, rows)]
    elif number == DECIMAL:
        buffers = [validity, decode_decimals(stored, rows)]
    else:
        buffers = [validity, stored.take(-(-rows // 8))]
    column = pa.Array.from_buffers(kind, rows, buffers, stored.nulls)
    return column if picked is None else column.take(picked)


def encode_integers(values: Int64s) -> Encoded:
    """Store values or differences above the smallest, or the few different values."""
    low, high, step_low, step_high, overflow = packing.survey(values)
    width = bytes_for(high - low)
    if not overflow and len(values) > 1 and (narrow := bytes_for(step_high - step_low)) < width:
        steps = np.empty(len(values) - 1 if narrow else 0, UNSIGNED.get(narrow, np.uint8))
        packing.pack_steps(values, step_low, steps)
        encoded = Encoded(STEPS, [steps], narrow, int(values[0]), step_low)
    elif width < 8:
        encoded = Encoded(FRAME, [packed_frame(values, low, width)], width, low)
    else:
        encoded = Encoded(FRAME, [values], width)
    # Narrow numbers are read faster than codes, and are hardly longer.
    few = encode_few(values) if encoded.width >= 4 else None
    return few if few and size_of(few) < size_of(encoded) else encoded


def decode_integers(stored: EncodedColumn, rows: int) -> pa.Buffer:
    """Undo `encode_integers`: return 64-bit values."""
    width = stored.width
    if stored.encoding == DICTIONARY or width == 8:
        return decode_words(stored, rows)
    count = rows - 1 if stored.encoding == STEPS else rows
    packed = stored.take(count * width)
    out, values = room_for(rows)
    if width == 0:
        packing.write_ramp(stored.base, stored.step, values)
    elif stored.encoding == FRAME:
        packing.unpack_frame(view(packed, UNSIGNED[width]), stored.base, values)
    else:
        packing.unpack_steps(view(packed, UNSIGNED[width]), stored.base, stored.step, values)
    return out


def encode_few(words: Int64s) -> Encoded | None:
    """Store the different words, if they are few, and which of them each row has."""
    different = np.empty(len(words) // 2, np.int64)
    packed = np.empty(words_for(len(words), packing.bits_for(len(different))), np.uint64)
    count = packing.pack_few(words, packed, different)
    if count < 0:
        return None
    bits = packing.bits_for(count)
    packed = packed[: words_for(len(words), bits)]
    return Encoded(DICTIONARY, [packed, different[:count]], bits=bits, different=count)


def decode_words(stored: EncodedColumn, rows: int) -> pa.Buffer:
    """Return 64-bit values that are stored as they are, or in a dictionary."""
    if stored.encoding != DICTIONARY:
        return stored.take(rows * 8)
    words = take_codes(stored, rows)
    different = view(stored.take(stored.different * 8), np.int64)
    out, values = room_for(rows)
    if not packing.look_up(words, stored.bits, different, values):
        message = "a code is not in the dictionary"
        raise DamagedLeafError(message)
    return out


def encode_decimals(column: pa.Array) -> Encoded:
    """Store decimals of up to 64 bits as integers, longer ones as they are."""
    rows = len(column)
    words = view(column.buffers()[1], np.int64, 2 * rows, column.offset * 16)
    values = np.empty(rows, np.int64)
    if not packing.narrow_decimals(words, values):
        return Encoded(PLAIN, [words])
    values.flags.writeable = False
    return encode_integers(without_nulls(values, column))


def decode_decimals(stored: EncodedColumn, rows: int) -> pa.Buffer:
    """Undo `encode_decimals`."""
    if stored.encoding == PLAIN:
        return stored.take(rows * 16)
    values = view(decode_integers(stored, rows), np.int64)
    out, words = room_for(2 * rows)
    packing.widen_decimals(values, words)
    return out


def encode_text(column: pa.Array) -> Encoded:
    """Store lengths and bytes, of all rows or of the different ones with a code for each row."""
    plain = encode_lengths(TEXT, *lengths_and_data(column))
    if not has_few_texts(column):
        return plain
    encoded = column.dictionary_encode()
    indices = encoded.indices.fill_null(0)
    codes = view(indices.buffers()[1], np.int32, len(column), indices.offset * 4)
    short = encode_lengths(TEXT_DICTIONARY, *lengths_and_data(encoded.dictionary))
    short.different = len(encoded.dictionary)
    short.bits = packing.bits_for(short.different)
    packed = np.empty(words_for(len(column), short.bits), np.uint64)
    packing.pack_bits(codes, short.bits, packed)
    short.buffers.insert(0, packed)
    return short if size_of(short) < size_of(plain) else plain


def decode_text(stored: EncodedColumn, rows: int) -> tuple[pa.Buffer, pa.Buffer]:
    """Return Arrow's offsets and bytes of stored lengths and bytes."""
    packed = stored.take(rows * stored.width)
    data = stored.take(stored.text)
    out = pa.allocate_buffer((rows + 1) * 4)
    offsets = np.frombuffer(out, np.int32)
    if stored.width:
        total = packing.unpack_offsets(view(packed, UNSIGNED[stored.width]), stored.base, offsets)
    else:
        total = rows * stored.base
        offsets[:] = np.arange(rows + 1) * stored.base
    if total != stored.text or total > LONGEST_TEXT:
        message = f"strings of {total} bytes are stored in {stored.text}"
        raise DamagedLeafError(message)
    return out, data


def decode_text_dictionary(
    stored: EncodedColumn,
    kind: pa.DataType,
    rows: int,
    validity: pa.Buffer | None,
    picked: pa.Array | None,
) -> pa.Array:
    """Return the string of each row's code; with `picked`, of these rows only."""
    words = take_codes(stored, rows)
    offsets, data = decode_text(stored, stored.different)
    different = pa.Array.from_buffers(kind, stored.different, [None, offsets, data], 0)
    codes = pa.allocate_buffer(rows * 4)
    packing.unpack_codes(words, stored.bits, np.frombuffer(codes, np.int32))
    numbers = pa.Array.from_buffers(pa.int32(), rows, [validity, codes])
    return different.take(numbers if picked is None else numbers.take(picked))


def encode_lengths(encoding: int, lengths: Int64s, data: pa.Buffer) -> Encoded:
    """Store lengths above the shortest, and bytes."""
    shortest, longest, *_ = packing.survey(lengths)
    width = bytes_for(longest - shortest)
    packed = packed_frame(lengths, shortest, width)
    return Encoded(encoding, [packed, data], width, shortest, text=data.size)


def lengths_and_data(column: pa.Array) -> tuple[Int64s, pa.Buffer]:
    """Return the length of each string, and the bytes of all."""
    _, offsets, data = column.buffers()
    places = np.frombuffer(offsets, np.int32, len(column) + 1, column.offset * 4)
    lengths = np.diff(places).astype(np.int64)
    lengths.flags.writeable = False
    start, end = int(places[0]), int(places[-1])
    return lengths, data.slice(start, end - start) if data is not None else pa.py_buffer(b"")


def has_few_texts(column: pa.Array) -> bool:
    """Whether a sample suggests that a dictionary pays, as `has_few_values` of numbers."""
    sample = column.take(pa.array(packing.sample_places(len(column))))
    return packing.suggests_few(len(sample) - len(sample.unique()), len(sample))


def without_nulls(values: Int64s, column: pa.Array) -> Int64s:
    """Return values of a column with those under nulls replaced."""
    if not column.null_count:
        return values
    filled = np.empty(len(values), np.int64)
    packing.fill_nulls(values, view(column.buffers()[0], np.uint8), column.offset, filled)
    filled.flags.writeable = False
    return filled


def words_of(column: pa.Array) -> Int64s:
    """Return the values of a column of 64-bit values as words."""
    return view(column.buffers()[1], np.int64, len(column), column.offset * 8)


def bitmap_of(bits: pa.Buffer, offset: int, rows: int) -> Raw:
    """Return bits from their first, zeros after the last."""
    aligned = np.empty(-(-rows // 8), np.uint8)
    packing.align_bits(view(bits, np.uint8), offset, rows, aligned)
    return aligned


def packed_frame(values: Int64s, base: int, width: int) -> npt.NDArray[Any]:
    """Return values above their base in a width below eight; none at all in width zero."""
    if width == 0:
        return np.empty(0, np.uint8)
    packed = np.empty(len(values), UNSIGNED[width])
    packing.pack_frame(values, base, packed)
    return packed


def take_codes(stored: EncodedColumn, rows: int) -> npt.NDArray[Any]:
    """Return the packed codes, once their dictionary is one that rows can have."""
    if not 1 <= stored.bits <= 32 or not 1 <= stored.different <= rows:
        message = f"{rows} rows have {stored.different} different values in {stored.bits} bits"
        raise DamagedLeafError(message)
    return view(stored.take(words_for(rows, stored.bits) * 8), np.uint64)


def words_for(rows: int, bits: int) -> int:
    """Return how many 64-bit words codes take."""
    return -(-rows * bits // 64)


def bytes_for(largest: int) -> int:
    """Return the narrowest width that holds an unsigned number."""
    for width, bits in ((0, 0), (1, 8), (2, 16), (4, 32)):
        if largest >> bits == 0:
            return width
    return 8


def room_for(words: int) -> tuple[pa.Buffer, Int64s]:
    """Return a new buffer of Arrow's, which are reused and so seldom fault, and its words."""
    buffer = pa.allocate_buffer(words * 8)
    return buffer, np.frombuffer(buffer, np.int64)


def view(
    buffer: pa.Buffer, kind: type[np.generic], count: int = -1, offset: int = 0
) -> npt.NDArray[Any]:
    """Return a buffer as the read-only array that kernels take."""
    array: npt.NDArray[Any] = np.frombuffer(buffer, kind, count, offset)
    array.flags.writeable = False
    return array


def size_of(encoded: Encoded) -> int:
    """Return how many bytes the buffers have together."""
    return sum(
        buffer.nbytes if isinstance(buffer, np.ndarray) else int(buffer.size)
        for buffer in encoded.buffers
    )
