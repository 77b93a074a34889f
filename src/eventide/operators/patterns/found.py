"""The automaton as arrays for the two matchers, and their arrays as matches."""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import frozen
from eventide.kernels.patterns.notes import Predecessors
from eventide.kernels.patterns.scan import Scanned
from eventide.kernels.patterns.search import Found
from eventide.operators.patterns.measures import MatchChains
from eventide.plan.patterns.automaton import PatternAutomaton


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
