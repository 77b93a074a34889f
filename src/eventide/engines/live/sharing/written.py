"""Many live queries, written out and read back: the states of those that share, and of the others.

Whoever reads them has planned the same queries again, and begun them in an engine of their own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np

from eventide.engines.live.engine import LiveEngine, LiveState
from eventide.engines.live.sharing.engine import SharedQueries
from eventide.engines.live.sharing.many import ManyQueries
from eventide.engines.standing.resume import resumed
from eventide.errors import StateError
from eventide.operators.state import join_parts, split_parts
from eventide.plan.tree import Plan
from eventide.schema import Schema

Bound = tuple[Plan, Mapping[str, Schema]]
"""The plan of a query as it was bound, and the streams as they were."""
SAME_FIRST = "plan the queries that wrote it first, and begin them"


def dump_many(many: ManyQueries) -> bytes:
    """Write the states of all queries."""
    # Those whose queries have all failed are not planned again.
    shared = [(key_of(each), each.dump(), each) for each in many.shared if len(each)]
    facts = {
        "shared": [
            [*key, len(states), each.fresh, each.gone, each.left] for key, states, each in shared
        ],
        "lone": list(many.lone),
    }
    states = [state for _, dumped, _ in shared for state in dumped]
    states += [each.engine.dump(each.state) for each in many.lone.values()]
    return join_parts([json.dumps(facts).encode(), *states])


def load_many(many: ManyQueries, dumped: bytes, bound: Mapping[int, Bound]) -> None:
    """Let queries that have just begun go on from written states.

    `bound` are the queries that run by themselves, by number: of a standing query several plans are
    possible, and it goes on with that which wrote its state.
    """
    head, *states = split_parts(dumped)
    try:
        facts = json.loads(head)
        shared = [(str(digest), bool(ends), *rest) for digest, ends, *rest in facts["shared"]]
        lone = [int(number) for number in facts["lone"]]
    except (LookupError, TypeError, ValueError) as error:
        message = "the states of many queries do not say whose they are"
        raise StateError(message, hint=SAME_FIRST) from error
    known = {key_of(each): each for each in many.shared}
    if {(digest, ends) for digest, ends, *_ in shared} != known.keys() or set(lone) != set(
        many.lone
    ):
        message = "the states are of other queries"
        raise StateError(message, hint=SAME_FIRST)
    many.shared = [known[digest, ends] for digest, ends, *_ in shared]
    place = 0
    for (_, _, count, fresh, gone, left), each in zip(shared, many.shared, strict=True):
        here = np.sort(each.numbers)
        each.load(states[place : place + count])
        place += count
        each.fresh, each.gone, each.left = fresh, gone, left
        if not np.array_equal(np.sort(each.numbers), here):
            message = "the states are of other queries"
            raise StateError(message, hint=SAME_FIRST)
    for number, state in zip(lone, states[place:], strict=True):
        many.add_lone(number, *loaded(many.lone[number].engine, state, bound[number]))


def key_of(shared: SharedQueries) -> tuple[str, bool]:
    """Return what tells queries that share from those of another engine of the same set."""
    return shared.engine.owner.digest, shared.engine.shared.ends


def loaded(engine: LiveEngine, state: bytes, bound: Bound) -> tuple[LiveEngine, LiveState]:
    """Return a query that runs by itself, in its written state."""
    if engine.tree.reporter is None:
        return engine, engine.load(state)
    plan, catalog = bound
    return resumed(engine, plan, catalog, state)
