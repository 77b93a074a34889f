"""ORDER BY … LIMIT n of a standing query: the first of the living rows.

All living rows are kept in order. A row that leaves the front while it lives is taken back, and
comes again if it returns there. With keys, the order begins with them, and each key has a front.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.errors import UnsupportedError
from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.growing import longer
from eventide.kernels.lifetimes.first_rows import (
    CHANGES,
    COUNT,
    KEY_WORDS,
    NEXT,
    Ranking,
    Turns,
    rank_rows,
    rank_rows_by_key,
)
from eventide.kernels.lifetimes.tuple_operations import Operations
from eventide.operators.changes import NEVER, Changes
from eventide.operators.checking import (
    LONGEST_US,
    filled,
    require,
    require_lengths,
    require_living,
    require_within,
)
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.fingerprints import fingerprints
from eventide.operators.operator import Size
from eventide.operators.standing.groups.texts import Texts
from eventide.operators.standing.row_log import RowLog, is_sparse
from eventide.operators.standing.tuples import GroupedChanges, PlacedTuples
from eventide.operators.standing.words import double_words, integer_words, text_words
from eventide.operators.state import join_parts, parts_of, read_rows, write_rows
from eventide.operators.stateful import Stateful
from eventide.plan.aggregates import LONGEST_WORD
from eventide.plan.expressions import OrderKey
from eventide.plan.render import render
from eventide.plan.standing.edges import Edge, UpdatePattern
from eventide.plan.standing.execution import Execution
from eventide.plan.standing.nodes import Top
from eventide.schema import MAX_TS_US, MIN_TS_US

ROOM = 4096
BORN, ID, NUMBER, EXP = -4, -3, -2, -1
"""The words behind those of the order: when a row came, its id, the number of its values, and when
it goes."""
_LIVES = pa.schema([(name, pa.int64()) for name in ("born", "id", "exp")])


@dataclass(slots=True)
class TopState:
    """Living rows by place, their order, their values, and the texts by which they are ordered."""

    tuples: PlacedTuples
    ranking: Ranking
    rows: RowLog
    texts: Texts = field(default_factory=Texts.empty)

    @property
    def living(self) -> Int64s:
        """The places of living rows, in order."""
        return self.ranking.order[: int(self.ranking.facts[COUNT])]


@dataclass(frozen=True)
class FirstRows(Stateful[TopState]):
    """Keeps the first rows; `edge` says how the tuples that come in will go."""

    node: Top
    edge: Edge
    execution: Execution = "aware"

    def __post_init__(self) -> None:
        for key in self.node.order:
            kind = key.expression.type
            wide = kind.kind == "decimal" and kind.precision > LONGEST_WORD
            if kind.kind == "binary" or wide:
                message = f"ORDER BY {render(key.expression)} of {kind} in a standing query"
                hint = "order by numbers, texts, times or booleans, or cast it: CAST(… AS double)"
                raise UnsupportedError(message, span=key.expression.span, hint=hint)

    @cached_property
    def output_schema(self) -> pa.Schema:
        """The columns of the output."""
        return pa.schema([(name, kind.arrow) for name, kind in self.node.row.items()])

    @cached_property
    def text_keys(self) -> tuple[int, ...]:
        """Which keys of the order are texts."""
        kinds = [key.expression.type.kind for key in self.node.order]
        return tuple(i for i, kind in enumerate(kinds) if kind == "string")

    @property
    def depth(self) -> int:
        """How many words the order compares: those of the keys, then when a row came and its id."""
        return self.before + 2 * len(self.node.order) + 2

    @property
    def before(self) -> int:
        """How many words of the key of a row stand before those of its order."""
        return KEY_WORDS if self.node.keys else 0

    def initial_state(self) -> TopState:
        """Return the state before the first instant."""
        none = np.zeros(0, np.int64)
        negative = self.execution == "negative"
        tuples = PlacedTuples.empty(
            self.depth + 2,
            listed=self.execution == "direct",
            strict=negative or self.edge.pattern == UpdatePattern.STRICT,
        )
        emitted = np.zeros(self.node.count, np.int64)
        ranking = Ranking(none, emitted, none, np.zeros(5, np.int64))
        return TopState(tuples, ranking, RowLog.empty(self.output_schema))

    def step(
        self, state: TopState, inputs: tuple[Changes, ...], until_us: int
    ) -> tuple[TopState, Changes]:
        """Take changes; return the rows that come to the front and leave it."""
        changes = inputs[0]
        return state, self._turns(state, self._arrivals(state, changes, changes.at), until_us)

    def _turns(self, state: TopState, arrivals: GroupedChanges, until_us: int) -> Changes:
        """Take arrivals; return the rows that come to the front and leave it."""
        operations, tuples = state.tuples.take(arrivals, until_us)
        order, emitted, marks, facts = state.ranking
        order, marks = (longer(array, len(tuples.groups)) for array in (order, marks))
        state.ranking = Ranking(order, emitted, marks, facts)
        exps = tuples.values[EXP]
        # If all ends are announced, those of the front are as well.
        ends = np.full(len(exps), NEVER) if self.execution == "negative" else exps
        if self.node.keys:
            parts = [self._turns_by_key(state, operations, tuples.values, frozen(ends))]
        else:
            parts = self._turns_of_all(state, operations, tuples.values, frozen(ends))
        places, at, signs = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        exp, ids = tuples.values[EXP, places], tuples.values[ID, places]
        rows = state.rows.take(tuples.values[NUMBER, places])
        found = Changes(rows, at, exp, signs.astype(np.int8), ids)
        self._forget(state)
        return found

    def _turns_of_all(
        self, state: TopState, operations: Operations, values: Int64s, ends: Int64s
    ) -> list[list[Int64s]]:
        """Rank all rows together; return places, instants and signs of the turns, in parts."""
        facts = state.ranking.facts
        out = Turns(*(np.empty(ROOM + 2 * self.node.count, np.int64) for _ in range(3)))
        facts[NEXT], done = 0, False
        parts: list[list[Int64s]] = []
        while not done:
            facts[CHANGES] = 0
            done = rank_rows(
                operations,
                values,
                self.depth,
                ends,
                self.node.count,
                state.ranking,
                out,
            )
            parts.append([array[: facts[CHANGES]].copy() for array in out])
        return parts

    def _turns_by_key(
        self, state: TopState, operations: Operations, values: Int64s, ends: Int64s
    ) -> list[Int64s]:
        """Rank the rows of each key; return places, instants and signs of the turns."""
        facts = state.ranking.facts
        out = Turns(*(np.empty(2 * len(operations.at) + 1, np.int64) for _ in range(3)))
        facts[CHANGES] = 0
        rank_rows_by_key(operations, values, self.depth, ends, self.node.count, state.ranking, out)
        return [array[: facts[CHANGES]].copy() for array in out]

    def _arrivals(self, state: TopState, changes: Changes, born: Int64s) -> GroupedChanges:
        """Return changes with the words of their order and the other words of a row.

        `born` is when their rows came.
        """
        coming = changes.sign > 0
        numbers = state.rows.end + np.cumsum(coming) - 1
        state.rows = state.rows.append(changes.rows.filter(to_arrow(coming)))
        self._learn(state, changes.rows)
        words = [*self._key_words(changes.rows)]
        words += [word for pair in self._words(state.texts, changes.rows) for word in pair]
        words += [born, changes.id, numbers, changes.exp]
        count = len(changes)
        if self.execution == "negative":
            changes = replace(changes, exp=np.full(count, NEVER, np.int64))
        values = np.array(words, np.int64).reshape(len(words), count)
        return GroupedChanges(
            changes, np.zeros(count, np.int32), values, np.ones(values.shape, np.bool_)
        )

    def _key_words(self, rows: pa.RecordBatch) -> Iterator[Int64s]:
        """Yield two words for each row that are the same for the rows of a key."""
        if self.node.keys:
            columns = [evaluate(key, rows) for key in self.node.keys]
            found = fingerprints(columns, rows.num_rows)
            yield from (found.first, found.second)

    def _words(self, texts: Texts, rows: pa.RecordBatch) -> Iterator[tuple[Int64s, Int64s]]:
        """Yield two words for each key and row that together compare as ORDER BY wants it."""
        for key in self.node.order:
            yield order_words(key, evaluate(key.expression, rows), texts)

    def _with_texts(self, texts: Texts, rows: pa.RecordBatch) -> Texts:
        for i in self.text_keys:
            values = evaluate(self.node.order[i].expression, rows).drop_null().cast(pa.string())
            texts = texts.added(text_words(values), values)
        return texts

    def _learn(self, state: TopState, rows: pa.RecordBatch) -> None:
        """Add the texts of rows that come; if some are new, the living rows are ranked again."""
        known, state.texts = state.texts, self._with_texts(state.texts, rows)
        if state.texts is known or len(known) == 0:
            return
        # Texts keep their numbers: only their ranks change.
        ranks = np.zeros(len(known) + 1, np.int64)
        ranks[known.ranks + 1] = state.texts.ranks[: len(known)] + 1
        places = state.living
        for i in self.text_keys:
            word = self.before + 2 * i + 1
            words = state.tuples.values[word, places]
            state.tuples.values[word, places] = np.sign(words) * ranks[np.abs(words)]

    def _forget(self, state: TopState) -> None:
        """Drop the values of rows that have gone, and the texts that only they had."""
        places = state.living
        if is_sparse(state.rows.size, len(places)):
            numbers = state.tuples.values[NUMBER, places]
            state.rows = state.rows.kept(numbers)
            state.tuples.values[NUMBER, places] = np.arange(len(places))
        if self.text_keys and is_sparse(len(state.texts), state.texts.kept):
            self._rank_again(state)

    def _rank_again(self, state: TopState) -> None:
        """Rank the texts of living rows alone."""
        places = state.living
        rows = state.rows.take(state.tuples.values[NUMBER, places])
        found = self._with_texts(Texts.empty(), rows)
        state.texts = replace(found, kept=len(found))
        for i, (_, words) in enumerate(self._words(state.texts, rows)):
            state.tuples.values[self.before + 2 * i + 1, places] = words

    def write(self, state: TopState) -> bytes:
        """Write the state out: the living rows in order, when they came and go, and their ids."""
        name, values = type(self).__name__, state.tuples.values[:, state.living]
        columns = [to_arrow(values[place]) for place in (BORN, ID, EXP)]
        known = pa.RecordBatch.from_arrays(columns, schema=_LIVES)
        rows = state.rows.take(values[NUMBER])
        return join_parts([write_rows(f"{name}, lives", known, {}), write_rows(name, rows, {})])

    def read(self, written: bytes) -> TopState:
        """Read back what `write` wrote: the rows come again, all at the last instant.

        They come in order, so that none has to be moved for another.
        """
        name, state = type(self).__name__, self.initial_state()
        first, second = parts_of(name, written, 2)
        known, _ = read_rows(f"{name}, lives", first, _LIVES)
        rows, _ = read_rows(name, second, self.output_schema)
        born, ids, exp = (filled(column, "lives of rows") for column in known.columns)
        require_lengths(rows.num_rows, (born,), "rows and their lives")
        require_within(born, MIN_TS_US - LONGEST_US, MAX_TS_US + LONGEST_US, "births of rows")
        require(len(np.unique(ids)) == len(ids), "two rows with one id")
        last = int(born.max(initial=MIN_TS_US))
        require_living(exp, last + 1)
        if rows.num_rows:
            at, sign = np.full(len(born), last), np.ones(len(born), np.int8)
            changes = Changes(rows, at, exp, sign, ids)
            self._turns(state, self._arrivals(state, changes, born), last + 1)
        return state

    def size(self, state: TopState) -> Size:
        """Return the size of the state."""
        arrays = (*state.tuples.arrays().values(), *state.ranking._asdict().values())
        held = sum(array.nbytes for array in arrays) + state.texts.texts.nbytes
        return Size(int(state.ranking.facts[COUNT]), held + state.rows.nbytes)


def order_words(key: OrderKey, values: pa.Array, texts: Texts) -> tuple[Int64s, Int64s]:
    """Return two words for each value that together compare as ORDER BY wants it.

    The second word of a text is its rank, from one on, negative if descending: so a new rank can be
    set without looking at the text.
    """
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    match key.expression.type.kind:
        case "string":
            words = np.zeros(len(values), np.int64)
            words[valid] = texts.ranks_of(text_words(values.drop_null().cast(pa.string()))) + 1
            words = -words if key.descending else words
        case "float64":
            words = ~double_words(values) if key.descending else double_words(values)
        case _:
            words = ~integer_words(values) if key.descending else integer_words(values)
    beside = -1 if key.nulls_first else 1
    return np.where(valid, 0, beside), np.where(valid, words, 0)
