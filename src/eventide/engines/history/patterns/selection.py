"""Choose which conditions to look up: those with the least expected cost of the query.

With few conditions all choices are compared. With many, conditions are added one by one to the
choices that no other beats in both the seconds for looking up and the seconds for the replay.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eventide.engines.history.patterns.estimate import (
    Estimates,
    PatternFacts,
    all_choices,
    estimates,
)
from eventide.engines.history.weights import Weights
from eventide.kernels.compiled import Bools, Int64s

MOST_COMPARED = 14
"""Up to this many conditions all choices are compared: 16,384 take some ten milliseconds."""
MOST_CONSIDERED = 32
"""With more conditions, as repeated symbols bring, only the most selective are considered."""
MOST_KEPT = 48
"""How many choices are carried on from condition to condition."""


def best_choice(facts: PatternFacts, weights: Weights) -> Bools:
    """Return the choice with the least expected cost, all False for the map alone."""
    count = len(facts.shape.conditions)
    if count > MOST_CONSIDERED:
        promising = np.sort(np.argsort(facts.shares, kind="stable")[:MOST_CONSIDERED])
        chosen = np.zeros(count, np.bool_)
        chosen[promising] = best_choice(only(facts, promising), weights)
        return chosen
    few = count <= MOST_COMPARED
    choices = all_choices(count) if few else undominated_choices(facts, weights)
    best: Bools = choices[int(np.argmin(estimates(facts, choices, weights).seconds))]
    return best


def only(facts: PatternFacts, conditions: Int64s) -> PatternFacts:
    """Return what is known of some of the conditions."""
    every = facts.shape.conditions
    return replace(
        facts,
        shape=replace(facts.shape, conditions=tuple(every[each] for each in conditions)),
        reaches=[facts.reaches[each] for each in conditions],
        shares=facts.shares[conditions],
        profiles=facts.profiles[:, conditions],
    )


def undominated_choices(facts: PatternFacts, weights: Weights) -> Bools:
    """Return choices of many conditions that others do not beat, and the empty one.

    A single condition seldom leaves less to read, two side by side do: so the search begins with
    all pairs.
    """
    count = len(facts.shape.conditions)
    one = np.eye(count, dtype=np.bool_)
    first, second = np.triu_indices(count, 1)
    kept = promising(facts, np.concatenate([one, one[first] | one[second]]), weights)
    # The most selective first: they are in most good choices, and later choices build on them.
    for condition in np.argsort(facts.shares, kind="stable"):
        added = kept.copy()
        added[:, condition] = True
        kept = promising(facts, np.unique(np.concatenate([kept, added]), axis=0), weights)
    return np.concatenate([np.zeros((1, count), np.bool_), kept])


def promising(facts: PatternFacts, choices: Bools, weights: Weights) -> Bools:
    """Return the choices that no other beats."""
    kept: Bools = choices[undominated(estimates(facts, choices, weights))]
    return kept


def undominated(found: Estimates) -> Int64s:
    """Return the places of choices that no other beats in both looking up and replay."""
    asked, replay = found.lookup_seconds, found.seconds - found.lookup_seconds
    order = np.lexsort((replay, asked))
    best = np.minimum.accumulate(replay[order])
    fresh = np.concatenate([[True], best[1:] < best[:-1]])
    front: Int64s = order[fresh]
    if len(front) > MOST_KEPT:
        front = front[np.argsort(found.seconds[front], kind="stable")[:MOST_KEPT]]
    return front
