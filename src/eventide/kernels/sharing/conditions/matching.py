"""The conditions that are true on each event: found by what they need, then tested."""

from __future__ import annotations

from typing import NamedTuple

from eventide.kernels.compiled import Int32s, Int64s, inline_lean, lean_kernel
from eventide.kernels.sharing.conditions.access import (
    CLUSTER,
    RUN,
    Buckets,
    IntervalTrees,
    find_bucket,
    run_count,
    run_start,
)
from eventide.kernels.sharing.conditions.order import once_each, sort_numbers
from eventide.kernels.sharing.conditions.programs import (
    ConditionPrograms,
    EventWords,
    HeldConditions,
    Octets,
    holds,
)


class TextVerdicts(NamedTuple):
    """Which text tests pass on each value that has a place, and room for those of an event."""

    starts: Int64s
    counts: Int32s
    passed: Int32s
    marks: Int32s


class FoundPairs(NamedTuple):
    """Pairs of an event and a number, in order of both.

    `entries` is for those that have to be tried on one event, `spare` for sorting.
    """

    events: Int64s
    numbers: Int64s
    entries: Int32s
    spare: Int64s


@lean_kernel
def match_events(
    first: int,
    events: EventWords,
    texts: TextVerdicts,
    programs: ConditionPrograms,
    conditions: HeldConditions,
    buckets: Buckets,
    intervals: IntervalTrees,
    scanned: Int32s,
    found: FoundPairs,
    reached: Int64s,
) -> int:
    """Write the pairs of events from `first` on; return how many there are.

    One event gives at most as many as `entries` has room for. `reached[0]` becomes the event for
    which there was no room. `marks` has no event of this batch.
    """
    words, valid, verdicts = events.words, events.valid, events.verdicts
    marks, starts, code = texts.marks, programs.starts, programs.code
    numbers, shapes, bases = conditions.numbers, conditions.shapes, conditions.bases
    constants, alive = conditions.constants, conditions.alive
    found_events, found_numbers, tried = found.events, found.numbers, found.entries
    count = 0
    for event in range(first, len(words)):
        if count + len(tried) > len(found_numbers):
            reached[0] = event
            return count
        candidates = gather_keys(words, valid, event, buckets, tried, 0)
        candidates = gather_texts(verdicts, event, texts, buckets, tried, candidates)
        for tree in range(len(intervals.columns)):
            column = intervals.columns[tree]
            if valid[event, column]:
                candidates = gather_intervals(
                    intervals, tree, words[event, column], tried, candidates
                )
        for i in range(len(scanned)):
            tried[candidates] = scanned[i]
            candidates += 1
        begin = count
        for i in range(candidates):
            entry = int(tried[i])
            whole = entry < 0
            condition = -1 - entry if whole else entry
            if not alive[condition]:
                continue
            if whole or holds(
                event, condition, words, valid, marks, starts, code, shapes, bases, constants
            ):
                found_numbers[count] = numbers[condition]
                count += 1
        if count > begin:
            sort_numbers(found_numbers, begin, count, found.spare)
            count = once_each(found_numbers, begin, count)
            for i in range(begin, count):
                found_events[i] = event
    reached[0] = len(words)
    return count


@inline_lean
def gather_keys(
    words: Int64s, valid: Octets, event: int, buckets: Buckets, tried: Int32s, candidates: int
) -> int:
    """Add the entries whose equalities an event meets; return how many are to be tried."""
    clusters = buckets.clusters
    for cluster in range(len(clusters) - 1):
        one, other = clusters[cluster, 0], clusters[cluster, 1]
        if not valid[event, one]:
            continue
        second = 0
        if other >= 0:
            if not valid[event, other]:
                continue
            second = words[event, other]
        candidates = gather_run(
            buckets.table, buckets.entries, words[event, one], second, cluster, tried, candidates
        )
    return candidates


@inline_lean
def gather_texts(
    verdicts: Int32s,
    event: int,
    texts: TextVerdicts,
    buckets: Buckets,
    tried: Int32s,
    candidates: int,
) -> int:
    """Mark the text tests that an event passes, and add the entries that need one of them."""
    last = len(buckets.clusters) - 1
    any_keys = buckets.clusters[last, 0] != 0
    for column in range(verdicts.shape[1]):
        place = verdicts[event, column]
        if place < 0:
            continue
        for i in range(texts.starts[place], texts.starts[place] + texts.counts[place]):
            test = int(texts.passed[i])
            texts.marks[test] = event
            if any_keys:
                candidates = gather_run(
                    buckets.table, buckets.entries, test, 0, last, tried, candidates
                )
    return candidates


@inline_lean
def gather_run(
    table: Int64s,
    entries: Int32s,
    first: int,
    second: int,
    cluster: int,
    tried: Int32s,
    candidates: int,
) -> int:
    """Add the entries of a key to those to be tried; return how many there are."""
    bucket = find_bucket(table, first, second, cluster)
    if table[bucket, CLUSTER] == 0:
        return candidates
    run = table[bucket, RUN]
    start = run_start(run)
    for i in range(start, start + run_count(run)):
        tried[candidates] = entries[i]
        candidates += 1
    return candidates


@inline_lean
def gather_intervals(
    intervals: IntervalTrees, tree: int, word: int, tried: Int32s, candidates: int
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
            tried[candidates] = low_entries[i]
            candidates += 1
    while node > 1:
        from_right = node & 1
        node >>= 1
        at = intervals.node_starts[tree] + node
        # Intervals of an inner node have the border between its halves in them.
        if from_right:
            for i in range(intervals.nodes[at], intervals.nodes[at + 1]):
                if highs[i] < word:
                    break
                tried[candidates] = high_entries[i]
                candidates += 1
        else:
            for i in range(intervals.nodes[at], intervals.nodes[at + 1]):
                if lows[i] > word:
                    break
                tried[candidates] = low_entries[i]
                candidates += 1
    return candidates


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
