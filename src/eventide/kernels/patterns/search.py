"""The search for matches of a row pattern: its input, the room it needs, its result.

The kernels of preferred.py and every.py do the work.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Bools, Int64s, frozen
from eventide.kernels.patterns import tables as match_tables
from eventide.kernels.patterns.code import (
    BASE,
    BUDGET,
    DEPTH,
    HELD,
    KEY,
    KEY_AT,
    MATCHES,
    PENDING,
    PROGRAM,
    REGISTERS,
    SEEN,
    STATUS,
    UPDATE,
    USED,
    WHAT,
    Code,
    Tables,
    Work,
)
from eventide.kernels.patterns.every import search_any
from eventide.kernels.patterns.ground import Automaton, KernelRows, Out, RowSearch
from eventide.kernels.patterns.node_sets import Sets
from eventide.kernels.patterns.preferred import search_contiguous, search_next
from eventide.kernels.patterns.tables import (
    PAUSED,
    SKIP_TILL_ANY,
    TOO_MANY_MATCHES,
    Partitions,
    Rows,
    Rules,
    Steps,
)

MOST_REMEMBERED = 2_000_000
"""States that are remembered at a time."""

MOST_TAKEN = 2**24
"""Rows of matches that are held at a time."""

_SLOTS = 2**22
_MOST_USED = 2**20
"""Memory of which more has been used is given back after a search."""
_MOST_PLACES = 2**26


class Found(NamedTuple):
    """Matches: match i took `row[first[i]:first[i + 1]]`, reaching nodes `node[...]`.

    `next` is the first start row of each key that is not decided, `numbers` the matches so far.
    `status` is not 0 if the search was given up, from start row `where`; if a condition has no
    result, `instruction` is the one that failed.
    """

    start: Int64s
    first: Int64s
    row: Int64s
    node: Int64s
    number: Int64s
    timed_out: Bools
    key: Int64s
    next: Int64s
    numbers: Int64s
    status: int
    where: int
    instruction: int


def search(
    automaton: Automaton,
    code: Code,
    tables: Tables,
    rows: Rows,
    partitions: Partitions,
    rules: Rules,
) -> Found:
    """Find the matches of all partitions that can be decided with the present rows."""
    failures = _failures()
    work = _memory(code, tables, partitions, failures)
    sets = _sets(automaton, len(work.frames), rules)
    following = np.array(partitions.begin, np.int64)
    numbers = np.array(partitions.numbers, np.int64)
    rules = rules._replace(skip_set=int(np.uint64(rules.skip_set).view(np.int64)))
    words = KernelRows(rows.ts, rows.masks.view(np.int64))
    out = _more_room(None, 0, 1024 + len(rows.ts) // 8)
    piece = max(1, rules.piece // _cost_of_step(code))
    while True:
        work.info[BUDGET] = piece
        asked = RowSearch(
            automaton, code, tables, words, partitions, rules, work, following, numbers, out
        )
        match rules.strategy:
            case match_tables.CONTIGUOUS:
                search_contiguous(asked)
            case match_tables.SKIP_TILL_NEXT:
                search_next(asked)
            case _:
                search_any(asked, sets)
        if work.info[STATUS] or not (work.info[PENDING] or work.info[HELD]):
            break
        if not work.info[PENDING]:
            # Only a piece: the next call goes on where this one was.
            continue
        matches = int(work.info[MATCHES])
        needed = int(out.first[matches] + work.info[DEPTH])
        if needed > MOST_TAKEN:
            if rules.strategy == SKIP_TILL_ANY:
                work.info[STATUS] = TOO_MANY_MATCHES
                break
            # One match for each start row: another call can go on with the next. The first one
            # has to fit, or no call would ever get past it.
            if matches > 0:
                work.info[STATUS] = PAUSED
                break
        # Matches may be empty: there can be more of them than rows.
        out = _more_room(out, matches, 2 * max(needed, matches + 1))
    # Not after an interrupt: then it is not known how far the memory is used.
    used = int(work.info[BASE] + work.info[USED])
    _SPARE.failures = failures._replace(used=used) if used < _MOST_USED else None
    matches = int(work.info[MATCHES])
    about, first = out.about[:matches], out.first[: matches + 1]
    status, key, at = (int(work.info[each]) for each in (STATUS, KEY_AT, WHAT))
    return Found(
        start=np.ascontiguousarray(about[:, 0]),
        first=first,
        row=out.row[: first[-1]],
        node=out.node[: first[-1]],
        number=np.ascontiguousarray(about[:, 2]),
        timed_out=about[:, 2] == 0,
        key=np.ascontiguousarray(about[:, 1]),
        next=following,
        numbers=numbers,
        status=status,
        where=int(following[key]) if status else -1,
        instruction=at,
    )


def _cost_of_step(code: Code) -> int:
    """Return about how many simple operations it takes to try a row, with its conditions."""
    programs = np.diff(code.by_variable[:, PROGRAM]).max(initial=0)
    updates = np.diff(code.by_variable[:, UPDATE]).max(initial=0)
    return int(2 + programs + updates + len(code.registers) // 8)


def _more_room(out: Out | None, matches: int, rows: int) -> Out:
    """Return room for matches, as many as rows, with those found so far."""
    larger = Out(
        np.empty((rows, 3), np.int64),
        np.zeros(rows + 1, np.int64),
        np.empty(rows, np.int64),
        np.empty(rows, np.int64),
    )
    if out is not None:
        used = out.first[matches]
        larger.about[:matches] = out.about[:matches]
        larger.first[: matches + 1] = out.first[: matches + 1]
        larger.row[:used], larger.node[:used] = out.row[:used], out.node[:used]
    return larger


class Failures(NamedTuple):
    """Memory for states that are known to fail: `used` words of it are no longer needed.

    See kernels/patterns/remembered.py.
    """

    slots: Int64s
    words: Int64s
    used: int


_SPARE = threading.local()


def _failures() -> Failures:
    """Return the memory of the last search of this thread; what is never used takes no room."""
    found: Failures | None = getattr(_SPARE, "failures", None)
    _SPARE.failures = None
    if found is not None:
        return found
    return Failures(np.zeros(_SLOTS, np.int64), np.empty(8 * MOST_REMEMBERED, np.int64), 0)


def searchable(steps: Steps) -> Automaton:
    """Return an automaton as the search takes it."""
    nodes = len(steps.first) - 1
    absent = frozen(steps.absent.view(np.int64))
    node_absent = np.zeros(nodes, np.int64)
    of_node = np.repeat(np.arange(nodes), np.diff(steps.first))
    np.bitwise_or.at(node_absent, of_node, absent)
    starts = steps.variable[: steps.first[1]]
    masks = np.bitwise_or.reduce(np.int64(1) << starts[starts >= 0], initial=0)
    later, late = steps.later.view(np.int64), steps.late.view(np.int64)
    columns = (steps.variable, steps.target, steps.at_start, steps.at_end, absent, later, late)
    of_nodes = (steps.first, np.append(node_absent, 0))
    return Automaton(
        frozen(np.stack([np.asarray(each, np.int64) for each in columns], axis=1)),
        frozen(np.stack(of_nodes, axis=1)),
        int(masks),
        bool(np.any(starts < 0)),
        bool(np.any(later)),
    )


def _memory(code: Code, tables: Tables, partitions: Partitions, failures: Failures) -> Work:
    """Allocate for the longest possible match; unused memory is never touched."""
    lengths = partitions.offsets[1:] - partitions.begin
    depth = int(lengths.max(initial=0)) + 3
    key_width = int(np.diff(code.by_node[:, SEEN]).max(initial=0))
    stack = len(code.instructions) + 2
    frames = np.empty((depth, REGISTERS + len(code.registers)), np.int64)
    float_registers = np.empty((depth, code.float_registers), np.float64)
    # Nothing changes what holds before the first row.
    frames[0, REGISTERS:] = code.registers
    float_registers[0] = 0.0
    info = np.zeros(KEY + max(2 * key_width + 2, 4096), np.int64)
    info[BASE] = failures.used
    return Work(
        frames=frames,
        float_registers=float_registers,
        stack=np.empty(stack, np.int64),
        stack_floats=np.empty(stack, np.float64),
        stack_valid=np.empty(stack, np.bool_),
        counts=np.zeros(int(tables.starts[-1]), np.int64),
        slots=failures.slots,
        words=failures.words,
        info=info,
    )


def _sets(automaton: Automaton, depth: int, rules: Rules) -> Sets:
    """Allocate for sets of nodes, if all matches are looked for."""
    nodes = len(automaton.nodes) - 1
    places = min(depth * nodes, _MOST_PLACES) + nodes if rules.strategy == SKIP_TILL_ANY else 0
    return Sets(
        np.empty(places, np.int64),
        np.empty(places, np.int64),
        np.empty(places if automaton.asks_later else 0, np.int64),
        np.zeros(nodes + 1, np.int64),
    )
