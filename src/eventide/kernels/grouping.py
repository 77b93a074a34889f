"""Rows to groups: which window and key a row belongs to, and rows in order of their key."""

from __future__ import annotations

from eventide.kernels.compiled import Int32s, Int64s, kernel


@kernel
def group_by_pane(
    ts: Int64s,
    codes: Int32s,
    pane_us: int,
    group_of_key: Int64s,
    groups: Int64s,
    pane_of: Int64s,
    key_of: Int64s,
) -> int:
    """Number the distinct (pane, key) pairs in order of first occurrence; return their number.

    A pane is [k·pane_us, (k+1)·pane_us). `ts` ascends, `codes` index `group_of_key`, which starts
    at -1. Row i is in group `groups[i]`, which is pane `pane_of[g]` of key `key_of[g]`.
    """
    count = 0
    first_of_pane = 0
    pane_start = 0
    pane_end = 0
    for i in range(len(ts)):
        if i == 0 or ts[i] >= pane_end:
            # Floor division: panes before 1970 start below their events too.
            pane_start = (ts[i] // pane_us) * pane_us
            pane_end = pane_start + pane_us
            first_of_pane = count
        group = group_of_key[codes[i]]
        # Groups of earlier panes have smaller numbers, so nothing needs to be reset.
        if group < first_of_pane:
            group = count
            group_of_key[codes[i]] = group
            pane_of[group] = pane_start
            key_of[group] = codes[i]
            count += 1
        groups[i] = group
    return count


@kernel
def number_events(codes: Int32s, seen: Int64s, numbers: Int64s) -> None:
    """Number the events of each key from seen[key] on, and count them there."""
    for i in range(len(codes)):
        numbers[i] = seen[codes[i]]
        seen[codes[i]] += 1


@kernel
def group_by_key_and_pane(
    codes: Int32s,
    panes: Int64s,
    group_of_key: Int64s,
    groups: Int64s,
    pane_of: Int64s,
    key_of: Int32s,
) -> int:
    """Number the distinct (pane, key) pairs in order of first occurrence; return their number.

    The panes of each key ascend. `codes` index `group_of_key`, which starts at -1. Row i is in
    group `groups[i]`, pane `pane_of[g]` of key `key_of[g]`.
    """
    count = 0
    for i in range(len(codes)):
        group = group_of_key[codes[i]]
        if group < 0 or pane_of[group] != panes[i]:
            group = count
            group_of_key[codes[i]] = group
            pane_of[group] = panes[i]
            key_of[group] = codes[i]
            count += 1
        groups[i] = group
    return count


@kernel
def order_by_key(codes: Int32s, offsets: Int64s, order: Int64s) -> None:
    """Write the stable order that puts equal keys together.

    Key k is order[offsets[k]:offsets[k+1]]. `offsets` has one more entry than there are keys, and
    starts at zero.
    """
    for code in codes:
        offsets[code + 1] += 1
    for key in range(1, len(offsets)):
        offsets[key] += offsets[key - 1]
    place = offsets.copy()
    for i in range(len(codes)):
        order[place[codes[i]]] = i
        place[codes[i]] += 1


@kernel
def order_behind(kept: Int64s, codes: Int32s, offsets: Int64s, order: Int64s) -> bool:
    """Write the order of `order_by_key` where key k has kept[k] rows before those of `codes`.

    Kept rows come first, by key; later keys have none. Returns whether rows keep their places.
    """
    before = 0
    for key in range(len(kept)):
        offsets[key + 1] = kept[key]
        before += kept[key]
    for code in codes:
        offsets[code + 1] += 1
    for key in range(1, len(offsets)):
        offsets[key] += offsets[key - 1]
    place = offsets.copy()
    row = 0
    for key in range(len(kept)):
        for _ in range(kept[key]):
            order[place[key]] = row
            place[key] += 1
            row += 1
    stays = True
    for i in range(len(codes)):
        at = place[codes[i]]
        order[at] = before + i
        place[codes[i]] += 1
        stays &= at == before + i
    return stays


@kernel
def count_keys(codes: Int32s, first: int, last: int, counts: Int64s) -> None:
    """Count the rows [first, last) of each key; `counts` starts at zero."""
    for i in range(first, last):
        counts[codes[i]] += 1


@kernel
def order_range(codes: Int32s, first: int, last: int, place: Int64s, order: Int64s) -> None:
    """Write the rows [first, last), those of each key from `place` on: a part of `order_by_key`."""
    for i in range(first, last):
        order[place[codes[i]]] = i
        place[codes[i]] += 1
