"""The first rows in some order, of rows that come and go.

All living rows stand in order, by their places; at the end of each instant the rows in front are
compared with those that were there before.
"""

from __future__ import annotations

from typing import NamedTuple

from eventide.kernels.compiled import Int64s, call, kernel
from eventide.kernels.lifetimes.tuple_operations import Operations

COUNT, EMITTED, CHANGES, INSTANT, NEXT = range(5)
"""The contents of `facts`: how many rows live, how many are emitted, how many changes were written,
the current instant, and the next operation."""

KEY_WORDS = 2
"""How many words the key of a row has."""


class Ranking(NamedTuple):
    """The places of living rows in order, of those emitted, and a mark of each place.

    With keys, the mark of an emitted row is 1; `emitted` is not used.
    """

    order: Int64s
    emitted: Int64s
    marks: Int64s
    facts: Int64s


class Turns(NamedTuple):
    """Rows that come to the front or leave it: their places, when, and which of both."""

    places: Int64s
    at: Int64s
    signs: Int64s


@call
def place_in_order(words: Int64s, depth: int, order: Int64s, count: int, place: int) -> int:
    """Return where a row belongs among the others, by the first `depth` words of each."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        word = 0
        while word < depth and words[word, order[middle]] == words[word, place]:
            word += 1
        if word < depth and words[word, order[middle]] < words[word, place]:
            low = middle + 1
        else:
            high = middle
    return low


@call
def turn_over(ranking: Ranking, now: int, ends: Int64s, out: Turns) -> None:
    """Write which of the first `now` rows are new, and which of the earlier ones are gone.

    `ends` has when a row expires by itself, which is not written.
    """
    order, emitted, marks, facts = ranking
    places, at, signs = out
    instant = facts[INSTANT]
    for i in range(now):
        marks[order[i]] = 2
    for i in range(facts[EMITTED]):
        if marks[emitted[i]] == 2:
            marks[emitted[i]] = 3
        elif ends[emitted[i]] > instant:
            places[facts[CHANGES]] = emitted[i]
            at[facts[CHANGES]] = instant
            signs[facts[CHANGES]] = -1
            facts[CHANGES] += 1
    for i in range(now):
        if marks[order[i]] == 2:
            places[facts[CHANGES]] = order[i]
            at[facts[CHANGES]] = instant
            signs[facts[CHANGES]] = 1
            facts[CHANGES] += 1
        marks[order[i]] = 0
        emitted[i] = order[i]
    facts[EMITTED] = now


@kernel
def rank_rows(
    operations: Operations,
    words: Int64s,
    depth: int,
    ends: Int64s,
    limit: int,
    ranking: Ranking,
    out: Turns,
) -> bool:
    """Apply the operations, and write the changes of the first `limit` rows.

    False if there may be no room for those of the next instant: once they have been taken out, the
    same call goes on.
    """
    at, places, signs = operations
    order, _, _, facts = ranking
    touched = False
    for i in range(facts[NEXT], len(at)):
        place, count = places[i], facts[COUNT]
        found = place_in_order(words, depth, order, count, place)
        if signs[i] > 0:
            for k in range(count, found, -1):
                order[k] = order[k - 1]
            order[found] = place
            facts[COUNT] += 1
        else:
            for k in range(found, count - 1):
                order[k] = order[k + 1]
            facts[COUNT] -= 1
        touched = touched or found < limit
        if i + 1 < len(at) and at[i + 1] == at[i]:
            continue
        if touched:
            facts[INSTANT] = at[i]
            turn_over(ranking, min(limit, facts[COUNT]), ends, out)
            touched = False
        if facts[CHANGES] + 2 * limit > len(out.at):
            facts[NEXT] = i + 1
            return False
    facts[NEXT] = len(at)
    return True


@call
def write_turn(place: int, sign: int, facts: Int64s, out: Turns) -> None:
    """Write that a row comes to the front or leaves it at the current instant."""
    out.places[facts[CHANGES]] = place
    out.at[facts[CHANGES]] = facts[INSTANT]
    out.signs[facts[CHANGES]] = sign
    facts[CHANGES] += 1


@call
def turn_over_key(
    words: Int64s, limit: int, new: int, ranking: Ranking, place: int, out: Turns
) -> None:
    """Write which rows of the key of a place are new among its first ones, and which are no longer.

    `new` rows came at this instant, so no emitted row stands further behind than that.
    """
    order, _, marks, facts = ranking
    start = place_in_order(words, KEY_WORDS, order, facts[COUNT], place)
    end = start
    while end < facts[COUNT] and end < start + limit + new:
        if words[0, order[end]] != words[0, place] or words[1, order[end]] != words[1, place]:
            break
        end += 1
    for k in range(start + limit, end):
        if marks[order[k]] == 1:
            marks[order[k]] = 0
            write_turn(order[k], -1, facts, out)
    for k in range(start, min(start + limit, end)):
        if marks[order[k]] == 0:
            marks[order[k]] = 1
            write_turn(order[k], 1, facts, out)


@kernel
def rank_rows_by_key(
    operations: Operations,
    words: Int64s,
    depth: int,
    ends: Int64s,
    limit: int,
    ranking: Ranking,
    out: Turns,
) -> None:
    """Apply the operations, and write the changes of the first `limit` rows of each key.

    The first words of a row are those of its key. An operation changes at most two rows, one that
    comes and one that leaves: `out` has room for all.
    """
    at, places, signs = operations
    order, _, marks, facts = ranking
    first, new = 0, 0
    for i in range(len(at)):
        place, count = places[i], facts[COUNT]
        facts[INSTANT] = at[i]
        found = place_in_order(words, depth, order, count, place)
        if signs[i] > 0:
            for k in range(count, found, -1):
                order[k] = order[k - 1]
            order[found] = place
            marks[place] = 0
            facts[COUNT] += 1
            new += 1
        else:
            for k in range(found, count - 1):
                order[k] = order[k + 1]
            facts[COUNT] -= 1
            if marks[place] == 1 and ends[place] > at[i]:
                write_turn(place, -1, facts, out)
            marks[place] = 0
        if i + 1 < len(at) and at[i + 1] == at[i]:
            continue
        for k in range(first, i + 1):
            turn_over_key(words, limit, new, ranking, places[k], out)
        first, new = i + 1, 0
