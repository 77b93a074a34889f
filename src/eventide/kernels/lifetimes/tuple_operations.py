"""Merge changes and expiries into operations: which tuples come and go, in order of time.

At an instant, tuples expire first. Tuples stand in arrays, each in a place of its own that is not
used again before the step is over, so that the reader of the operations finds the values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Int64s, kernel
from eventide.kernels.key_table import KeyTable, find, put, remove
from eventide.kernels.lifetimes.calendar_queue import NEVER, Calendar, next_due, schedule


class SourceChanges(NamedTuple):
    """Changes: when, until when, whether it comes or goes, the id, and a place if it comes."""

    at: Int64s
    exp: Int64s
    signs: Int64s
    ids: Int64s
    places: Int64s


class Operations(NamedTuple):
    """In order of time: when, at which place of the tuples, and whether it comes or goes."""

    at: Int64s
    places: Int64s
    signs: Int64s


class Remembered(NamedTuple):
    """By place: id and expiry of a tuple, and whether it went before that and only waits for it."""

    ids: Int64s
    exps: Int64s
    gone: Int64s


@kernel
def queue_operations(
    exps: Int64s, start: int, fresh: int, at: Int64s, until: int, out: Operations
) -> int:
    """Merge changes with the expiries of a queue, whose places [start, …) are in order of expiry.

    Change i stands at place fresh + i. Return the new start of the queue.
    """
    count, oldest = 0, start
    for i in range(len(at) + 1):
        clock = at[i] if i < len(at) else until - 1
        while oldest < fresh + i and exps[oldest] <= clock:
            out.at[count] = exps[oldest]
            out.places[count] = oldest
            out.signs[count] = -1
            count += 1
            oldest += 1
        if i < len(at):
            out.at[count] = at[i]
            out.places[count] = fresh + i
            out.signs[count] = 1
            count += 1
    return oldest


@kernel
def calendar_operations(
    source: SourceChanges,
    until: int,
    tuples: Remembered,
    calendar: Calendar,
    by_id: KeyTable,
    strict: bool,
    out: Operations,
    freed: Int64s,
) -> tuple[int, int]:
    """Merge changes with the expiries of a calendar; return how many operations, how many freed.

    With `strict` tuples may go before they expire, and are found by id.
    """
    count, free = 0, 0
    for i in range(len(source.at) + 1):
        clock = source.at[i] if i < len(source.at) else np.int64(until - 1)
        while True:
            place = next_due(calendar, clock)
            if place < 0:
                break
            freed[free] = place
            free += 1
            if tuples.gone[place]:
                tuples.gone[place] = 0
                continue
            if strict:
                remove(by_id, tuples.ids[place], np.int64(0))
            out.at[count] = tuples.exps[place]
            out.places[count] = place
            out.signs[count] = -1
            count += 1
        if i == len(source.at):
            break
        if source.signs[i] > 0:
            place = source.places[i]
            tuples.ids[place] = source.ids[i]
            tuples.exps[place] = source.exp[i]
            schedule(calendar, place, source.exp[i])
            if strict:
                put(by_id, source.ids[i], np.int64(0), place)
        else:
            place = find(by_id, source.ids[i], np.int64(0))
            if place < 0:
                continue
            remove(by_id, source.ids[i], np.int64(0))
            if tuples.exps[place] == NEVER:
                freed[free] = place
                free += 1
            else:
                tuples.gone[place] = 1
        out.at[count] = source.at[i]
        out.places[count] = place
        out.signs[count] = source.signs[i]
        count += 1
    return count, free


@kernel
def list_operations(
    source: SourceChanges,
    until: int,
    tuples: Remembered,
    living: Int64s,
    held: int,
    out: Operations,
    freed: Int64s,
) -> tuple[int, int, int]:
    """Merge changes with the expiries of a list, which is searched at each instant.

    Return how many operations, how many freed, and how long the list is.
    """
    count, free = 0, 0
    due = np.empty(len(living), np.int64)
    for i in range(len(source.at) + 1):
        clock = source.at[i] if i < len(source.at) else np.int64(until - 1)
        if i == 0 or clock != source.at[i - 1]:
            many, kept = 0, 0
            for k in range(held):
                place = living[k]
                if tuples.exps[place] <= clock:
                    due[many] = place
                    many += 1
                else:
                    living[kept] = place
                    kept += 1
            held = kept
            order = np.argsort(tuples.exps[due[:many]], kind="mergesort")
            for k in range(many):
                place = due[order[k]]
                out.at[count] = tuples.exps[place]
                out.places[count] = place
                out.signs[count] = -1
                count += 1
                freed[free] = place
                free += 1
        if i == len(source.at):
            break
        if source.signs[i] > 0:
            place = source.places[i]
            tuples.ids[place] = source.ids[i]
            tuples.exps[place] = source.exp[i]
            living[held] = place
            held += 1
        else:
            found = 0
            while found < held and tuples.ids[living[found]] != source.ids[i]:
                found += 1
            if found == held:
                continue
            place = living[found]
            for k in range(found, held - 1):
                living[k] = living[k + 1]
            held -= 1
            freed[free] = place
            free += 1
        out.at[count] = source.at[i]
        out.places[count] = place
        out.signs[count] = source.signs[i]
        count += 1
    return count, free, held
