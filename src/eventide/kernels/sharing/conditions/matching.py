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
    find_hashed,
    hash_of_key,
    may_be_there,
    run_count,
    run_start,
)
from eventide.kernels.sharing.conditions.alike import FEWEST_ALIKE, end_of_alike, keep_alike
from eventide.kernels.sharing.conditions.programs import (
    FIRST_MASK,
    NUMBER,
    PROGRAM,
    EventWords,
    Octets,
    holds_from,
)

BLOCK = 8
"""Events that go together."""

MOST_INSERTED = 64
"""So many keys of an event are put in order one by one."""
AHEAD = 5
"""A word of a record that is probably in the next line of the cache."""


class TextVerdicts(NamedTuple):
    """Which text tests pass on each value that has a place, and room for those of an event."""

    starts: Int64s
    counts: Int32s
    passed: Int32s
    marks: Int32s


class Searching(NamedTuple):
    """What is found, and what is remembered of a block of events.

    `keys` are pairs of an event and a number. `tried` has the records to be tried on the events of
    a block, up to `ends` for each event; `runs` where the entries of the keys of an event are, for
    each cluster.
    """

    keys: Int64s
    tried: Int32s
    ends: Int64s
    runs: Int64s
    touched: Int64s


class SearchedEvents(NamedTuple):
    """The events of a call, [first, last), and how a key is made.

    The key of an event and a number is `((event - origin) << shift) + number - least`. One event
    gives `most` keys at most.
    """

    first: int
    last: int
    origin: int
    shift: int
    least: int
    most: int


@lean_kernel
def match_events(
    span: SearchedEvents,
    events: EventWords,
    texts: TextVerdicts,
    code: Int32s,
    records: Int64s,
    buckets: Buckets,
    intervals: IntervalTrees,
    scanned: Int32s,
    searching: Searching,
    reached: Int64s,
) -> int:
    """Write the keys of true conditions, in order unless an event has many; return how many.

    `reached[0]` becomes the event for which there was no room. `marks` has no event of this batch.
    Events go in blocks, step by step: so the memory of many records is on its way at a time.
    """
    words, valid, marks = events.words, events.valid, texts.marks
    keys, tried = searching.keys, searching.tried
    count, event = 0, span.first
    while event < span.last:
        start, last = event, min(event + BLOCK, span.last)
        look_up_runs(words, valid, start, last, buckets, searching.runs)
        last = gather_block(
            events, start, last, texts, buckets, intervals, scanned, span.most, searching
        )
        touched = np.int64(0)
        for i in range(searching.ends[last - start - 1]):
            touched ^= records[tried[i]] ^ records[tried[i] + AHEAD]
        searching.touched[0] = touched
        i = 0
        while event < last:
            if count + span.most > len(keys):
                reached[0] = event
                return count
            mark_texts(events.verdicts, event, texts)
            key = ((event - span.origin) << span.shift) - span.least
            end, first = searching.ends[event - start], count
            while i < end:
                program = records[tried[i] + PROGRAM]
                behind, kept, at = i + 1, i + 1, int(program & FIRST_MASK)
                enough = i + FEWEST_ALIKE - 1
                if enough < end and records[tried[enough] + PROGRAM] == program:
                    behind = end_of_alike(tried, i, end, records)
                    kept, at = keep_alike(
                        event, tried, i, behind, words, valid, marks, code, records
                    )
                for k in range(i, kept):
                    record = int(tried[k])
                    if holds_from(at, event, record, words, valid, marks, code, records):
                        keys[count] = key + records[record + NUMBER]
                        count += 1
                i = behind
            put_in_order(keys, first, count)
            event += 1
    reached[0] = span.last
    return count


@inline_lean
def put_in_order(keys: Int64s, first: int, end: int) -> None:
    """Put the keys of an event in order, if there are not too many."""
    falls = 0
    for i in range(first + 1, end):
        falls += keys[i - 1] > keys[i]
    if not falls or end - first > MOST_INSERTED:
        return
    for i in range(first + 1, end):
        key, at = keys[i], i
        while at > first and keys[at - 1] > key:
            keys[at] = keys[at - 1]
            at -= 1
        keys[at] = key


@inline_lean
def look_up_runs(
    words: Int64s, valid: Octets, first: int, last: int, buckets: Buckets, runs: Int64s
) -> None:
    """Write the run of entries of each event and cluster."""
    clusters, table, filtered = buckets.clusters, buckets.table, buckets.filtered
    at = 0
    for event in range(first, last):
        for cluster in range(len(clusters) - 1):
            one, other = clusters[cluster, 0], clusters[cluster, 1]
            run = np.int64(0)
            if valid[event, one] and (other < 0 or valid[event, other]):
                word, second = words[event, one], np.int64(0)
                if other >= 0:
                    second = words[event, other]
                key = hash_of_key(word, second, np.int64(cluster))
                if len(filtered) == 0 or may_be_there(filtered, key):
                    run = table[find_hashed(table, key, int(word), int(second), cluster), RUN]
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
    searching: Searching,
) -> int:
    """Gather the records to be tried on some events; return the event that has no room."""
    words, valid, tried = events.words, events.valid, searching.tried
    tries, width = 0, len(buckets.clusters) - 1
    event = first
    while event < last and tries + most <= len(tried):
        for at in range((event - first) * width, (event - first + 1) * width):
            tries = gather_run(searching.runs[at], buckets.entries, tried, tries)
        if buckets.clusters[width, 0]:
            tries = gather_texts(events.verdicts, event, texts, buckets, tried, tries)
        for tree in range(len(intervals.columns)):
            column = intervals.columns[tree]
            if valid[event, column]:
                tries = gather_intervals(intervals, tree, words[event, column], tried, tries)
        for record in scanned:
            tried[tries] = record
            tries += 1
        searching.ends[event - first] = tries
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
