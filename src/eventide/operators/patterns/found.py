"""The automaton as arrays for the two matchers, their arrays as matches, and how they ended."""

from __future__ import annotations

import numpy as np

from eventide.errors import EvaluationError
from eventide.kernels.compiled import frozen
from eventide.kernels.patterns.notes import Predecessors
from eventide.kernels.patterns.scan import Scanned
from eventide.kernels.patterns.search import MOST_TAKEN, Found
from eventide.kernels.patterns.tables import (
    MOST_STEPS,
    NO_SKIP_TARGET,
    OK,
    OUT_OF_STEPS,
    PAUSED,
    SKIP_TO_START,
    TOO_MANY_MATCHES,
)
from eventide.operators.patterns.masks import RowsByKey
from eventide.operators.patterns.measures import MatchChains
from eventide.plan.patterns.automaton import PatternAutomaton
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.schema import TS


def predecessors_of(automaton: PatternAutomaton) -> Predecessors:
    """Return the predecessors of each node as bits; empty for a pattern of more than 64 nodes."""
    nodes = automaton.nodes if len(automaton.nodes) <= 64 else ()
    of, first = [0] * len(nodes), [0] * len(nodes)
    variables = [0] * len(automaton.variables)
    done = [0, 0, 0]
    taking = [0, 0]
    for number, node in enumerate(nodes):
        bit = 1 << number
        if node.variable >= 0:
            variables[node.variable] |= bit
        for step in node.steps:
            if step.variable >= 0:
                (first if step.at_start else of)[step.target] |= bit
                taking[step.at_start] |= bit
            elif not (step.at_start and step.at_end):
                # There is always a row between the start and the end.
                done[2 if step.at_end else int(step.at_start)] |= bit
    return Predecessors(
        frozen(np.array(of, np.uint64)),
        frozen(np.array(first, np.uint64)),
        frozen(np.array(variables, np.uint64)),
        *map(np.uint64, done),
        *map(np.uint64, taking),
    )


def scanned_matches(scanned: Scanned, *, shares: bool) -> MatchChains:
    """Return the matches that the two passes found."""
    return MatchChains(
        scanned.key,
        scanned.start,
        scanned.number,
        np.zeros(len(scanned.key), np.bool_),
        scanned.head,
        frozen(scanned.own),
        scanned.row,
        frozen(scanned.node),
        frozen(scanned.next),
        shares,
    )


def searched_matches(found: Found) -> MatchChains:
    """Return the matches that the search found; their paths lie one after another."""
    lengths = np.diff(found.first)
    following = np.arange(1, len(found.row) + 1, dtype=np.int64)
    following[found.first[1:][lengths > 0] - 1] = -1
    return MatchChains(
        found.key,
        found.start,
        found.number,
        found.timed_out,
        np.where(lengths > 0, found.first[:-1], -1),
        frozen(found.first),
        found.row,
        frozen(found.node),
        frozen(following),
        shares=False,
    )


def check_outcome(node: MatchRecognize, status: int, where: int, by_key: RowsByKey) -> None:
    """Raise the error that a matcher came upon at a start row, if it did."""
    if status in (OK, PAUSED):
        return
    skip = node.skip
    at = by_key.column(TS)[where].as_py()
    if status == NO_SKIP_TARGET:
        message = f"the match at {at} has no row of {skip.variable} to skip to"
        hint = "skip PAST LAST ROW or TO NEXT ROW, which every match can"
        raise EvaluationError(message, span=skip.span, hint=hint)
    if status == SKIP_TO_START:
        message = f"the match at {at} begins with {skip.variable}: to skip there finds it again"
        hint = "skip TO NEXT ROW, or to a variable that comes later"
        raise EvaluationError(message, span=skip.span, hint=hint)
    if status == TOO_MANY_MATCHES:
        message = f"the matches up to those from the row at {at} have more than {MOST_TAKEN:,} rows"
        hint = "skip_till_any finds every combination: add WITHIN, or narrow the conditions"
        raise EvaluationError(message, span=node.span, hint=hint)
    assert status == OUT_OF_STEPS
    message = f"the pattern takes more than {MOST_STEPS:,} steps from the row at {at}"
    hint = (
        "its conditions tell too many ways of matching the same rows apart: "
        "add WITHIN, or make the conditions of its parts exclude each other"
    )
    raise EvaluationError(message, span=node.span, hint=hint)
