"""Aggregates that users define, and how a stream names them.

An aggregate has three functions. `init` turns the values of each run of rows into partial
columns, `merge` turns the partials of each run of entries into those of the run, and `eval`
turns partials into answers. Run r is [bounds[r], bounds[r + 1]); an empty run must give a partial
that changes nothing when it is merged (null, usually). All three work on whole columns;
`UserAggregate.from_functions` takes functions of single values instead.

`merge` must be associative, because trees divide runs anywhere, and commutative, because late
events are merged later. A rough estimate does neither: it is exact for the rows of one leaf, and
above that it is computed from all the children of a node, with an error that is not bounded.

A stream stores only names, never code: a `BoundAggregate` is a name and an attribute, and the
process that opens the stream must have registered an aggregate of that name. Looking up an unknown
name raises a StoreError; the caller decides whether to go on without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.accumulators.columns import floats, int64s, one_spelling, sort_keys, validity
from eventide.accumulators.picks import take_rows
from eventide.errors import StoreError, listed
from eventide.kernels.aggregates.summaries import second_by_run
from eventide.kernels.compiled import Floats, Int64s, frozen
from eventide.schema import DataType

Columns = Sequence[pa.Array]
Dependencies = Mapping[str, pa.Array]
"""The answers of the aggregates that another one needs: one value for each row of partials."""
Kind = Literal["plain", "virtual", "dependent", "rough"]

BUILT_IN = ("count", "sum", "avg", "min", "max", "stddev", "var_samp", "var_pop")
"""The functions that a summary answers by itself, for attributes whose type has them."""
RESERVED = (*BUILT_IN, "first", "last")


@dataclass(frozen=True, eq=False)
class UserAggregate:
    """An aggregate by its functions over columns; see the module.

    `state` returns the names and types of the partial columns for an argument's type, or None
    if the aggregate does not take such arguments. `needs` are the aggregates of the same
    attribute whose answers `merge` and `eval` read: built-in ones, or registered ones.
    """

    name: str
    kind: Kind
    state: Callable[[DataType], Mapping[str, pa.DataType] | None]
    init: Callable[[pa.Array, Int64s], Columns]
    merge: Callable[[Columns, Int64s, Dependencies], Columns]
    eval: Callable[[Columns, Dependencies], pa.Array]
    needs: tuple[str, ...] = ()

    @classmethod
    def virtual(
        cls,
        name: str,
        needs: Sequence[str],
        eval: Callable[[Dependencies], pa.Array],
        takes: Callable[[DataType], bool],
    ) -> UserAggregate:
        """Return an aggregate that stores nothing: a function of the answers of others."""
        return cls(
            name,
            "virtual",
            lambda argument: {} if takes(argument) else None,
            lambda _values, _bounds: [],
            lambda _partials, _bounds, _dependencies: [],
            lambda _partials, dependencies: eval(dependencies),
            tuple(needs),
        )

    @classmethod
    def from_functions(
        cls,
        name: str,
        init: Callable[[Any], tuple[Any, ...]],
        merge: Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[Any, ...]],
        eval: Callable[[tuple[Any, ...]], Any],
        state: Mapping[str, pa.DataType],
        result: pa.DataType,
    ) -> UserAggregate:
        """Return an aggregate of plain Python functions. Slow: about a microsecond a value.

        `init` makes a tuple from a value that is not null, `merge` one from two, `eval` an
        answer; `state` names and types the places of the tuple. Where there is no value there
        is no tuple, and the answer is null: a tuple of nothing but None means the same.

        >>> product = UserAggregate.from_functions(
        ...     "product", lambda value: (value,), lambda a, b: (a[0] * b[0],), lambda a: a[0],
        ...     {"value": pa.float64()}, pa.float64())
        >>> product.init(pa.array([2.0, None, 4.0, 5.0]), frozen(np.array([0, 3, 4])))[0].tolist()
        [8.0, 5.0]
        """

        def fold(tuples: list[tuple[Any, ...]], bounds: Int64s) -> list[pa.Array]:
            runs = [
                folded(tuples[start:end], merge, len(state))
                for start, end in pairwise(bounds.tolist())
            ]
            places = zip(*runs, strict=True) if runs else [()] * len(state)
            return [
                pa.array(list(place), kind)
                for place, kind in zip(places, state.values(), strict=True)
            ]

        def begin(values: pa.Array, bounds: Int64s) -> list[pa.Array]:
            nothing = (None,) * len(state)
            found = values.to_pylist()
            return fold([nothing if value is None else init(value) for value in found], bounds)

        def combine(partials: Columns, bounds: Int64s, _dependencies: Dependencies) -> Columns:
            return fold(tuples_of(partials), bounds)

        def answer(partials: Columns, _dependencies: Dependencies) -> pa.Array:
            return pa.array([eval(t) if exists(t) else None for t in tuples_of(partials)], result)

        return cls(name, "plain", lambda _argument: state, begin, combine, answer)


def folded(
    tuples: Sequence[tuple[Any, ...]],
    merge: Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[Any, ...]],
    places: int,
) -> tuple[Any, ...]:
    """Merge tuples from left to right, leaving out empty ones."""
    total: tuple[Any, ...] = (None,) * places
    for each in tuples:
        if exists(each):
            total = merge(total, each) if exists(total) else each
    return total


def tuples_of(partials: Columns) -> list[tuple[Any, ...]]:
    """Return columns as one tuple a row."""
    return list(zip(*(column.to_pylist() for column in partials), strict=True))


def exists(state: tuple[Any, ...]) -> bool:
    """Whether a tuple stands for any value at all."""
    return any(place is not None for place in state)


@dataclass(frozen=True, slots=True)
class BoundAggregate:
    """A registered aggregate of an attribute: what a stream's manifest says of it.

    >>> BoundAggregate("max2", "speed").to_json()
    ['max2', 'speed']
    """

    name: str
    attribute: str

    @property
    def aggregate(self) -> UserAggregate:
        """The aggregate that this process has registered under the name."""
        return registered(self.name)

    def to_json(self) -> list[str]:
        """Return what `from_json` reads back."""
        return [self.name, self.attribute]

    @classmethod
    def from_json(cls, stored: Sequence[str]) -> BoundAggregate:
        """Read what `to_json` returned; the name is looked up when it is used."""
        name, attribute = stored
        return cls(name, attribute)


_registry: dict[str, UserAggregate] = {}
_registering = Lock()


def register_aggregate(aggregate: UserAggregate) -> UserAggregate:
    """Make an aggregate known to this process under its name, for good.

    What it needs must be registered before it, so that no two can need each other.
    """
    if not aggregate.name.isidentifier() or aggregate.name in RESERVED:
        message = f"an aggregate cannot be called {aggregate.name!r}"
        hint = f"use letters, digits and underscores, and none of {listed(RESERVED)}"
        raise StoreError(message, hint=hint)
    with _registering:
        for need in aggregate.needs:
            if need not in BUILT_IN and need not in _registry:
                raise not_registered(need)
        held = _registry.setdefault(aggregate.name, aggregate)
        if held.kind == aggregate.kind == "virtual" and held.needs == aggregate.needs:
            # Nothing of it is stored, so a cell of a notebook can be run again.
            _registry[aggregate.name] = aggregate
        elif held is not aggregate:
            message = f"another aggregate is registered as {aggregate.name!r}"
            raise StoreError(message, hint="stored partials would be merged by the wrong code")
    return aggregate


def registered(name: str) -> UserAggregate:
    """Return the aggregate of a name; a StoreError if this process has not registered it."""
    found = find_registered(name)
    if found is None:
        raise not_registered(name)
    return found


def registered_names() -> tuple[str, ...]:
    """Return the names of all aggregates that this process has registered."""
    return tuple(sorted(_registry))


def find_registered(name: str) -> UserAggregate | None:
    """Return the aggregate of a name, or None."""
    return _registry.get(name)


def not_registered(name: str) -> StoreError:
    """Return the error for a name that is not registered in this process."""
    message = f"no aggregate {name!r} is registered in this process"
    known = listed(registered_names())
    hint = f"call register_aggregate before the stream is opened; there are {known}"
    return StoreError(message, hint=hint)


def second_best(name: str, first: str, sign: int) -> UserAggregate:
    """Return the aggregate of the value next to the smallest (sign 1) or largest (-1).

    Equal values count separately, and there have to be two that are not null. The best value itself
    is not stored again: it is read from the aggregate `first`.
    """

    def init(values: pa.Array, bounds: Int64s) -> list[pa.Array]:
        return [second(one_spelling(values), bounds)]

    def merge(partials: Columns, bounds: Int64s, dependencies: Dependencies) -> list[pa.Array]:
        # The best and the second of every entry, side by side.
        count = len(partials[0])
        side_by_side = np.arange(2 * count).reshape(2, count).T.ravel()
        both = pa.concat_arrays([dependencies[first], partials[0]]).take(pa.array(side_by_side))
        return [second(both, frozen(2 * bounds))]

    def second(values: pa.Array, bounds: Int64s) -> pa.Array:
        rows = np.empty(len(bounds) - 1, np.int64)
        second_by_run(sort_keys(values), validity(values), bounds, sign, rows)
        return take_rows(values, rows)

    def answer(partials: Columns, _dependencies: Dependencies) -> pa.Array:
        return partials[0]

    return UserAggregate(
        name,
        "dependent",
        lambda argument: {"second": argument.arrow},
        init,
        merge,
        answer,
        (first,),
    )


def numeric(argument: DataType) -> bool:
    """Whether values can be added."""
    return argument.is_numeric


def mean_of_outputs(dependencies: Dependencies) -> pa.Array:
    """Return sum / count; the sum is null where the count is zero."""
    total = dependencies["sum"].cast(pa.float64(), safe=False)
    return pc.divide(total, dependencies["count"].cast(pa.float64()))


def median_by_run(values: pa.Array, bounds: Int64s) -> list[pa.Array]:
    """Return the exact median of each run: the middle value, or half-way between two."""
    numbers, valid = floats(values), validity(values)
    medians: list[float | None] = []
    for start, end in pairwise(bounds.tolist()):
        run = numbers[start:end] if len(valid) == 0 else numbers[start:end][valid[start:end]]
        medians.append(weighted_median(run, np.ones(len(run), np.int64)))
    return [pa.array(medians, pa.float64())]


def merge_medians(partials: Columns, bounds: Int64s, dependencies: Dependencies) -> list[pa.Array]:
    """Return the median of the entries' medians, each counted as often as it has values."""
    medians, counts = floats(partials[0]), int64s(dependencies["count"])
    merged = [
        weighted_median(medians[start:end], counts[start:end])
        for start, end in pairwise(bounds.tolist())
    ]
    return [pa.array(merged, pa.float64())]


def weighted_median(values: Floats, weights: Int64s) -> float | None:
    """Return the value in the middle when each is repeated as its weight says."""
    order = np.argsort(values, kind="stable")  # a NaN comes last: it is the largest
    running = np.cumsum(weights[order])
    if len(running) == 0 or running[-1] == 0:
        return None
    total = int(running[-1])
    low, high = (
        values[order[np.searchsorted(running, place, side="right")]]
        for place in ((total - 1) // 2, total // 2)
    )
    # Halved first: the sum of two large values need not be finite.
    return float(low) if low == high else float(low / 2 + high / 2)


MAX2 = register_aggregate(second_best("max2", "max", -1))
MIN2 = register_aggregate(second_best("min2", "min", 1))
AVERAGE = register_aggregate(
    UserAggregate.virtual("average", ("sum", "count"), mean_of_outputs, numeric)
)
# √((q − s²/n)/n); the difference loses nothing, for both sums are pairs.
STDDEV_POP = register_aggregate(
    UserAggregate.virtual(
        "stddev_pop", ("var_pop",), lambda answers: pc.sqrt(answers["var_pop"]), numeric
    )
)


def rough_median(name: str) -> UserAggregate:
    """Return the aggregate of the median of medians: exact in a leaf, an estimate above."""
    return UserAggregate(
        name,
        "rough",
        lambda argument: {"value": pa.float64()} if argument.is_numeric else None,
        median_by_run,
        merge_medians,
        lambda partials, _dependencies: partials[0],
        ("count",),
    )


APPROX_MEDIAN = register_aggregate(rough_median("approx_median"))
# The name under which streams have stored it before; queries mean the exact one by it.
MEDIAN = register_aggregate(rough_median("median"))
