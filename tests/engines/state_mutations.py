"""Wrong written states: damaged from outside, or wrong inside a correct envelope."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.errors import StateError
from eventide.operators.state import join_parts, split_parts

Tree = bytes | list["Tree"]
TELLING = (
    0,
    1,
    -1,
    2,
    3,
    7,
    15,
    16,
    63,
    64,
    255,
    2**20,
    2**31 - 1,
    2**31,
    2**62,
    2**63 - 1,
    -(2**63),
)
"""Numbers at which things go wrong."""


def opened(written: bytes) -> Tree:
    """Return the parts of what was written, and their parts."""
    try:
        parts = split_parts(written)
    except StateError:
        return written
    return [opened(part) for part in parts] if len(parts) < 100 else written


def closed(tree: Tree) -> bytes:
    return tree if isinstance(tree, bytes) else join_parts([closed(part) for part in tree])


def places_in(tree: Tree) -> list[tuple[int, ...]]:
    """Return the ways to all leaves of a tree."""
    if isinstance(tree, bytes):
        return [()]
    return [(i, *rest) for i, part in enumerate(tree) for rest in places_in(part)]


def at(tree: Tree, place: tuple[int, ...]) -> Tree:
    for i in place:
        if isinstance(tree, bytes) or i >= len(tree):
            return b""
        tree = tree[i]
    return tree


def with_part(tree: Tree, place: tuple[int, ...], part: Tree) -> Tree:
    if not place:
        return part
    assert isinstance(tree, list)
    first, *rest = place
    return [
        with_part(each, tuple(rest), part) if i == first else each for i, each in enumerate(tree)
    ]


# From without.


def flipped(written: bytes, choose: random.Random) -> bytes:
    """Flip one to three bits."""
    changed = bytearray(written)
    for _ in range(choose.randint(1, 3)):
        if changed:
            changed[choose.randrange(len(changed))] ^= 1 << choose.randrange(8)
    return bytes(changed)


def cut_off(written: bytes, choose: random.Random) -> bytes:
    return written[: choose.randrange(len(written))] if written else b""


def spliced(written: bytes, other: bytes, choose: random.Random) -> bytes:
    place = choose.randrange(1 + min(len(written), len(other)))
    return written[:place] + other[place:]


def moved(written: bytes, choose: random.Random) -> bytes:
    """Exchange two parts."""
    length = choose.randint(1, max(1, len(written) // 4))
    one, two = (choose.randrange(max(1, len(written) - length)) for _ in range(2))
    changed = bytearray(written)
    changed[one : one + length], changed[two : two + length] = (
        written[two : two + length],
        written[one : one + length],
    )
    return bytes(changed)


# Inside.


def inside(written: bytes, other: bytes, choose: random.Random) -> tuple[str, bytes]:
    """Return what was written with something wrong in it, and what that is."""
    tree, strange = opened(written), opened(other)
    kinds: list[Callable[[], tuple[str, Tree]]] = [
        lambda: ("bits", changed_leaf(tree, choose, flipped)),
        lambda: ("cut", changed_leaf(tree, choose, cut_off)),
        lambda: ("parts", exchanged(tree, choose)),
        lambda: ("count", recounted(tree, choose)),
        lambda: ("splice", transplanted(tree, strange, choose)),
    ]
    rows: list[Callable[[], tuple[str, Tree]]] = [
        lambda: ("rows", changed_leaf(tree, choose, wrong_rows))
    ]
    kind, wrong = choose.choice([*kinds, *(9 * rows)])()
    return kind, closed(wrong)


def changed_leaf(
    tree: Tree, choose: random.Random, change: Callable[[bytes, random.Random], bytes]
) -> Tree:
    place = choose.choice(places_in(tree))
    leaf = at(tree, place)
    assert isinstance(leaf, bytes)
    return with_part(tree, place, change(leaf, choose))


def exchanged(tree: Tree, choose: random.Random) -> Tree:
    one, two = (choose.choice(places_in(tree)) for _ in range(2))
    first, second = at(tree, one), at(tree, two)
    return with_part(with_part(tree, one, second), two, first)


def recounted(tree: Tree, choose: random.Random) -> Tree:
    place = choose.choice(places_in(tree))[:-1]
    parts = at(tree, place)
    if isinstance(parts, bytes) or not parts:
        return b""
    less = parts[:-1] if choose.random() < 0.5 else [*parts, parts[0]]
    return with_part(tree, place, less)


def transplanted(tree: Tree, strange: Tree, choose: random.Random) -> Tree:
    place = choose.choice(places_in(tree))
    return with_part(tree, place, at(strange, place))


def wrong_rows(leaf: bytes, choose: random.Random) -> bytes:
    """Change a value, a fact or the rows of an Arrow stream."""
    try:
        table = pa.ipc.open_stream(leaf).read_all().combine_chunks()
    except (pa.ArrowException, OSError):
        return wrong_words(leaf, choose)
    facts = dict(table.schema.metadata or {})
    if len(facts) > 1 and choose.random() < 0.25:
        name = choose.choice([fact for fact in facts if fact != b"operator"])
        facts[name] = str(number_near(int(facts[name]), choose)).encode()
        return rewritten(table, facts)
    if not table.num_rows or not table.num_columns:
        return flipped(leaf, choose)
    if "bytes" in table.column_names and choose.random() < 0.9:
        return rewritten(wrong_array(table, choose), facts)
    if choose.random() < 0.25:
        return rewritten(other_rows(table, choose), facts)
    return rewritten(wrong_value(table, choose), facts)


def wrong_words(leaf: bytes, choose: random.Random) -> bytes:
    if len(leaf) < 8 or len(leaf) % 8:
        return flipped(leaf, choose)
    words = np.frombuffer(leaf, np.int64).copy()
    place = choose.randrange(len(words))
    words[place] = clipped(number_near(int(words[place]), choose))
    return words.tobytes()


def rewritten(table: pa.Table, facts: dict[bytes, bytes]) -> bytes:
    sink = pa.BufferOutputStream()
    schema = table.schema.with_metadata(facts)
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(table.replace_schema_metadata(facts))
    return bytes(sink.getvalue())


def other_rows(table: pa.Table, choose: random.Random) -> pa.Table:
    """Shuffle rows, or have some of them only, or more than once."""
    order = list(range(table.num_rows))
    match choose.randrange(4):
        case 0:
            choose.shuffle(order)
        case 1:
            order = order[: choose.randrange(len(order))]
        case 2:
            order = [*order, choose.choice(order)]
        case _:
            order[choose.randrange(len(order))] = choose.choice(order)
    return table.take(pa.array(order, pa.int64()))


def wrong_value(table: pa.Table, choose: random.Random) -> pa.Table:
    place, row = choose.randrange(table.num_columns), choose.randrange(table.num_rows)
    column = table.column(place)
    values = column.to_pylist()
    kind = column.type
    if choose.random() < 0.15:
        values[row] = None
    elif choose.random() < 0.3:
        values[row] = choose.choice(values)
    elif pa.types.is_integer(kind):
        values = [None if each is None else int(each) for each in values]
        low, high = limits_of(kind)
        values[row] = min(max(number_near(values[row] or 0, choose), low), high)
    elif pa.types.is_timestamp(kind):
        numbers = column.cast(pa.int64()).to_pylist()
        numbers[row] = clipped(number_near(numbers[row] or 0, choose))
        fresh = pa.array(numbers, pa.int64()).view(kind)
        return table.set_column(place, table.schema.field(place), fresh)
    elif pa.types.is_floating(kind):
        values[row] = choose.choice((0.0, -1.0, float("nan"), float("inf"), 1e308, 5e-324))
    elif pa.types.is_boolean(kind):
        values[row] = not values[row]
    elif pa.types.is_string(kind):
        values[row] = choose.choice(("", "p", "another", "x" * 300))
    return table.set_column(place, table.schema.field(place), pa.array(values, kind))


def wrong_array(table: pa.Table, choose: random.Random) -> pa.Table:
    """Change a word of an array that is written as bytes, or its type or shape."""
    rows = table.to_pylist()
    sized = [row for row in rows if row["bytes"]]
    row: dict[str, Any] = choose.choice(sized or rows)
    match choose.randrange(12):
        case 0:
            row["type"] = choose.choice(("<i8", "<i4", "|b1", "<f8", "|O", "|i1", "nothing", "<i2"))
        case 1:
            row["shape"] = [number_near(each, choose) % 2**40 for each in row["shape"]]
        case 2:
            row["shape"] = [*row["shape"], 1]
        case 3:
            row["bytes"] = row["bytes"][: choose.randrange(1 + len(row["bytes"]))]
        case 4:
            row["name"] = choose.choice(rows)["name"]
        case 5:
            rows.remove(row)
        case _ if row["bytes"]:
            words = np.frombuffer(row["bytes"], np.dtype(row["type"])).copy()
            for _ in range(choose.choice((1, 1, 1, 4))):
                place = choose.randrange(len(words))
                near = clipped(number_near(int(words[place]), choose))
                words[place] = np.int64(near).astype(words.dtype)
            row["bytes"] = words.tobytes()
    return pa.Table.from_pylist(rows, schema=table.schema)


def number_near(number: int, choose: random.Random) -> int:
    match choose.randrange(3):
        case 0:
            return number + choose.choice((-1, 1, 2, -8, 8, 100, -100))
        case 1:
            return choose.choice(TELLING)
        case _:
            return number ^ (1 << choose.randrange(63))


def clipped(number: int) -> int:
    return min(max(number, -(2**63)), 2**63 - 1)


def limits_of(kind: pa.DataType) -> tuple[int, int]:
    bits = kind.bit_width
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
