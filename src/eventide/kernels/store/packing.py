"""Columns into fewer bytes and back: frames, differences, dictionaries, bitmaps."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from eventide.kernels.compiled import Int32s, Int64s, call, inline, kernel
from eventide.kernels.hashing import GOLDEN

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Packed = npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | npt.NDArray[np.uint32]

SAMPLE = 512
# Among 512 values drawn from n different ones about 512 * 512 / 2n meet an equal one. Fewer than
# this many say that more than 13,000 differ, and then a dictionary of 64-bit values hardly pays.
MEETINGS = 10


@kernel
def survey(values: Int64s) -> tuple[int, int, int, int, bool]:
    """Return the range of the values, of their differences, and whether a difference overflows."""
    low = high = values[0]
    step_low, step_high = np.int64(2**63 - 1), np.int64(-(2**63))
    overflow = np.int64(0)
    for i in range(1, len(values)):
        value, before = values[i], values[i - 1]
        low, high = min(low, value), max(high, value)
        step = value - before
        step_low, step_high = min(step_low, step), max(step_high, step)
        # Wrong only if the two differ in sign and the result has not the sign of the first.
        overflow |= (value ^ before) & (value ^ step)
    return int(low), int(high), int(step_low), int(step_high), bool(overflow < 0)


@kernel
def fill_nulls(values: Int64s, valid: Bytes, offset: int, out: Int64s) -> None:
    """Copy values; a null gets the one before it, so that it widens no range.

    Nulls at the start get the first value; there has to be one.
    """
    start = 0
    while not valid[(offset + start) >> 3] >> ((offset + start) & 7) & 1:
        start += 1
    last = values[start]
    for i in range(len(values)):
        place = offset + i
        if valid[place >> 3] >> (place & 7) & 1:
            last = values[i]
        out[i] = last


@kernel
def pack_frame(values: Int64s, base: int, out: Packed) -> None:
    """Write the difference of each value to the smallest."""
    for i in range(len(values)):
        out[i] = values[i] - base


@kernel
def unpack_frame(packed: Packed, base: int, out: Int64s) -> None:
    """Undo `pack_frame`."""
    for i in range(len(packed)):
        out[i] = np.int64(packed[i]) + base


@kernel
def pack_steps(values: Int64s, smallest: int, out: Packed) -> None:
    """Write the difference of each step between neighbours to the smallest step."""
    for i in range(len(out)):
        out[i] = values[i + 1] - values[i] - smallest


@kernel
def unpack_steps(packed: Packed, first: int, smallest: int, out: Int64s) -> None:
    """Undo `pack_steps`: a running sum."""
    value = np.int64(first)
    out[0] = value
    for i in range(len(packed)):
        value += np.int64(packed[i]) + smallest
        out[i + 1] = value


@kernel
def write_ramp(first: int, step: int, out: Int64s) -> None:
    """Write first, first + step, and so on."""
    for i in range(len(out)):
        out[i] = first + i * step


@kernel
def unpack_offsets(packed: Packed, shortest: int, out: Int32s) -> int:
    """Turn lengths above the shortest into Arrow's offsets; return the last before it wraps."""
    place = np.int64(0)
    out[0] = 0
    for i in range(len(packed)):
        place += np.int64(packed[i]) + shortest
        out[i + 1] = place
    return int(place)


@kernel
def narrow_decimals(words: Int64s, out: Int64s) -> bool:
    """Copy the low word of each 128-bit number; False if a high word has more than the sign."""
    lost = np.int64(0)
    for i in range(len(out)):
        out[i] = words[2 * i]
        lost |= words[2 * i + 1] ^ (words[2 * i] >> 63)
    return bool(lost == 0)


@kernel
def widen_decimals(values: Int64s, out: Int64s) -> None:
    """Undo `narrow_decimals`."""
    for i in range(len(values)):
        out[2 * i] = values[i]
        out[2 * i + 1] = values[i] >> 63


@kernel
def align_bits(bits: Bytes, offset: int, count: int, out: Bytes) -> None:
    """Copy a run of bits that starts anywhere to one that starts a byte; the rest is zero."""
    first, shift = offset >> 3, offset & 7
    for i in range(len(out)):
        byte = np.int64(bits[first + i]) >> shift
        if shift and first + i + 1 < len(bits):
            byte |= np.int64(bits[first + i + 1]) << (8 - shift)
        out[i] = byte & 255
    if count & 7:
        out[len(out) - 1] &= (1 << (count & 7)) - 1


@inline
def find_slot(value: int, values: Int64s, table: Int32s, shift: np.uint64) -> np.int64:
    """Return where in a hash table of positions a value is, or would be."""
    slot = np.int64((np.uint64(value) * GOLDEN) >> shift)
    while table[slot] >= 0 and values[table[slot]] != value:
        slot = (slot + 1) & (len(table) - 1)
    return slot


@kernel
def sample_places(rows: int) -> Int64s:
    """Return which rows to sample: at uneven distances, in case values recur at even ones."""
    stride = max(rows // SAMPLE, 1)
    places = np.arange(min(rows, SAMPLE)) * stride
    for i in range(len(places)):
        places[i] += np.int64((np.uint64(i) * GOLDEN) >> np.uint64(40)) % stride
    return places


@kernel
def suggests_few(met: int, looked: int) -> bool:
    """Whether enough values of a sample were equal that a dictionary may pay."""
    return met > 0 and met * SAMPLE >= MEETINGS * looked


@call
def has_few_values(values: Int64s) -> bool:
    """Whether a sample suggests that a dictionary pays."""
    places = sample_places(len(values))
    table = np.full(2 * SAMPLE, -1, dtype=np.int32)
    met = 0
    for place in places:
        slot = find_slot(values[place], values, table, np.uint64(54))
        if table[slot] >= 0:
            met += 1
        else:
            table[slot] = place
    return suggests_few(met, len(places))


@call
def build_dictionary(values: Int64s, codes: Int32s, different: Int64s) -> int:
    """Number the values in order of appearance.

    Return how many there are, or -1 if they are more than `different` has room for.
    """
    bits = 4
    while (1 << bits) < 2 * len(different):
        bits += 1
    table = np.full(1 << bits, -1, dtype=np.int32)
    shift = np.uint64(64 - bits)
    count = 0
    for i in range(len(values)):
        slot = find_slot(values[i], different, table, shift)
        if table[slot] < 0:
            if count == len(different):
                return -1
            table[slot] = count
            different[count] = values[i]
            count += 1
        codes[i] = table[slot]
    return count


@kernel
def bits_for(count: int) -> int:
    """Return how many bits a code below `count` has, at least one."""
    bits = 1
    while count > 1 << bits:
        bits += 1
    return bits


@kernel
def pack_bits(codes: Int32s, width: int, out: Words) -> None:
    """Write the low `width` bits of each code one after the other, at least one, at most 32."""
    word = np.uint64(0)
    filled = 0
    place = 0
    for i in range(len(codes)):
        code = np.uint64(codes[i])
        word |= code << np.uint64(filled)
        filled += width
        if filled >= 64:
            out[place] = word
            place += 1
            filled -= 64
            # What did not fit; a shift by 64 is not defined, so an exact fit is a case of its
            # own.
            word = code >> np.uint64(width - filled) if filled else np.uint64(0)
    if filled:
        out[place] = word


@kernel
def pack_few(values: Int64s, packed: Words, different: Int64s) -> int:
    """Write the different values and the packed codes, all in one call.

    Two threads that encode pass the interpreter's lock to each other at every call, which takes
    longer than a short kernel. Return how many values differ, or -1 if they are not few.
    """
    if not has_few_values(values):
        return -1
    codes = np.empty(len(values), dtype=np.int32)
    count = build_dictionary(values, codes, different)
    if count > 0:
        pack_bits(codes, bits_for(count), packed)
    return count


@inline
def code_at(words: Words, place: np.uint64) -> np.uint64:
    """Return the code that starts at a bit, and above it bits of the next."""
    shift = place & np.uint64(63)
    word = place >> np.uint64(6)
    # Without a branch, so that the compiler takes many at once. The word after the last is read
    # as the last: none of its bits are needed then. A shift by 64 is not defined, hence two.
    after = words[min(word + np.uint64(1), np.uint64(len(words) - 1))]
    high = (after << np.uint64(1)) << (np.uint64(63) - shift)
    return np.uint64((words[word] >> shift) | high)


@kernel
def unpack_codes(words: Words, width: int, out: Int32s) -> None:
    """Undo `pack_bits`."""
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    for i in range(len(out)):
        out[i] = np.int32(code_at(words, np.uint64(i * width)) & mask)


@kernel
def look_up(words: Words, width: int, different: Int64s, out: Int64s) -> bool:
    """Replace packed codes by their values; False if one has none."""
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    last = np.uint64(len(different) - 1)
    largest = np.uint64(0)
    for i in range(len(out)):
        code = code_at(words, np.uint64(i * width)) & mask
        largest = max(largest, code)
        out[i] = different[min(code, last)]
    return bool(largest <= last)
