"""Numbers for buckets of keys that Spark spreads evenly over its partitions."""

from __future__ import annotations

from functools import cache


@cache
def even_labels(buckets: int) -> tuple[int, ...]:
    """Return a number for each bucket, so that Spark spreads them evenly over its partitions.

    Spark places rows by a hash of their key, and puts 3 of the numbers 0 to 7 on one of two
    partitions and 5 on the other. These hash to every remainder once. They depend only on the
    number of buckets, because they are the keys of the state.
    """
    found: dict[int, int] = {}
    label = 0
    while len(found) < buckets:
        found.setdefault(spark_hash(label) % buckets, label)
        label += 1
    return tuple(found[remainder] for remainder in range(buckets))


def spark_hash(number: int) -> int:
    """Return Spark's `hash` of an int: Murmur3 in 32 bits, with 42 as its seed.

    >>> spark_hash(0), spark_hash(1)
    (933211791, -559580957)
    """
    mixed = rotated(number * 0xCC9E2D51, 15) * 0x1B873593
    mixed = rotated(42 ^ (mixed & 0xFFFFFFFF), 13) * 5 + 0xE6546B64
    mixed = (mixed ^ 4) & 0xFFFFFFFF
    mixed = (mixed ^ (mixed >> 16)) * 0x85EBCA6B & 0xFFFFFFFF
    mixed = (mixed ^ (mixed >> 13)) * 0xC2B2AE35 & 0xFFFFFFFF
    mixed ^= mixed >> 16
    return mixed - 2**32 if mixed >= 2**31 else mixed


def rotated(word: int, bits: int) -> int:
    """Return the low 32 bits of a word, rotated to the left."""
    word &= 0xFFFFFFFF
    return (word << bits | word >> (32 - bits)) & 0xFFFFFFFF
