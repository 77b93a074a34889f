"""Slices of a stream that many windows share.

    windows of 10     |---------|---------|
    windows of 4      |---|---|---|---|---|
    slices            |---|---|-|-|---|---|    each window covers whole slices

A slice begins with the first row behind a border, which is where a window begins or ends. Windows
are by place: they have sizes, slides and phases, and a window begins a phase behind every multiple
of its slide. What is next for a place that is free is never.
"""

from __future__ import annotations

from typing import NamedTuple

from eventide.kernels.compiled import Bools, Int32s, Int64s, inline, lean_kernel

NEVER = 2**63 - 1
FAR_US = 2**61
"""Keeps sums of an instant and a window's size inside 64 bits."""


class WindowTimes(NamedTuple):
    """How long windows are, how far apart they begin, and how far behind multiples of that."""

    sizes: Int64s
    slides: Int64s
    phases: Int64s


@inline
def next_start(instant_us: int, slide_us: int, phase_us: int) -> int:
    """Return the first instant after another at which a window begins."""
    return ((instant_us - phase_us) // slide_us + 1) * slide_us + phase_us


@inline
def times_at(windows: WindowTimes, place: int) -> tuple[int, int, int]:
    """Return the size, the slide and the phase of the windows of a place."""
    return windows.sizes[place], windows.slides[place], windows.phases[place]


@inline
def next_border(windows: WindowTimes, place: int, instant_us: int) -> int:
    """Return the first instant after another at which a window of a place begins or ends."""
    size, slide, phase = times_at(windows, place)
    start = next_start(instant_us, slide, phase)
    if size == slide:
        return int(start)
    return int(min(start, next_start(instant_us - size, slide, phase) + size))


@inline
def next_end(windows: WindowTimes, place: int, instant_us: int) -> int:
    """Return the first window end of a place after an instant, which is not far."""
    size, slide, phase = times_at(windows, place)
    return int(next_start(instant_us - size, slide, phase) + size)


@inline
def first_at(times: Int64s, begin: int, count: int, wanted: int) -> int:
    """Return the first place of ascending times, from `begin` on, that is not before an instant."""
    low, high = begin, count
    while low < high:
        middle = (low + high) // 2
        if times[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@lean_kernel
def mark_cuts(ts: Int64s, windows: WindowTimes, borders: Int64s, cuts: Bools) -> None:
    """Mark the rows with which a slice begins; move the next borders behind the last row.

    Rows without an event between them and a border cost nothing: the search goes from cut to cut.
    """
    count = len(ts)
    last = ts[count - 1]
    for place in range(len(borders)):
        border = borders[place]
        row = 0
        while border <= last:
            row = first_at(ts, row, count, border)
            cuts[row] = True
            border = next_border(windows, place, ts[row])
        borders[place] = border


@lean_kernel
def group_by_slice(
    cuts: Bools,
    codes: Int32s,
    group_of_key: Int64s,
    groups: Int64s,
    slice_of: Int64s,
    key_of: Int64s,
    first_row: Int64s,
) -> tuple[int, int]:
    """Number the pairs of slice and key in order of first occurrence; return slices and pairs.

    Row i is in group `groups[i]`, which is slice `slice_of[g]` of key `key_of[g]`. The first row
    begins slice 0, whether it is marked or not. `group_of_key` starts at -1.
    """
    count = first_of_slice = 0
    number = -1
    for i in range(len(groups)):
        if cuts[i] or i == 0:
            number += 1
            first_row[number] = i
            first_of_slice = count
        group = group_of_key[codes[i]]
        # Groups of earlier slices have smaller numbers, so nothing needs to be reset.
        if group < first_of_slice:
            group = count
            group_of_key[codes[i]] = group
            slice_of[group] = number
            key_of[group] = codes[i]
            count += 1
        groups[i] = group
    return number + 1, count


@lean_kernel
def set_due(windows: WindowTimes, closed_us: int, chosen: Bools, due: Int64s) -> None:
    """Write the first window end after an instant, which is not far, for chosen places."""
    for place in range(len(due)):
        if chosen[place]:
            due[place] = next_end(windows, place, closed_us)


@lean_kernel
def ended_windows(
    times: Int64s,
    windows: WindowTimes,
    due: Int64s,
    until_us: int,
    found: tuple[Int64s, Int64s, Int64s, Int64s],
) -> int:
    """List the windows with a slice that end at or before an instant; return how many.

    For each its place, its start, and the slices [left, right) that begin in it; slices begin at
    ascending `times`. With empty outputs it only counts; otherwise `due`, the next end of each
    place, is moved on. It may lie between those that `windows` would have: these follow it.
    """
    places, starts, left, right = found
    count, slices = 0, len(times)
    for place in range(len(due)):
        if due[place] > until_us:
            continue
        size = windows.sizes[place]
        start = due[place] - size
        begin = 0
        while start + size <= until_us:
            begin = first_at(times, begin, slices, start)
            if begin == slices:
                break
            if times[begin] >= start + size:
                start = next_end(windows, place, times[begin]) - size
                continue
            if count < len(starts):
                places[count], starts[count], left[count] = place, start, begin
                right[count] = first_at(times, begin, slices, start + size)
            count += 1
            start = next_end(windows, place, start + size) - size
        if len(starts):
            due[place] = next_end(windows, place, until_us)
    return count
