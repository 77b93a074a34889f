"""GROUP BY of a standing query with sketches: panes that are merged at every refresh.

With SLIDE, tuples come and go only at refreshes. The tuples of a group that come and go together
are a pane, of which only partial results are kept; the row of a group is merged from its living
panes.

    refresh     0    10    20    30    40       RANGE 30 SLIDE 10
    pane        ├─a───────────────┤
                      ├─b───────────────┤       at 20: a, b and c; at 30: b, c and d
                            ├─c────────────
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from eventide.accumulators import Accumulator, Groups
from eventide.accumulators.columns import one_spelling
from eventide.arrays import no_rows, to_arrow
from eventide.errors import UnsupportedError
from eventide.kernels.compiled import Int64s, frozen
from eventide.operators.aggregate import accumulator_of, arguments_of
from eventide.operators.changes import NEVER, Changes
from eventide.operators.checking import filled, require, require_ascending, require_within
from eventide.operators.columns import concat_batches
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.fingerprints import fingerprints
from eventide.operators.operator import Size
from eventide.operators.standing.groups.bounded import BoundedSketch, require_alike
from eventide.operators.standing.groups.sketches import DistinctSketch, FrequentSketch, Sketch
from eventide.operators.standing.ids import joined_ids
from eventide.operators.state import join_parts, parts_of, read_rows, write_rows
from eventide.operators.stateful import Stateful
from eventide.plan.aggregates import FREQUENT, MERGED_WITH_SKETCHES, SKETCHED
from eventide.plan.expressions import Aggregate
from eventide.plan.render import render
from eventide.plan.standing.edges import Edge, UpdatePattern
from eventide.plan.standing.nodes import GroupAggregate

WORD = pa.int64()


@dataclass(frozen=True)
class PaneState:
    """Living panes, the entries of each sketch in order of pane, and the rows in the answer."""

    panes: pa.RecordBatch
    entries: tuple[pa.RecordBatch, ...]
    emitted: pa.RecordBatch

    @cached_property
    def first_exp(self) -> int:
        """When the first pane goes."""
        return int(_words(self.panes, "exp").min(initial=NEVER))


@dataclass(frozen=True)
class AggregatePanes(Stateful[PaneState]):
    """Maintains the rows of groups from panes; instants are multiples of `slide_us`."""

    node: GroupAggregate
    edge: Edge
    slide_us: int

    def __post_init__(self) -> None:
        for item in self.node.aggregates:
            if (
                item.aggregate.function not in (*SKETCHED, *MERGED_WITH_SKETCHES)
                or item.aggregate.distinct
            ):
                message = f"{render(item.aggregate)} beside a sketch in a standing query"
                hint = "ask two queries, or use count_distinct and top_k, which are exact"
                raise UnsupportedError(message, span=item.aggregate.span, hint=hint)
        if self.edge.pattern == UpdatePattern.STRICT:
            message = "a sketch cannot take back a tuple that goes before its time"
            hint = "take it over windows of time, or use count_distinct and top_k, which are exact"
            span = self._frequent[0].span if self._frequent else self.node.span
            raise UnsupportedError(message, span=span, hint=hint)
        require_alike(self._frequent)

    @cached_property
    def key_schema(self) -> pa.Schema:
        """The columns of the keys."""
        return pa.schema([(key.name, key.type.arrow) for key in self.node.keys])

    @cached_property
    def output_schema(self) -> pa.Schema:
        """The columns of the output."""
        return pa.schema([(name, kind.arrow) for name, kind in self.node.row.items()])

    @property
    def _frequent(self) -> list[Aggregate]:
        """The aggregates that are about frequent values."""
        aggregates = (item.aggregate for item in self.node.aggregates)
        return [each for each in aggregates if each.function in FREQUENT]

    @cached_property
    def bounded(self) -> BoundedSketch | None:
        """What finds the frequent values, if they are wanted: a group then has a row for each."""
        return BoundedSketch.of(self._frequent[0]) if self._frequent else None

    @cached_property
    def accumulators(self) -> tuple[Accumulator | Sketch | None, ...]:
        """How each aggregate is computed; None for those that are about frequent values."""
        return tuple(accumulator_or_sketch(item.aggregate) for item in self.node.aggregates)

    @cached_property
    def pane_schema(self) -> pa.Schema:
        """The columns of panes: when they come and go, fingerprints, keys, partial results."""
        fields = [pa.field(name, WORD) for name in ("at", "exp", "first", "second")]
        fields += [pa.field(f"key{i}", kind) for i, kind in enumerate(self.key_schema.types)]
        for i, each in enumerate(self.accumulators):
            if each is not None and not isinstance(each, Sketch):
                fields += [pa.field(f"p{i}.{k}", kind) for k, kind in enumerate(each.types)]
        return pa.schema(fields)

    @cached_property
    def emitted_schema(self) -> pa.Schema:
        """The columns of rows in the answer: fingerprints of key and row, the id, the row."""
        words = [pa.field(f"_{i}", WORD) for i in range(5)]
        rows = [pa.field(f"row{i}", kind) for i, kind in enumerate(self.output_schema.types)]
        return pa.schema(words + rows)

    @cached_property
    def sketches(self) -> tuple[Sketch | BoundedSketch, ...]:
        """The sketches among the aggregates; that of frequent values is the last."""
        plain = tuple(each for each in self.accumulators if isinstance(each, Sketch))
        return plain if self.bounded is None else (*plain, self.bounded)

    def initial_state(self) -> PaneState:
        """Return the state before the first instant."""
        entries = tuple(_nothing(sketch.schema) for sketch in self.sketches)
        return PaneState(_nothing(self.pane_schema), entries, _nothing(self.emitted_schema))

    def step(
        self, state: PaneState, inputs: tuple[Changes, ...], until_us: int
    ) -> tuple[PaneState, Changes]:
        """Take changes; return the rows that go and come at each refresh."""
        # Announced ends are known already: panes expire by themselves.
        changes = inputs[0].take(np.flatnonzero(inputs[0].sign > 0))
        if not len(changes) and state.first_exp >= until_us:
            # Most steps lie between two refreshes.
            return state, Changes.nothing(self.output_schema)
        state = self._added(state, changes)
        at, exp = _words(state.panes, "at"), _words(state.panes, "exp")
        instants = np.unique(np.concatenate([changes.at, exp[exp < until_us]]))
        parts = []
        for instant in instants:
            living = np.flatnonzero((at <= instant) & (exp > instant))
            fresh = self._rows(state, living, int(instant))
            emitted, changes_now = self._turnover(state.emitted, fresh, int(instant))
            parts.append(changes_now)
            state = replace(state, emitted=emitted)
        kept = self._kept(state, np.flatnonzero(exp >= until_us))
        return kept, Changes.concat(parts, self.output_schema)

    def _added(self, state: PaneState, changes: Changes) -> PaneState:
        """Return the state with the panes of changes behind the others."""
        if not len(changes):
            return state
        keys = [one_spelling(evaluate(key.expression, changes.rows)) for key in self.node.keys]
        prints = fingerprints(keys, len(changes))
        names = np.stack([changes.at, changes.exp, prints.first, prints.second], axis=1)
        panes, places, owners = np.unique(names, axis=0, return_index=True, return_inverse=True)
        owners, count = frozen(owners.ravel()), len(panes)
        columns = [to_arrow(panes[:, i]) for i in range(4)]
        columns += [key.take(to_arrow(places)) for key in keys]
        before = state.panes.num_rows
        lifted = []
        for item, each in zip(self.node.aggregates, self.accumulators, strict=True):
            if each is None:
                continue
            values = arguments_of(item.aggregate, changes.rows)
            if isinstance(each, Sketch):
                lifted.append(each.lift(values[0], owners, count))
            else:
                columns += each.by_group(each.lift(*values), Groups(owners, count))
        if self.bounded is not None:
            (values,) = arguments_of(self._frequent[0], changes.rows)
            lifted.append(self.bounded.lift(values, owners, count))
        entries = [_renumbered(each, before + _words(each, "pane")) for each in lifted]
        fresh = pa.RecordBatch.from_arrays(columns, schema=self.pane_schema)
        return PaneState(
            concat_batches([state.panes, fresh], self.pane_schema),
            tuple(
                concat_batches([old, new], sketch.schema)
                for old, new, sketch in zip(state.entries, entries, self.sketches, strict=True)
            ),
            state.emitted,
        )

    def _rows(self, state: PaneState, living: Int64s, instant: int) -> pa.RecordBatch:
        """Return the row of each group that has living panes, or one for each frequent value."""
        panes = state.panes.take(to_arrow(living))
        names = np.stack([_words(panes, "first"), _words(panes, "second")], axis=1)
        groups, places, owners = np.unique(names, axis=0, return_index=True, return_inverse=True)
        owners, count = frozen(owners.ravel()), len(groups)
        owner_of_pane = np.full(state.panes.num_rows, -1, np.int64)
        owner_of_pane[living] = owners
        keys = len(self.node.keys)
        columns = [panes.column(4 + i).take(to_arrow(places)) for i in range(keys)]
        place, sketch = 4 + keys, 0
        for each in self.accumulators:
            if each is None:
                columns.append(pa.nulls(count))
            elif isinstance(each, Sketch):
                held, owner = _entries(state.entries[sketch], owner_of_pane)
                columns.append(each.finish(held, owner, count))
                sketch += 1
            else:
                partials = panes.columns[place : place + len(each.types)]
                columns.append(each.finish(each.by_group(partials, Groups(owners, count))))
                place += len(each.types)
        if self.bounded is not None:
            held, owner = _entries(state.entries[-1], owner_of_pane)
            listed = self.bounded.listed(held, owner, count)
            functions = [item.aggregate.function for item in self.node.aggregates]
            columns = listed.columns([*[""] * keys, *functions], columns)
            groups, count = groups[listed.owners], len(listed.owners)
        prints = fingerprints(columns, count)
        first, second = groups[:, 0], groups[:, 1]
        named = [first, second]
        if self.bounded is not None:
            # Several rows of a group are born at the same instant.
            named += [prints.first, prints.second]
        born = joined_ids(*named, np.full(count, instant, np.int64))
        words = [first, second, prints.first, prints.second, born]
        return pa.RecordBatch.from_arrays(
            [*(to_arrow(word) for word in words), *columns], schema=self.emitted_schema
        )

    def _turnover(
        self, old: pa.RecordBatch, new: pa.RecordBatch, instant: int
    ) -> tuple[pa.RecordBatch, Changes]:
        """Return the new rows, with their old ids if they stay, and those that go and come."""
        _, old_places, new_places = np.intersect1d(_names(old), _names(new), return_indices=True)
        ids = _words(new, "_4").copy()
        ids[new_places] = _words(old, "_4")[old_places]
        new = new.set_column(4, "_4", to_arrow(ids))
        going = np.setdiff1d(np.arange(old.num_rows), old_places)
        coming = np.setdiff1d(np.arange(new.num_rows), new_places)
        turned = [old.take(to_arrow(going)), new.take(to_arrow(coming))]
        rows = concat_batches(turned, self.emitted_schema)
        changes = Changes(
            pa.RecordBatch.from_arrays(rows.columns[5:], schema=self.output_schema),
            np.full(rows.num_rows, instant, np.int64),
            np.full(rows.num_rows, NEVER, np.int64),
            np.repeat(np.array([-1, 1], np.int8), [len(going), len(coming)]),
            _words(rows, "_4"),
        )
        return new, changes

    def _kept(self, state: PaneState, living: Int64s) -> PaneState:
        """Return the state with only these panes."""
        numbers = np.full(state.panes.num_rows, -1, np.int64)
        numbers[living] = np.arange(len(living))
        entries = []
        for held in state.entries:
            panes = numbers[_words(held, "pane")]
            there = np.flatnonzero(panes >= 0)
            entries.append(_renumbered(held.take(to_arrow(there)), panes[there]))
        return PaneState(state.panes.take(to_arrow(living)), tuple(entries), state.emitted)

    def write(self, state: PaneState) -> bytes:
        """Write the state out."""
        name = type(self).__name__
        batches = [state.panes, state.emitted, *state.entries]
        return join_parts([write_rows(name, rows, {}) for rows in batches])

    def read(self, written: bytes) -> PaneState:
        """Read back what `write` wrote."""
        name = type(self).__name__
        schemas = [self.pane_schema, self.emitted_schema, *(each.schema for each in self.sketches)]
        parts = parts_of(name, written, len(schemas))
        panes, emitted, *entries = (
            read_rows(name, part, schema)[0] for part, schema in zip(parts, schemas, strict=True)
        )
        state = PaneState(panes, tuple(entries), emitted)
        self._check(state)
        return state

    def _check(self, state: PaneState) -> None:
        """Refuse panes without times or names, and entries of sketches without a pane."""
        for words in (state.panes.columns[:4], state.emitted.columns[:5]):
            for column in words:
                filled(column, "names of panes and rows")
        at, exp = _words(state.panes, "at"), _words(state.panes, "exp")
        require((at < exp).all(), "a pane that goes before it comes")
        for sketch, entries in zip(self.sketches, state.entries, strict=True):
            panes = filled(entries.column("pane"), "panes of sketches")
            require_within(panes, 0, state.panes.num_rows, "panes of sketches")
            require_ascending(panes, "panes of sketches")
            sketch.check(entries)

    def size(self, state: PaneState) -> Size:
        """Return the size of the state: panes, and bytes."""
        held = (state.panes, state.emitted, *state.entries)
        return Size(state.panes.num_rows, sum(rows.nbytes for rows in held))


def accumulator_or_sketch(aggregate: Aggregate) -> Accumulator | Sketch | None:
    """Return how an aggregate of panes is computed; None if it is about frequent values."""
    if aggregate.function in FREQUENT:
        return None
    if aggregate.function not in SKETCHED:
        return accumulator_of(aggregate)
    if aggregate.function == "approx_count_distinct":
        return DistinctSketch()
    assert aggregate.argument is not None
    return FrequentSketch(aggregate.argument.type.arrow, int(aggregate.parameter or 1))


def _nothing(schema: pa.Schema) -> pa.RecordBatch:
    return no_rows(schema)


def _words(rows: pa.RecordBatch, name: str) -> Int64s:
    found: Int64s = rows.column(name).to_numpy(zero_copy_only=False)
    return found


def _entries(held: pa.RecordBatch, owner_of_pane: Int64s) -> tuple[pa.RecordBatch, Int64s]:
    """Return the entries of panes that have an owner, and their owners."""
    owner = owner_of_pane[_words(held, "pane")]
    there = np.flatnonzero(owner >= 0)
    return held.take(to_arrow(there)), owner[there]


def _renumbered(entries: pa.RecordBatch, panes: Int64s) -> pa.RecordBatch:
    return entries.set_column(0, entries.schema.field(0), to_arrow(panes))


def _names(emitted: pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """Return group and row of what is in the answer as one value each."""
    words = np.stack([_words(emitted, f"_{i}") for i in range(4)], axis=1)
    return np.ascontiguousarray(words).view("i8,i8,i8,i8").ravel()
