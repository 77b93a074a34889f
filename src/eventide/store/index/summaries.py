"""The summary of each attribute in an entry of the time index: what it knows of the rows below.

    rows       a a a b b c c c c        bounds 0, 3, 5, 9
    summaries  [ 0 ] [1] [  2  ]        one row each: speed.count, speed.min, speed.max, …
    merged     [   0   ] [  1  ]        bounds 0, 2, 3 over the rows above

Summaries merge to those of more rows, and finish to what a query would compute from the rows: the
partial columns are those of the accumulators, so that the answers are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from eventide.accumulators import LONG_DECIMAL, accumulator_for
from eventide.arrays import no_rows
from eventide.errors import StoreError, listed
from eventide.kernels.compiled import Int64s, frozen
from eventide.schema import DataType, Schema
from eventide.store.index.aggregates import BoundAggregate, UserAggregate, find_registered
from eventide.store.index.attribute_summaries import AttributeSummary, FloatSummary, summary_of

PAIR = ("sum.high", "sum.low", "count")
DEVIATION = (*PAIR, "squares.high", "squares.low")
WHOLE = ("whole.high", "whole.low", "count")


@dataclass(frozen=True, slots=True)
class StoredAggregate:
    """A user's aggregate of an attribute, and the names of its partial columns."""

    attribute: str
    aggregate: UserAggregate
    columns: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class SummaryLayout:
    """The partial columns of some attributes, and of aggregates that users have defined.

    >>> import numpy as np
    >>> schema = Schema.of({"car": "string", "speed": "float64"})
    >>> layout = SummaryLayout.of(schema, ["speed"])
    >>> layout.arrow.names[:4]
    ['speed.count', 'speed.min', 'speed.max', 'speed.sum.high']
    >>> rows = pa.record_batch({"speed": pa.array([3.0, None, 5.0, 7.0])})
    >>> entries = layout.summarise(rows, np.array([0, 3, 4]))
    >>> layout.finish("avg", "speed", entries).to_pylist()
    [4.0, 7.0]
    >>> layout.finish("sum", "speed", layout.merge(entries, np.array([0, 2]))).to_pylist()
    [15.0]
    """

    attributes: tuple[str, ...]
    arrow: pa.Schema
    types: Mapping[str, DataType]
    summaries: tuple[tuple[AttributeSummary, tuple[str, ...]], ...]
    stored: tuple[StoredAggregate, ...]

    @classmethod
    def of(
        cls,
        schema: Schema,
        attributes: Sequence[str],
        aggregates: Sequence[BoundAggregate] = (),
        least: Sequence[str] = (),
    ) -> SummaryLayout:
        """Return the layout for some attributes of a schema, the same one for the same arguments.

        A layout of fewer attributes reads its columns from entries of more. The attributes `least`
        are floats whose least is wanted too, which entries do not have: see `of_stored`. A
        StoreError says that an aggregate is not registered in this process, or what it lacks.
        """
        return layout_of(schema, tuple(attributes), tuple(aggregates), tuple(least))

    def summarise(self, rows: pa.RecordBatch, bounds: Int64s) -> pa.RecordBatch:
        """Return the summary of each run [bounds[i], bounds[i + 1]) of rows."""
        bounds = frozen(bounds)
        arrays: list[pa.Array] = []
        for attribute, (summary, _) in zip(self.attributes, self.summaries, strict=True):
            arrays += summary.summarise(rows.column(attribute), bounds)
        for each in self.stored:
            arrays += checked(each, each.aggregate.init(rows.column(each.attribute), bounds))
        return pa.RecordBatch.from_arrays(arrays, schema=self.arrow)

    def of_stored(self, entries: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns of this layout from entries of the index."""
        arrays: list[pa.Array] = []
        for summary, columns in self.summaries:
            wanted = isinstance(summary, FloatSummary) and summary.least
            own = [entries.column(name) for name in (columns[:-1] if wanted else columns)]
            arrays += [*own, FloatSummary().least_of(own)] if wanted else own
        for each in self.stored:
            arrays += [entries.column(name) for name in each.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.arrow)

    def merge(self, entries: pa.RecordBatch, bounds: Int64s) -> pa.RecordBatch:
        """Return the summary of each run of entries, whose other columns are ignored.

        A rough estimate is exact only if a run is one entry.
        """
        bounds = frozen(bounds)
        arrays: list[pa.Array] = []
        for summary, columns in self.summaries:
            arrays += summary.merge([entries.column(name) for name in columns], bounds)
        for each in self.stored:
            partials = [entries.column(name) for name in each.columns]
            dependencies = self.answers(each.aggregate.needs, each.attribute, entries)
            arrays += checked(each, each.aggregate.merge(partials, bounds, dependencies))
        return pa.RecordBatch.from_arrays(arrays, schema=self.arrow)

    def empty(self) -> pa.RecordBatch:
        """Return no entries."""
        return no_rows(self.arrow)

    def has(self, function: str, attribute: str | None) -> bool:
        """Whether `finish` can answer a function of an attribute."""
        if attribute is None or attribute not in self.types:
            return False
        if attribute in self.attributes and partials_of(function, self.types[attribute]):
            return True
        found = self.find(function, attribute)
        return (
            found is not None
            and found.aggregate.state(self.types[attribute]) is not None
            and all(self.has(need, attribute) for need in found.aggregate.needs)
        )

    def is_rough(self, function: str, attribute: str) -> bool:
        """Whether the answer is an estimate, if entries were merged from others."""
        found = self.find(function, attribute)
        return found is not None and (
            found.aggregate.kind == "rough"
            or any(self.is_rough(need, attribute) for need in found.aggregate.needs)
        )

    def finish(self, function: str, attribute: str | None, entries: pa.RecordBatch) -> pa.Array:
        """Return a function of an attribute for each entry, as a query would compute it."""
        if attribute is None or not self.has(function, attribute):
            message = f"no summary answers {function}({attribute or '*'})"
            raise StoreError(message, hint=f"summarised are {listed(self.attributes) or 'none'}")
        found = self.find(function, attribute)
        if found is not None:
            partials = [entries.column(name) for name in found.columns]
            dependencies = self.answers(found.aggregate.needs, attribute, entries)
            return found.aggregate.eval(partials, dependencies)
        argument = self.types[attribute]
        names = partials_of(function, argument)
        partials = [entries.column(f"{attribute}.{name}") for name in names]
        if function == "var_samp":
            function = "variance"
        described = f"{function}({attribute})"
        return accumulator_for(function, argument, described).finish(partials)

    def answers(
        self, functions: Sequence[str], attribute: str, entries: pa.RecordBatch
    ) -> dict[str, pa.Array]:
        """Return several functions of an attribute for each entry."""
        return {each: self.finish(each, attribute, entries) for each in functions}

    def find(self, function: str, attribute: str) -> StoredAggregate | None:
        """Return the user's aggregate of a name: one of this layout, or any virtual one."""
        for each in self.stored:
            if (each.aggregate.name, each.attribute) == (function, attribute):
                return each
        found = find_registered(function)
        return StoredAggregate(attribute, found, ()) if found and found.kind == "virtual" else None


@lru_cache(maxsize=256)
def layout_of(
    schema: Schema,
    attributes: tuple[str, ...],
    aggregates: tuple[BoundAggregate, ...],
    least: tuple[str, ...] = (),
) -> SummaryLayout:
    """Build a layout."""
    used = dict.fromkeys([*attributes, *(each.attribute for each in aggregates)])
    types = {name: schema.type_of(name) for name in used}
    fields: list[tuple[str, pa.DataType]] = []
    summaries: list[tuple[AttributeSummary, tuple[str, ...]]] = []
    for name in attributes:
        summary = summary_of(types[name], least=name in least)
        columns = [(f"{name}.{part}", kind) for part, kind in summary.parts]
        summaries.append((summary, tuple(column for column, _ in columns)))
        fields += columns
    stored: list[StoredAggregate] = []
    for bound in aggregates:
        state = state_of(bound, types[bound.attribute])
        columns = [(f"{bound.attribute}.{bound.name}.{part}", kind) for part, kind in state.items()]
        names = tuple(column for column, _ in columns)
        stored.append(StoredAggregate(bound.attribute, bound.aggregate, names))
        fields += columns
    layout = SummaryLayout(attributes, pa.schema(fields), types, tuple(summaries), tuple(stored))
    check_layout(layout)
    return layout


def state_of(bound: BoundAggregate, argument: DataType) -> Mapping[str, pa.DataType]:
    """Return the partial columns of a user's aggregate."""
    state = bound.aggregate.state(argument)
    if state is None:
        message = f"aggregate {bound.name!r} does not take {bound.attribute}, which is {argument}"
        raise StoreError(message)
    return state


def check_layout(layout: SummaryLayout) -> None:
    """Refuse names that clash, and aggregates without what they need."""
    names = layout.arrow.names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        message = f"two columns of a summary would be called {twice!r}"
        raise StoreError(message, hint="name each attribute and each aggregate of it once")
    for each in layout.stored:
        for need in each.aggregate.needs:
            if not layout.has(need, each.attribute):
                name = each.aggregate.name
                message = f"aggregate {name!r} needs {need}({each.attribute})"
                raise StoreError(message, hint=f"summarise {each.attribute} and bind {need} too")


def partials_of(function: str, argument: DataType) -> tuple[str, ...]:
    """Return the parts of a summary that a function is finished from; none if there are none.

    The order is that of the accumulators' partials.
    """
    if function in ("count", "min", "max"):
        return (function,)
    if not argument.is_numeric:
        return ()
    is_long = argument.kind == "decimal" and argument.precision > LONG_DECIMAL
    match function:
        case "stddev" | "var_samp" | "var_pop":
            return DEVIATION
        case "sum" if is_long:
            return (*WHOLE, *PAIR)
        case "sum" | "avg":
            return PAIR if argument.kind == "float64" or is_long else WHOLE
    return ()


def checked(stored: StoredAggregate, partials: Sequence[pa.Array]) -> Sequence[pa.Array]:
    """Refuse the result of a user's function if it is not one column for each of its state."""
    if len(partials) != len(stored.columns):
        name, expected = stored.aggregate.name, len(stored.columns)
        message = f"aggregate {name!r} returned {len(partials)} columns instead of {expected}"
        raise StoreError(message)
    return partials
