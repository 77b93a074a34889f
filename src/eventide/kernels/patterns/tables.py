"""The input of the matchers: the automaton, the rows by key, and the rules, as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from eventide.kernels.compiled import Bools, Int64s

CONTIGUOUS, SKIP_TILL_NEXT, SKIP_TILL_ANY = range(3)
PAST_LAST, NEXT_ROW, TO_FIRST, TO_LAST = range(4)

# How a run of a matcher ends. A paused one goes on when it is called again.
(
    OK,
    OUT_OF_STEPS,
    NO_SKIP_TARGET,
    SKIP_TO_START,
    NO_ANSWER,
    PAUSED,
    TOO_MANY_MATCHES,
    OUT_OF_BUDGET,
) = range(8)

MOST_STEPS = 20_000_000
"""Ways on that are tried from one start row before a search is given up: a few seconds."""

PIECE = 4_000_000
"""How much a kernel does before it returns, to be called again: some tenths of a second. Between
two calls the interpreter notices that somebody wants it to stop."""

Masks = npt.NDArray[np.uint64]


class Steps(NamedTuple):
    """An automaton: the steps of node n are [first[n], first[n + 1]), the preferred one first.

    A step takes a row as `variable`, or completes the match if that is -1, and leads to node
    `target`. `absent` has the bits of the variables that no skipped row may be. Those in `later`
    are checked once the match is complete, with all rows of the variables in `late`.
    """

    first: Int64s
    variable: Int64s
    target: Int64s
    at_start: Bools
    at_end: Bools
    absent: Masks
    later: Masks
    late: Masks
    node_variable: Int64s


class Partitions(NamedTuple):
    """Rows by key: key k has rows [offsets[k], offsets[k + 1]) in order.

    `begin` is the first start row to try, `known` the first row that cannot be tested yet because
    rows that NEXT reads are missing. `whole` says that the key's first row here is the first of its
    partition. `seen` is what `known` was at the last call, `numbers` the matches so far.
    """

    offsets: Int64s
    begin: Int64s
    known: Int64s
    whole: Bools
    seen: Int64s
    numbers: Int64s


class Rows(NamedTuple):
    """Times, and bit v for every variable v whose condition a row's own values satisfy."""

    ts: Int64s
    masks: Masks


class Rules(NamedTuple):
    """How matches are made, and how far time has come. `within_us` is -1 without WITHIN.

    `skip_set` has the bits of the variables to skip to.
    """

    strategy: int = CONTIGUOUS
    within_us: int = -1
    watermark_us: int = -(2**62)
    last_watermark_us: int = -(2**62)
    ended: bool = True
    skip_to: int = PAST_LAST
    skip_set: int = 0
    timeouts: bool = False
    most_steps: int = MOST_STEPS
    piece: int = PIECE
