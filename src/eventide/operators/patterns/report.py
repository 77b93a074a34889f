"""The rows of the output: those of matches with their measures, and those in no match."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from eventide.instants import ALL_TIME, TimeRange
from eventide.kernels.compiled import Bools, Int64s
from eventide.kernels.ordering import ranges
from eventide.operators.columns import concat_batches
from eventide.operators.key_parts import KeyColumns
from eventide.operators.patterns.all_rows import AllRows
from eventide.operators.patterns.masks import RowsByKey
from eventide.operators.patterns.measures import (
    Items,
    MatchChains,
    Measure,
    Measures,
    Naming,
    Unrolled,
)
from eventide.operators.patterns.one_row import AskedPlaces, OneRow
from eventide.plan.patterns.nodes import TIMED_OUT, MatchRecognize


@dataclass(frozen=True)
class Report:
    """The output for matches that start in `owned`."""

    node: MatchRecognize
    output_schema: pa.Schema
    owned: TimeRange
    naming: Naming
    measures: tuple[Measure, ...]

    @property
    def shows_unmatched(self) -> bool:
        """Whether the output has rows in no match, so that matched rows have to be marked."""
        return self.node.output == "with unmatched"

    @cached_property
    def asked(self) -> AskedPlaces:
        """The places that the measures read."""
        return AskedPlaces.of(self.measures, self.naming)

    def rows_from(
        self,
        by_key: RowsByKey,
        keys: KeyColumns,
        matches: MatchChains,
        matched: Bools,
        decided: tuple[Int64s, Int64s],
    ) -> pa.RecordBatch:
        """Return the rows of matches, and those in no match.

        `matched` marks rows of matches; those of these matches are added. `decided` are the start
        rows of each key, from the first to the last, from which matches were looked for.
        """
        if self.shows_unmatched:
            # Matches from earlier rows may reach into the rows owned.
            matched[Unrolled.of(matches, matches.lengths()).row] = True
        if self.owned != ALL_TIME:
            matches = matches.only(self.is_owned(by_key, matches.start))
        if not self.node.all_rows:
            return self.rows_of(OneRow(self.naming, by_key, matches, self.asked), keys, None)
        paths = Unrolled.of(matches, matches.lengths())
        excluded = np.array([node.excluded for node in self.naming.automaton.nodes])
        places = np.flatnonzero(~excluded[paths.node])
        match_of = np.repeat(np.arange(matches.count), np.diff(paths.offsets))
        items = Items(match_of[places], places)
        rows = paths.row[places]
        if self.node.output != "omit empty":
            items, rows = with_empty(items, rows, matches)
        result = self.rows_of(AllRows(self.naming, by_key, matches, paths, items), keys, rows)
        if not self.shows_unmatched:
            return result
        matched[matches.start[matches.head < 0]] = True
        first, last = decided
        passed = ranges(first, np.maximum(last - first, 0))
        lonely = passed[~matched[passed]]
        lonely = lonely[self.is_owned(by_key, lonely)]
        return concat_batches([result, self.unmatched(by_key, keys, lonely)], self.output_schema)

    def is_owned(self, by_key: RowsByKey, rows: Int64s) -> Bools:
        """Return which rows this operator owns."""
        if self.owned == ALL_TIME:
            return np.ones(len(rows), np.bool_)
        ts = by_key.times[rows]
        return np.asarray((ts >= self.owned.start_us) & (ts < self.owned.end_us))

    def rows_of(self, measures: Measures, keys: KeyColumns, rows: Int64s | None) -> pa.RecordBatch:
        """Return result rows: keys, measures, and for ALL ROWS the columns of their rows."""
        matches = measures.matches
        arrays = measures.columns(self.measures)
        if self.node.timeout_rows:
            arrays[TIMED_OUT] = pa.array(measures.of_items(matches.timed_out))
        columns = keys.take(measures.of_items(matches.key))
        arrays |= {key.name: column for key, column in zip(self.node.keys, columns, strict=True)}
        if rows is not None:
            missing = [name for name in self.output_schema.names if name not in arrays]
            others = measures.by_key.at(rows, missing)
            arrays |= {name: others.column(name) for name in missing}
        ordered = [arrays[name] for name in self.output_schema.names]
        return pa.RecordBatch.from_arrays(ordered, schema=self.output_schema)

    def unmatched(self, by_key: RowsByKey, keys: KeyColumns, rows: Int64s) -> pa.RecordBatch:
        """Return rows that are in no match, with null measures."""
        measured = {item.name for item in self.node.measures}
        of_rows = keys.take(np.searchsorted(by_key.offsets, rows, side="right") - 1)
        named = {key.name: column for key, column in zip(self.node.keys, of_rows, strict=True)}
        names = [each for each in self.node.source.row if each not in measured]
        columns = by_key.at(rows, names)
        arrays = []
        for item in self.output_schema:
            if item.name in named:
                arrays.append(named[item.name])
            elif item.name in measured:
                arrays.append(pa.nulls(len(rows), item.type))
            else:
                arrays.append(columns.column(item.name))
        return pa.RecordBatch.from_arrays(arrays, schema=self.output_schema)


def with_empty(items: Items, rows: Int64s, matches: MatchChains) -> tuple[Items, Int64s]:
    """Insert an item for each empty match between the others, for the row it stands at."""
    empty = np.flatnonzero(matches.head < 0)
    if not len(empty):
        return items, rows
    match_of = np.concatenate([items.match, empty])
    order = np.argsort(match_of, kind="stable")
    place = np.concatenate([items.place, np.full(len(empty), -1, np.int64)])
    row = np.concatenate([rows, matches.start[empty]])
    return Items(match_of[order], place[order]), row[order]
