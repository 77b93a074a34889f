"""The conditions that are true on each event: found by what they need, then tested."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Int32s, Int64s, inline_lean, lean_kernel
from eventide.kernels.sharing.conditions.access import (
    RUN,
    Buckets,
    IntervalTrees,
    find_bucket,
    run_count,
    run_start,
)
from eventide.kernels.sharing.conditions.order import LANES, sort_once
from eventide.kernels.sharing.conditions.programs import NUMBER, EventWords, Octets, holds

BLOCK = 8
"""Events that go together."""

AHEAD = 5
"""A word of a record that is probably in the next line of the cache."""


class TextVerdicts(NamedTuple):
    """Which text tests pass on each value that has a place, and room for those of an event."""

    starts: Int64s
    counts: Int32s
    passed: Int32s
    marks: Int32s


class FoundPairs(NamedTuple):
    """Pairs of an event and a number, in order of both, and what is remembered of a block.

    `tried` has the records to be tried on its events, up to `ends` for each event; `runs` where
    the entries of the keys of an event are, for each cluster. `spare` is for sorting.
    """

    events: Int64s
    numbers: Int64s
    tried: Int32s
    ends: Int64s
    runs: Int64s
    spare: Int64s


@lean_kernel
def match_events(
    first: int,
    events: EventWords,
    texts: TextVerdicts,
    code: Int32s,
    records: Int64s,
    buckets: Buckets,
    intervals: IntervalTrees,
    scanned: Int32s,
    most: int,
    found: FoundPairs,
    reached: Int64s,
) -> int:
    """Write the pairs of events from `first` on; return how many there are.

    One event gives `most` pairs at most. `reached[0]` becomes the event for which there was no
    room. `marks` has no event of this batch. Events go in blocks, step by step: so the memory of
    many records is on its way at a time.
    """
    words, valid, marks = events.words, events.valid, texts.marks
    found_events, found_numbers, tried = found.events, found.numbers, found.tried
    count, event = 0, first
    while event < len(words):
        start, last = event, min(event + BLOCK, len(words))
        look_up_runs(words, valid, start, last, buckets, found.runs)
        last = gather_block(events, start, last, texts, buckets, intervals, scanned, most, found)
        tries = found.ends[last - start - 1]
        touched = np.int64(0)
        for i in range(tries):
            touched ^= records[tried[i]] ^ records[tried[i] + AHEAD]
        found.spare[0] = touched
        i = 0
        while event < last:
            if count + most + LANES > len(found_numbers):
                reached[0] = event
                return count
            mark_texts(events.verdicts, event, texts)
            begin, end = count, found.ends[event - start]
            while i < end:
                record = int(tried[i])
                if holds(event, record, words, valid, marks, code, records):
                    found_numbers[count] = records[record + NUMBER]
                    count += 1
                i += 1
            if count > begin:
                count = sort_once(found_numbers, begin, count, found.spare)
                for pair in range(begin, count):
                    found_events[pair] = event
            event += 1
    reached[0] = len(words)
    return count


@inline_lean
def look_up_runs(
    words: Int64s, valid: Octets, first: int, last: int, buckets: Buckets, runs: Int64s
) -> None:
    """Write the run of entries of each event and cluster."""
    clusters, table = buckets.clusters, buckets.table
    at = 0
    for event in range(first, last):
        for cluster in range(len(clusters) - 1):
            one, other = clusters[cluster, 0], clusters[cluster, 1]
            run = np.int64(0)
            if valid[event, one] and (other < 0 or valid[event, other]):
                second = np.int64(0)
                if other >= 0:
                    second = words[event, other]
                run = table[find_bucket(table, words[event, one], int(second), cluster), RUN]
            runs[at] = run
            at += 1


@inline_lean
def gather_block(
    events: EventWords,
    first: int,
    last: int,
    texts: TextVerdicts,
    buckets: Buckets,
    intervals: IntervalTrees,
    scanned: Int32s,
    most: int,
    found: FoundPairs,
) -> int:
    """Gather the records to be tried on some events; return the event that has no room."""
    words, valid, tried = events.words, events.valid, found.tried
    tries, width = 0, len(buckets.clusters) - 1
    event = first
    while event < last and tries + most <= len(tried):
        for at in range((event - first) * width, (event - first + 1) * width):
            tries = gather_run(found.runs[at], buckets.entries, tried, tries)
        if buckets.clusters[width, 0]:
            tries = gather_texts(events.verdicts, event, texts, buckets, tried, tries)
        for tree in range(len(intervals.columns)):
            column = intervals.columns[tree]
            if valid[event, column]:
                tries = gather_intervals(intervals, tree, words[event, column], tried, tries)
        for record in scanned:
            tried[tries] = record
            tries += 1
        found.ends[event - first] = tries
        event += 1
    return event


@inline_lean
def mark_texts(verdicts: Int32s, event: int, texts: TextVerdicts) -> None:
    """Mark the text tests that an event passes."""
    for column in range(verdicts.shape[1]):
        place = verdicts[event, column]
        if place >= 0:
            for i in range(texts.starts[place], texts.starts[place] + texts.counts[place]):
                texts.marks[texts.passed[i]] = event


@inline_lean
def gather_texts(
    verdicts: Int32s, event: int, texts: TextVerdicts, buckets: Buckets, tried: Int32s, tries: int
) -> int:
    """Add the entries that need a text test that an event passes; return how many are tried."""
    cluster = len(buckets.clusters) - 1
    for column in range(verdicts.shape[1]):
        place = verdicts[event, column]
        if place >= 0:
            for i in range(texts.starts[place], texts.starts[place] + texts.counts[place]):
                bucket = find_bucket(buckets.table, int(texts.passed[i]), 0, cluster)
                tries = gather_run(buckets.table[bucket, RUN], buckets.entries, tried, tries)
    return tries


@inline_lean
def gather_run(run: np.int64, entries: Int32s, tried: Int32s, tries: int) -> int:
    """Add the entries of a run to those to be tried; return how many there are."""
    start = run_start(run)
    for i in range(start, start + run_count(run)):
        tried[tries] = entries[i]
        tries += 1
    return tries


@inline_lean
def gather_intervals(
    intervals: IntervalTrees, tree: int, word: int, tried: Int32s, tries: int
) -> int:
    """Add the entries of a tree whose intervals have a word in them; return how many there are."""
    lows, highs = intervals.lows, intervals.highs
    low_entries, high_entries = intervals.low_entries, intervals.high_entries
    node = intervals.sizes[tree] + cell_of(
        intervals.bounds, intervals.bound_starts[tree], intervals.sizes[tree] - 1, word
    )
    at = intervals.node_starts[tree] + node
    # An interval within one cell may end on either side.
    for i in range(intervals.nodes[at], intervals.nodes[at + 1]):
        if lows[i] > word:
            break
        if intervals.low_ends[i] >= word:
            tried[tries] = low_entries[i]
            tries += 1
    while node > 1:
        from_right = node & 1
        node >>= 1
        at = intervals.node_starts[tree] + node
        # Intervals of an inner node have the border between its halves in them.
        if from_right:
            for i in range(intervals.nodes[at], intervals.nodes[at + 1]):
                if highs[i] < word:
                    break
                tried[tries] = high_entries[i]
                tries += 1
        else:
            for i in range(intervals.nodes[at], intervals.nodes[at + 1]):
                if lows[i] > word:
                    break
                tried[tries] = low_entries[i]
                tries += 1
    return tries


@inline_lean
def cell_of(bounds: Int64s, start: int, count: int, word: int) -> int:
    """Return how many bounds are not above a word."""
    low, high = start, start + count
    while low < high:
        middle = (low + high) >> 1
        if bounds[middle] <= word:
            low = middle + 1
        else:
            high = middle
    return int(low - start)
