"""The search for the preferred match of each start row: contiguous and skip_till_next.

It goes depth first, in order of preference. From a start row the steps from a node are tried one
after another (`ways_on.py`); a row that is taken leads one level deeper, a node without a further
step leads back. There is a kernel for each strategy, so that a query compiles no more than it
needs.
"""

from __future__ import annotations

from collections.abc import Callable

from eventide.kernels.compiled import inline_lean, lean_kernel
from eventide.kernels.patterns.code import (
    BUDGET,
    DEPTH,
    HELD,
    HITS,
    KEEPING,
    KEY_AT,
    PATH_NODE,
    PATH_ROW,
    PATH_VARIABLE,
    PENDING,
    STATUS,
    TIMED,
    TIMED_ROW,
    Code,
    Place,
    Tables,
    Work,
)
from eventide.kernels.patterns.ground import (
    FAILURE,
    HELD_UP,
    MATCHED,
    TAKEN,
    UNDECIDED,
    Automaton,
    RowSearch,
    Time,
    begin,
    bounds_of,
    enter,
    first_fit,
    held_up,
    leave,
    place_from,
    report,
    time_of,
)
from eventide.kernels.patterns.registers import give_back
from eventide.kernels.patterns.remembered import failed_before, forget, record_failure
from eventide.kernels.patterns.tables import (
    NEXT_ROW,
    NO_SKIP_TARGET,
    OK,
    PAST_LAST,
    SKIP_TO_START,
    TO_FIRST,
    Rules,
)
from eventide.kernels.patterns.ways_on import contiguous_on, next_on

_GoOn = Callable[[Automaton, Code, Tables, Work, Place, Time, int], int]


@inline_lean
def _unwind(code: Code, tables: Tables, work: Work, depth: int) -> None:
    """Undo the counts of values of all rows taken."""
    if code.keeps_counts:
        for each in range(depth):
            give_back(code, tables, work, each)


@inline_lean
def _preferred(
    go_on: _GoOn,
    automaton: Automaton,
    code: Code,
    tables: Tables,
    work: Work,
    place: Place,
    time: Time,
) -> int:
    """Search the preferred match from one start row; info[DEPTH] is how many rows it took.

    A search that was HELD_UP goes on where it was.
    """
    if work.info[HELD] == 0:
        begin(automaton, work, place)
    work.info[HELD] = 0
    depth = work.info[DEPTH]
    while True:
        if work.info[BUDGET] < 0:
            outcome = HELD_UP
        else:
            outcome = go_on(automaton, code, tables, work, place, time, depth)
        if outcome == HELD_UP:
            return held_up(work, depth)
        if work.info[STATUS] != OK:
            return FAILURE
        if outcome == TAKEN:
            depth += 1
            enter(
                automaton,
                work,
                depth,
                work.frames[depth - 1, PATH_NODE],
                work.frames[depth - 1, PATH_ROW] + 1,
            )
            if not failed_before(code, tables, work, place, depth):
                continue
        elif outcome == FAILURE:
            record_failure(code, tables, work, place, depth)
            if depth == 0:
                return FAILURE
        else:
            work.info[DEPTH] = depth
            _unwind(code, tables, work, depth)
            return outcome
        depth -= 1
        if code.keeps_counts:
            give_back(code, tables, work, depth)


@inline_lean
def _next_start(work: Work, rules: Rules, start: int, depth: int) -> int:
    """Return where to look for a match after one; errors go to info[STATUS]."""
    if rules.skip_to <= NEXT_ROW:
        if rules.skip_to == PAST_LAST and depth > 0:
            return int(work.frames[depth - 1, PATH_ROW]) + 1
        return start + 1
    found = -1
    for each in range(depth):
        if (rules.skip_set >> work.frames[each, PATH_VARIABLE]) & 1:
            found = work.frames[each, PATH_ROW]
            if rules.skip_to == TO_FIRST:
                break
    if found < 0:
        work.info[STATUS] = NO_SKIP_TARGET
    elif found == start:
        work.info[STATUS] = SKIP_TO_START
    return max(found, start + 1)


@inline_lean
def _search_preferred(go_on: _GoOn, search: RowSearch, key: int) -> int:
    """Search one partition for preferred matches; return the next start row.

    When a match no longer fits into `out`, info[PENDING] asks for another call, with everything as
    it was; info[HELD] asks for one when the search has done as much as it may in one call.
    """
    automaton, code, tables = search.automaton, search.code, search.tables
    rules, work, numbers = search.rules, search.work, search.numbers
    time = time_of(search, key)
    bounds = bounds_of(search.partitions, key)
    start = int(search.following[key])
    # A state says all there is about what follows, unless the start's time does too.
    keeps = rules.within_us < 0
    while True:
        if work.info[PENDING] == 0:
            if work.info[HELD] == 0:
                start = first_fit(automaton, time, start, bounds[2])
                if start >= bounds[1]:
                    break
                # What was of no use to the last search will hardly be to the next ones.
                if work.info[KEEPING] > (len(work.slots) // 4 if keeps and work.info[HITS] else 0):
                    forget(work)
            place = place_from(code, rules, time, bounds, start, numbers[key] + 1)
            outcome = _preferred(go_on, automaton, code, tables, work, place, time)
            if work.info[STATUS] != OK or outcome >= UNDECIDED:
                break
            if outcome == MATCHED:
                work.info[PENDING] = PATH_ROW + 1
            elif rules.timeouts and work.info[TIMED] > 0:
                work.info[PENDING] = TIMED_ROW + 1
                work.info[DEPTH] = work.info[TIMED]
            else:
                start += 1
                continue
        depth = work.info[DEPTH]
        column = work.info[PENDING] - 1
        number = int(numbers[key]) + 1 if column == PATH_ROW else 0
        if not report(search.out, work, column, depth, (start, key, number)):
            break
        work.info[PENDING] = 0
        if column == PATH_ROW:
            numbers[key] += 1
            following = _next_start(work, rules, start, depth)
            if work.info[STATUS] != OK:
                break
            start = following
        else:
            start += 1
    return start


@inline_lean
def _search_keys(go_on: _GoOn, search: RowSearch) -> None:
    """Search partitions from key info[KEY_AT] on, as long as matches fit and the budget lasts."""
    for key in range(search.work.info[KEY_AT], len(search.partitions.begin)):
        search.work.info[BUDGET] -= 1
        if leave(search, key, _search_preferred(go_on, search, key)):
            return


@lean_kernel
def search_contiguous(search: RowSearch) -> None:
    """Search partitions for preferred matches of consecutive rows."""
    _search_keys(contiguous_on, search)


@lean_kernel
def search_next(search: RowSearch) -> None:
    """Search partitions for preferred matches, rows that do not fit being skipped."""
    _search_keys(next_on, search)
