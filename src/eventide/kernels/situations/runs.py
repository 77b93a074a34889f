"""Events to situations: runs of events on which a condition holds, for all keys in one pass.

A row is a set of bits, one for each condition that holds on it. Most rows have the bits of the row
before them in their key, and cost one comparison. Positions number the rows: ends are compared by
position, so that events of one time still come one after the other. Row i of a batch is at
base + 2i + 1, and the even position before it belongs to a silence that it ends. The rows of some
keys have the places that they have among the rows of all.
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Bools, Int32s, Int64s, call, kernel, lean_kernel

NEVER = 1 << 62
"""The position of an event that has not happened yet."""

LATEST = 253_402_300_799_999_999
"""The end of the year 9999: no event is later, and a silence that ends later is ignored."""

SEEN, ENDED, ENDED_UNSEEN = 0, 1, 2
"""The changes of a run: it becomes visible, it ends, or it ends and only then becomes visible."""

Runs = tuple[Int64s, Int64s, Int64s, Int64s, Int64s, Int64s, Int64s]
"""For each run: its key, its symbol, start and end (time and position), where it became visible."""
Changes = tuple[Int64s, Int64s, Int64s, Int64s]
"""For each change: its position, its time, the run, and its kind."""
ByKey = tuple[Int64s, Int64s, Int64s, Int64s]
"""For each key: the bits of its last row, those of runs too short to be seen, the time of that row,
and (for each key and symbol) the open run."""


@call
def end_run(
    run: int,
    ts: int,
    position: int,
    rules: tuple[Int64s, Int64s, Int64s],
    runs: Runs,
    changes: Changes,
    changed: int,
) -> int:
    """End a run; return how many changes there are. A run of a wrong duration is never seen."""
    least, most, _ = rules
    _, symbol, start_ts, _, end_ts, end_pos, visible = runs
    end_ts[run] = ts
    end_pos[run] = position
    lasted = ts - start_ts[run]
    kind = ENDED
    if visible[run] == NEVER:
        if lasted < least[symbol[run]] or lasted > most[symbol[run]]:
            return changed
        visible[run] = position
        kind = ENDED_UNSEEN
    changes[0][changed] = position
    changes[1][changed] = ts
    changes[2][changed] = run
    changes[3][changed] = kind
    return changed + 1


@call
def silence(
    key: int,
    ts: int,
    position: int,
    rules: tuple[Int64s, Int64s, Int64s],
    by_key: ByKey,
    runs: Runs,
    changes: Changes,
    changed: int,
) -> int:
    """End all runs of a key; return how many changes there are."""
    held, waiting, _, open_run = by_key
    symbols = len(rules[0])
    for symbol in range(symbols):
        if held[key] >> symbol & 1:
            run = open_run[key * symbols + symbol]
            changed = end_run(run, ts, position, rules, runs, changes, changed)
    held[key] = 0
    waiting[key] = 0
    return changed


@kernel
def derive_runs(  # noqa: PLR0912, PLR0915 - a call for each row would cost more than its work
    rows: tuple[Int32s, Int64s, Int64s, Int64s],
    first: int,
    base: int,
    rules: tuple[Int64s, Int64s, Int64s],
    gap_us: int,
    counted: int,
    by_key: ByKey,
    runs: Runs,
    changes: Changes,
    members: tuple[Int64s, Int64s, Int64s],
    filled: Int64s,
) -> int:
    """Follow the runs of all keys through rows; return the row to go on with, or their number.

    `rows` are the keys of some rows and their places, and times and bits by place; `rules` the
    least and the longest duration of each symbol and whether it is seen only at its end. `filled`
    counts runs and changes: it returns when there is no room left for a row. `members` lists, for
    each symbol in `counted`, which row is in which run, from `members[2][symbol]` on.
    """
    codes, places, ts, bits = rows
    least, _, late = rules
    held, waiting, last_ts, open_run = by_key
    symbols = len(least)
    member_row, member_run, place = members
    found, changed = filled[0], filled[1]
    for i in range(first, len(codes)):
        if found + symbols > len(runs[0]) or changed + 3 * symbols > len(changes[0]):
            filled[0], filled[1] = found, changed
            return i
        key = codes[i]
        row = places[i]
        now = bits[row]
        time = ts[row]
        position = base + 2 * row + 1
        if gap_us >= 0 and held[key] != 0 and time - last_ts[key] > gap_us:
            end = last_ts[key] + gap_us
            changed = silence(key, end, position - 1, rules, by_key, runs, changes, changed)
        before = held[key]
        if now != before:
            for symbol in range(symbols):
                bit = 1 << symbol
                if not (now ^ before) & bit:
                    continue
                if before & bit:
                    run = open_run[key * symbols + symbol]
                    waiting[key] &= ~bit
                    changed = end_run(run, time, position, rules, runs, changes, changed)
                    continue
                run = found
                found += 1
                open_run[key * symbols + symbol] = run
                runs[0][run] = key
                runs[1][run] = symbol
                runs[2][run] = time
                runs[3][run] = position
                runs[4][run] = 0
                runs[5][run] = NEVER
                runs[6][run] = NEVER
                if not late[symbol]:
                    waiting[key] |= bit
            held[key] = now
        last_ts[key] = time
        if waiting[key]:
            for symbol in range(symbols):
                if not waiting[key] >> symbol & 1:
                    continue
                run = open_run[key * symbols + symbol]
                if time - runs[2][run] >= least[symbol]:
                    waiting[key] &= ~(1 << symbol)
                    runs[6][run] = position
                    changes[0][changed] = position
                    changes[1][changed] = time
                    changes[2][changed] = run
                    changes[3][changed] = SEEN
                    changed += 1
        shown = now & counted
        if shown:
            for symbol in range(symbols):
                if shown >> symbol & 1:
                    member_row[place[symbol]] = row
                    member_run[place[symbol]] = open_run[key * symbols + symbol]
                    place[symbol] += 1
    filled[0], filled[1] = found, changed
    return len(codes)


@kernel
def silence_keys(
    watermark_us: int,
    gap_us: int,
    base: int,
    first: int,
    rules: tuple[Int64s, Int64s, Int64s],
    by_key: ByKey,
    runs: Runs,
    changes: Changes,
    filled: Int64s,
) -> int:
    """End the runs of keys that no event can follow in time; return the key to go on with."""
    held, _, last_ts, _ = by_key
    changed = filled[1]
    for key in range(first, len(held)):
        if changed + len(rules[0]) > len(changes[0]):
            filled[1] = changed
            return key
        end = last_ts[key] + gap_us
        if held[key] != 0 and end < watermark_us and end <= LATEST:
            changed = silence(key, end, base + key, rules, by_key, runs, changes, changed)
    filled[1] = changed
    return len(held)


@lean_kernel
def due_times(
    runs: tuple[Int64s, Int64s, Int64s],
    keys: tuple[Int64s, Int64s],
    gap_us: int,
    within_us: int,
    due: Int64s,
) -> None:
    """Write when each key has to be looked at; one that has nothing to wait for is left as it is.

    `runs` are the key, the start and the end (its position) of each, `keys` the bits and the time
    of the last event. Closed runs are needed for `within_us`, and the silence of a key ends its
    open ones after `gap_us`: not at all, if these are negative.
    """
    key, start_ts, end_pos = runs
    held, last_ts = keys
    never = np.iinfo(np.int64).max
    if within_us >= 0:
        for i in range(len(key)):
            if end_pos[i] != NEVER:
                over = start_ts[i] + within_us
                if due[key[i]] == never or due[key[i]] < over:
                    due[key[i]] = over
    if gap_us >= 0:
        for i in range(len(held)):
            # A key whose closed runs were due has been looked at, and would hide its silence.
            if held[i]:
                due[i] = last_ts[i] + gap_us


@lean_kernel
def mark_needed(
    runs: tuple[Int64s, Int64s, Int64s, Int64s],
    last_ts: Int64s,
    until_us: int,
    within_us: int,
    needed: Bools,
    used: Bools,
) -> int:
    """Mark the runs that later events may need, and their keys; return how many are not needed.

    These are open runs and those in the window of any event, and those marked already. `runs` are
    the key, the start, the end and the first sight (positions) of each.
    """
    key, start_ts, end_pos, visible = runs
    unneeded = 0
    for i in range(len(key)):
        earliest = max(last_ts[key[i]], until_us)
        in_window = visible[i] != NEVER and start_ts[i] >= earliest - within_us
        if end_pos[i] == NEVER or in_window:
            needed[i] = True
        if needed[i]:
            used[key[i]] = True
        else:
            unneeded += 1
    for k in range(len(used)):
        if not used[k]:
            unneeded += 1
    return unneeded


@kernel
def set_bits(holds: Bools, symbol: int, bits: Int64s) -> None:
    """Set the bit of a symbol in the rows on which its condition holds."""
    for i in range(len(holds)):
        bits[i] |= np.int64(holds[i]) << symbol


@lean_kernel
def divide_rows(
    codes: Int32s,
    first: int,
    last: int,
    part_of_key: Int64s,
    first_key: Int64s,
    place: Int64s,
    divided: tuple[Int32s, Int64s],
) -> None:
    """Write the rows [first, last) part by part, in one pass: each part has a range of keys.

    `codes` are the keys of rows, and `divided` has these and the places of rows; the next row of a
    part is written at `place`. Keys are numbered from the first one of their part.
    """
    part_codes, places = divided
    for i in range(first, last):
        key = codes[i]
        part = part_of_key[key]
        at = place[part]
        place[part] = at + 1
        part_codes[at] = key - first_key[part]
        places[at] = i


@kernel
def frames_until(
    offsets: Int64s, positions: Int64s, runs: Int64s, until: Int64s, right: Int64s
) -> None:
    """Write for each run how far its parts reach up to a position: the end of a frame.

    The parts of run r are [offsets[r], offsets[r + 1]), in order of position.
    """
    for i in range(len(runs)):
        low, high = offsets[runs[i]], offsets[runs[i] + 1]
        while low < high:
            middle = (low + high) // 2
            if positions[middle] <= until[i]:
                low = middle + 1
            else:
                high = middle
        right[i] = low
