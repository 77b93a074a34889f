"""The live engine of queries that run as one, and how queries come to be one with others.

A query answers as if it had always run alone from its start. Queries that begin together are a
*cohort*: they have a state of their own, for which no event before their start has come. Once its
feeds are as those of the others, at the same clock and with the same events waiting, nothing of the
state depends on the start any more but what is each query's own: then the states are united. With
events in order that is after one step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import pyarrow as pa

from eventide.arrays import no_rows
from eventide.engines.live.engine import (
    NOTHING_REACHED,
    Arrived,
    LiveEngine,
    LiveState,
    Reported,
)
from eventide.engines.live.feeds import FeedState, LiveFeed
from eventide.engines.live.sharing.held import HeldEvents
from eventide.engines.live.sharing.tree.states import SharedStates, TemplateRows
from eventide.engines.live.sharing.tree.stepping import SharedTree
from eventide.engines.live.sharing.tree.uniting import (
    apart,
    can_unite,
    compacted,
    forget_gone,
    united,
)
from eventide.engines.live.sharing.turns import RefreshTurns
from eventide.engines.live.sharing.windows import WindowsRun
from eventide.kernels.compiled import Int64s
from eventide.operators.envelope import QUERY, Owner
from eventide.operators.operator import Size
from eventide.operators.tree import OperatorTree, TreeLeaf
from eventide.plan.meaning import digest_of
from eventide.plan.nodes import Scan
from eventide.plan.sharing.portion import Portion, with_parts
from eventide.plan.times import format_duration
from eventide.schema import Schema, row_schema

MANY_GONE = 1024
"""What queries that have left remember is forgotten once there are so many of them, and half as
many as there are others.
"""


@dataclass(frozen=True)
class SharedEngine(LiveEngine):
    """A live engine whose results are those of many queries."""

    @classmethod
    def over(
        cls,
        streams: Iterable[str],
        catalog: Mapping[str, Schema],
        lateness_us: int = 0,
        max_lag_us: int | None = None,
        *,
        standing: bool = False,
        turns: RefreshTurns | None = None,
    ) -> SharedEngine:
        """Return the engine of queries that read these streams, all of them."""
        names = sorted(streams)
        scans = [Scan(name, tuple(catalog[name].fields())) for name in names]
        leaves = tuple(TreeLeaf(scan, row_schema(scan.row)) for scan in scans)
        feeds = tuple(
            LiveFeed(leaf.scan.stream, leaf.schema, (place,)) for place, leaf in enumerate(leaves)
        )
        # It has the methods of a tree that the engine calls.
        shared = SharedTree(leaves, turns=turns or RefreshTurns(), ends=not standing)
        tree = cast("OperatorTree", shared)
        return cls(scans[0], tree, feeds, lateness_us, None, max_lag_us)

    def fits(self, catalog: Mapping[str, Schema]) -> bool:
        """Whether the streams are as they were when the engine was made."""
        return all(
            name in catalog and leaf.scan.columns == tuple(catalog[name].fields())
            for name, leaf in zip(self.streams, self.shared.leaves, strict=True)
        )

    @property
    def shared(self) -> SharedTree:
        """The tree of all templates."""
        return cast("SharedTree", self.tree)

    def refresh(self, state: LiveState) -> tuple[LiveState, Reported]:
        """Compute refreshes that wait, without any event."""
        nothing = tuple(no_rows(leaf.schema) for leaf in self.shared.leaves)
        operators, rows = self.tree.step(state.operators, nothing, state.clock_us)
        return replace(state, operators=operators), Reported(rows, {}, state.clock_us)

    @cached_property
    def owner(self) -> Owner:
        """The owner of the state: the streams, and how time goes."""
        facts = {QUERY: "queries that run as one", "lateness": format_duration(self.lateness_us)}
        digest = digest_of(self.feeds, self.lateness_us, self.max_lag_us)
        return Owner("live queries that run as one", digest, facts)

    @cached_property
    def nothing(self) -> Any:  # noqa: ANN401 - the results of many queries, not a batch
        """A report without rows."""
        return ()


@dataclass
class SharedStep:
    """What a step of many queries gave: rows by template, and late events by stream."""

    rows: list[TemplateRows] = field(default_factory=list)
    late: list[tuple[Mapping[str, pa.RecordBatch], Int64s]] = field(default_factory=list)
    """Late events, and the queries for which they were too late."""
    failed: dict[int, Exception] = field(default_factory=dict)


class SharedQueries:
    """Live queries over the same streams, in one engine: they come and go between steps."""

    def __init__(self, engine: SharedEngine) -> None:
        self.engine = engine
        self.known: list[LiveState] = []
        """That of those who began long ago, then those of cohorts, without events that are held."""
        self.held: HeldEvents | None = None
        self.fresh = False
        """Whether the last cohort has not taken a step: more queries may join it."""
        self.gone = 0
        """How many queries have left whose operators still remember something."""
        self.left = 0
        """How many queries have left that are still in tables and lists."""

    @property
    def streams(self) -> frozenset[str]:
        """The streams that the queries read."""
        return frozenset(self.engine.streams)

    @property
    def states(self) -> list[LiveState]:
        """The states, behind all events that have been taken."""
        held, self.held = self.held, None
        if held is not None and held.batches:
            # No window ends with them, so there are no rows.
            self.known[0], _ = self.engine.take(
                self.known[0], {self.engine.stream: held.together()}
            )
        return self.known

    @states.setter
    def states(self, states: list[LiveState]) -> None:
        self.known = states

    @property
    def numbers(self) -> Int64s:
        """The numbers of all queries."""
        return np.concatenate([shared_of(state).numbers.all for state in self.known])

    def __len__(self) -> int:
        return sum(shared_of(state).count for state in self.known)

    @property
    def clocks(self) -> list[int]:
        """How far each state is."""
        clocks = [state.clock_us for state in self.known]
        if self.held is not None and self.held.batches:
            clocks[0] = max(clocks[0], self.held.watermark_us)
        return clocks

    def newest_us(self, stream: str) -> int:
        """Return the newest time of a stream that all queries have seen."""
        if self.held is not None:
            return self.held.newest_us
        place = self.engine.streams.index(stream)
        return min(state.feeds[place].newest_us for state in self.known)

    def add(self, portion: Portion, following: Mapping[str, int] = NOTHING_REACHED) -> None:
        """Let queries begin now, with the events that have these numbers, by stream, or higher."""
        for state in self.states[: 1 if len(self.states) > self.fresh else 0]:
            for each in with_parts((portion,)):
                self.engine.shared.announce(shared_of(state), each, following)
        if not self.fresh:
            self.states.append(self.engine.initial_state())
            self.fresh = True
        self.engine.shared.begin(shared_of(self.states[-1]), portion)

    def drop(self, numbers: Int64s) -> None:
        """Let queries go."""
        before = len(self)
        tree = self.engine.shared
        parts = [tree.drop(shared_of(state), numbers) for state in self.states]
        for state in self.states:
            tree.stop_counting(shared_of(state), np.concatenate(parts))
        gone = before - len(self)
        self.gone += gone
        self.left += gone
        if self.gone > max(MANY_GONE, len(self) // 2):
            self.forget_gone()
        if self.left > max(MANY_GONE, len(self) // 2):
            self.compact()

    def forget_gone(self) -> None:
        """Free what queries that have left remember."""
        self.gone = 0
        for state in self.states:
            forget_gone(self.engine.shared, shared_of(state))

    def compact(self) -> None:
        """Free the room of queries that have left: in indexes, tables of constants, and lists."""
        self.left = 0
        for place, state in enumerate(self.states):
            whole = compacted(self.engine.shared, shared_of(state))
            self.states[place] = replace(state, operators=cast("tuple[Any, ...]", whole))
        self.engine.shared.keep_templates(map(shared_of, self.states))

    def apart(self, number: int) -> LiveState:
        """Return the state of one query, which leaves the others."""
        alone = self.looked_at(number)
        self.drop(np.array([number], np.int64))
        return alone

    def looked_at(self, number: int) -> LiveState:
        """Return a state of one query alone, which stays here as well."""
        one = np.array([number], np.int64)
        for state in self.states:
            if number in shared_of(state).numbers.all:
                alone = apart(self.engine.shared, shared_of(state), one)
                return replace(state, operators=cast("tuple[Any, ...]", alone))
        message = f"no query {number} here"
        raise KeyError(message)

    def join(self, state: LiveState) -> None:
        """Let queries with a state of their own run with the others."""
        place = len(self.states) - self.fresh
        self.states.insert(place, state)
        self.unite()

    def take(self, arrived: Arrived, reached: Mapping[str, int] = NOTHING_REACHED) -> SharedStep:
        """Take events of some streams that have arrived together."""
        if arrived and not reached and self.holds(arrived):
            return SharedStep()
        return self.stepped(lambda state: self.engine.take(state, arrived, None, reached))

    def holds(self, arrived: Arrived) -> bool:
        """Let events wait, if they change nothing yet."""
        if len(self.known) != 1 or self.fresh or len(self.engine.feeds) != 1:
            return False
        if self.held is None:
            (state,) = self.known
            self.held = HeldEvents.behind(state, shared_of(state), self.engine.lateness_us)
        return self.held.takes(self.engine.by_feed(arrived)[0])

    def advance(self, until_us: int, stream: str | None = None) -> SharedStep:
        """Move a stream, or all of them, to a time."""
        return self.stepped(lambda state: self.engine.advance(state, until_us, stream))

    def refresh(self) -> SharedStep:
        """Compute refreshes that wait."""
        return self.stepped(self.engine.refresh) if self.waiting else SharedStep()

    @property
    def windows(self) -> Iterator[WindowsRun]:
        """The windows that all count: the first state counts for cohorts as well."""
        known: set[str] = set()
        for state in self.known:
            for run in shared_of(state).runs:
                digest = run.tree.template.digest
                if run.windows is not None and digest not in known:
                    known.add(digest)
                    yield run.windows

    @property
    def waiting(self) -> int:
        """How many queries have a refresh that waits for its turn."""
        return sum(each.waiting for each in self.windows)

    def finish(self) -> SharedStep:
        """Complete all that is open: no event will follow."""
        return self.stepped(self.engine.finish)

    def stepped(self, step: Callable[[LiveState], tuple[LiveState, Any]]) -> SharedStep:
        """Take a step with every state, then unite those that have become alike."""
        found = SharedStep()
        for place, state in enumerate(self.states):
            shared_of(state).is_cohort = place > 0
            self.states[place], reported = step(state)
            found.rows += reported.rows
            if reported.late and not place:
                # The others may begin where these events are not late.
                for other in self.states[1:]:
                    shared_of(other).took_more = True
            if reported.late:
                found.late.append((reported.late, shared_of(state).numbers.all))
            found.failed |= shared_of(state).take_failed()
        self.fresh = False
        self.unite()
        if self.engine.shared.channels.is_full:
            self.engine.shared.keep_channels(map(shared_of, self.states))
        return found

    def unite(self) -> None:
        """Unite states that differ only in what is each query's own."""
        kept: list[LiveState] = []
        for place, state in enumerate(self.states):
            is_fresh = self.fresh and place == len(self.states) - 1
            for one in kept:
                if not is_fresh and self.can_unite(one, state):
                    united(self.engine.shared, shared_of(one), shared_of(state))
                    break
            else:
                kept.append(state)
        self.states = kept

    def can_unite(self, one: LiveState, other: LiveState) -> bool:
        """Whether two states differ only in what is each query's own."""
        if (one.clock_us, one.past_us) != (other.clock_us, other.past_us):
            return False
        if not all(map(are_equal, one.feeds, other.feeds)):
            return False
        return can_unite(shared_of(one), shared_of(other))

    def sizes(self) -> tuple[tuple[str, Size], ...]:
        """Return how much all states keep."""
        return tuple(each for state in self.states for each in self.engine.sizes(state))

    def settle(self) -> dict[int, Exception]:
        """Do what was put off; return the queries for which it fails, which leave."""
        failed: dict[int, Exception] = {}
        for state in self.states:
            self.engine.shared.settle(shared_of(state))
            failed |= shared_of(state).take_failed()
        return failed

    def dump(self) -> list[bytes]:
        """Write all states out."""
        return [self.engine.dump(state) for state in self.states]

    def load(self, dumped: list[bytes]) -> None:
        """Go on from written states, with the queries that are known."""
        self.engine.shared.know(map(shared_of, self.states))
        self.states = [self.engine.load(each) for each in dumped]
        self.engine.shared.know(())
        self.fresh = False


def shared_of(state: LiveState) -> SharedStates:
    """Return the queries of a state and what their operators remember."""
    return cast("SharedStates", state.operators)


def are_equal(one: FeedState, other: FeedState) -> bool:
    """Whether two feeds are as far, and the same events wait."""
    if (one.newest_us, one.advanced_us) != (other.newest_us, other.advanced_us):
        return False
    return one.waiting is other.waiting or one.waiting.equals(other.waiting)
