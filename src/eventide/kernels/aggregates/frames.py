"""Which rows belong to the frame of a row, or to a hopping window.

Rows lie in order of (key, ts); key k is rows [offsets[k], offsets[k+1]). The bounds ascend, also
from key to key, as the frame kernels of sums and extremes require.
"""

from __future__ import annotations

from eventide.kernels.compiled import Bools, Int64s, inline, kernel


@kernel
def range_frames(
    ts: Int64s, offsets: Int64s, preceding_us: int, left: Int64s, right: Int64s
) -> None:
    """Frame i = the rows of i's key with a time in [ts[i] - preceding_us, ts[i]]."""
    for key in range(len(offsets) - 1):
        start = offsets[key]
        end = offsets[key]
        for i in range(offsets[key], offsets[key + 1]):
            while ts[start] < ts[i] - preceding_us:
                start += 1
            if end <= i:
                end = i + 1
                while end < offsets[key + 1] and ts[end] == ts[i]:
                    end += 1
            left[i] = start
            right[i] = end


@kernel
def rows_frames(offsets: Int64s, preceding: int, left: Int64s, right: Int64s) -> None:
    """Frame i = row i and the `preceding` rows before it of the same key."""
    for key in range(len(offsets) - 1):
        for i in range(offsets[key], offsets[key + 1]):
            left[i] = max(offsets[key], i - preceding)
            right[i] = i + 1


@kernel
def keep_reachable_rows(
    order: Int64s, offsets: Int64s, done: int, preceding: int, keep: Bools
) -> None:
    """Mark the rows that ROWS frames of rows `done` and later can still reach.

    `order` gives the row numbers by key; within a key they ascend. Rows from `done` on are marked
    too.
    """
    for key in range(len(offsets) - 1):
        pending = offsets[key + 1]
        while pending > offsets[key] and order[pending - 1] >= done:
            pending -= 1
        for i in range(max(offsets[key], pending - preceding), offsets[key + 1]):
            keep[order[i]] = True


@inline
def first_window_after(instant_us: int, slide_us: int) -> int:
    """Return the first window start after an instant."""
    return (instant_us // slide_us + 1) * slide_us


@kernel
def window_frames(
    panes: Int64s,
    offsets: Int64s,
    window: tuple[int, int, int, int],
    starts: Int64s,
    keys: Int64s,
    left: Int64s,
    right: Int64s,
) -> int:
    """List the windows that hold a pane, with the panes [left, right) they hold; return how many.

    `window` is (size_us, slide_us, from_us, to_us): only windows with a start in [from, to) are
    listed. `panes` are pane starts, ascending within a key. With empty outputs, it only counts.
    """
    size, slide, from_us, to_us = window
    count = 0
    for key in range(len(offsets) - 1):
        begin = offsets[key]
        stop = offsets[key + 1]
        end = begin
        if begin == stop:
            continue
        start = first_window_after(max(panes[begin] - size, from_us - 1), slide)
        while start < to_us:
            while begin < stop and panes[begin] < start:
                begin += 1
            if begin == stop:
                break
            if panes[begin] >= start + size:
                start = first_window_after(panes[begin] - size, slide)
                continue
            end = max(end, begin)
            while end < stop and panes[end] < start + size:
                end += 1
            if count < len(starts):
                starts[count] = start
                keys[count] = key
                left[count] = begin
                right[count] = end
            count += 1
            start += slide
    return count
