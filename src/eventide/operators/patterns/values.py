"""The values that conditions read, as arrays: numbers, ranks of text, codes of distinct values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from typing import Literal as OneOf

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventide.accumulators.buckets import bucket_keys, bucket_values
from eventide.accumulators.columns import decimal_halves, floats, int64s, one_spelling
from eventide.arrays import to_arrow
from eventide.errors import EvaluationError
from eventide.kernels.compiled import Floats, Int64s, Numbers, frozen
from eventide.kernels.patterns.code import Tables
from eventide.operators.expressions.evaluate import evaluate
from eventide.plan.expressions import Expression, Literal
from eventide.plan.render import render
from eventide.schema import FLOAT64, INT64, DataType

TEXT = ("string", "binary")
WIDE = 18
"""Decimals of more digits do not always fit into 64 bits."""


Form = OneOf["distinct", "value", "number", "bucket"]
"""The counts of different values, or trees by rank: of values, of numbers as floats, of buckets."""


@dataclass(frozen=True, slots=True)
class CountedValues:
    """Values that a search counts while rows are taken and given back, by expression.

    There will be `room` of them; the first has the codes number `first`.
    """

    form: Form
    first: int
    room: int
    expressions: list[Expression] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ConditionValues:
    """Collects what conditions read: expressions over one row, and constants.

    `counted` are values that are counted. Long decimals are represented by rank, as text is, unless
    something is `calculated` with them.
    """

    floats: list[Expression] = field(default_factory=list)
    ints: list[Expression] = field(default_factory=list)
    constants: list[Literal] = field(default_factory=list)
    counted: list[CountedValues] = field(default_factory=list)
    calculated: list[Expression] = field(default_factory=list)

    def place(self, *expressions: Expression) -> int:
        """Return the first of consecutive columns of values."""
        columns = self.floats if expressions[0].type == FLOAT64 else self.ints
        if len(expressions) == 1 and expressions[0] in columns:
            return columns.index(expressions[0])
        columns += expressions
        return len(columns) - len(expressions)

    def constant(self, *literals: Literal) -> int:
        """Return the first of consecutive constants."""
        self.constants.extend(literals)
        return len(self.constants) - len(literals)

    def integer(self, value: int) -> int:
        """Return the constant of a whole number."""
        return self.constant(Literal(value, INT64))

    def count(self, form: Form, room: int) -> int:
        """Return the number of a new table of counts, for the values of so many expressions."""
        first = sum(each.room for each in self.counted)
        self.counted.append(CountedValues(form, first, room))
        return len(self.counted) - 1

    def tables(self, rows: pa.RecordBatch) -> Tables:
        """Return the values of the rows, and those for a row that does not exist."""
        count = rows.num_rows + 1
        columns = [_with_absent(each, rows) for each in self.floats + self.ints]
        numbers = np.zeros((len(self.floats), count), np.float64)
        wholes = np.zeros((len(self.ints), count), np.int64)
        valid = np.zeros((len(columns), count), np.bool_)
        try:
            ranks = _ranked(columns, self.constants, wide=not self.calculated)
            integers = {
                place: _integers(column)
                for place, column in enumerate(columns)
                if place >= len(numbers) and place not in ranks.columns
            }
        except OverflowError:
            raise _too_long(self.calculated[0]) from None
        for place, column in enumerate(columns):
            valid[place] = column.is_valid().to_numpy(zero_copy_only=False)
            if place < len(numbers):
                numbers[place] = floats(column)
            elif place in ranks.columns:
                wholes[place - len(numbers)] = ranks.columns[place]
            else:
                wholes[place - len(numbers)] = integers[place]
        codes, sizes, ranked = [], [0], []
        for each in self.counted:
            if each.form == "distinct":
                of_table, size = _distinct_codes(each.expressions, rows)
                values = np.zeros(size, np.int64)
            else:
                known = [self._known(one, numbers, wholes) for one in each.expressions]
                of_table, values = _ranks(each, known)
            codes.append(of_table)
            sizes.append(len(values))
            ranked.append(values)
        return Tables(
            frozen(numbers),
            frozen(wholes),
            frozen(valid),
            frozen(np.concatenate([np.empty((0, rows.num_rows), np.int64), *codes])),
            frozen(np.cumsum(sizes)),
            frozen(np.concatenate([np.empty(0, np.int64), *ranked])),
            _constants_table(ranks.constants, self.constants),
            frozen(np.array([_as_float(each) for each in self.constants], np.float64)),
        )

    def _known(self, value: Expression, numbers: Floats, wholes: Int64s) -> Numbers:
        """Return the values of an expression at rows that exist, as they are compared."""
        if value.type == FLOAT64:
            return numbers[self.floats.index(value), :-1]
        return wholes[self.ints.index(value), :-1]


def _with_absent(expression: Expression, rows: pa.RecordBatch) -> pa.Array:
    """Return an expression's values, and its value if there is no row."""
    nothing = pa.RecordBatch.from_arrays(
        [pa.nulls(1, kind) for kind in rows.schema.types], names=rows.schema.names
    )
    return pa.concat_arrays([evaluate(expression, rows), evaluate(expression, nothing)])


def _integers(column: pa.Array) -> Int64s:
    """Return whole numbers, times, truth values, or decimals without their point."""
    if not pa.types.is_decimal(column.type):
        return int64s(column)
    high, low = decimal_halves(column)
    if np.any(high != low >> 63):
        raise OverflowError
    return low


def _too_long(expression: Expression) -> EvaluationError:
    shown = render(expression)
    message = f"{shown} takes values with more digits than can be calculated with across rows"
    hint = "cast what it takes to double, as in CAST(x AS double)"
    return EvaluationError(message, span=expression.span, hint=hint)


@dataclass(frozen=True, slots=True)
class _Ranks:
    """Text as places in one sorted dictionary, by value column; and all constants."""

    columns: dict[int, Int64s]
    constants: Int64s


def is_wide(kind: DataType) -> bool:
    """Whether some values of a type have too many digits for 64 bits."""
    return kind.kind == "decimal" and kind.precision > WIDE


def _ranked(columns: Sequence[pa.Array], constants: Sequence[Literal], *, wide: bool) -> _Ranks:
    by_rank = [pa.string(), pa.binary()]
    if wide:
        kinds = [*(each.type for each in columns), *(each.type.arrow for each in constants)]
        decimals = dict.fromkeys(each for each in kinds if pa.types.is_decimal(each))
        by_rank += [each for each in decimals if each.precision > WIDE]
    numbers = np.array(
        [0 if each.type.arrow in by_rank else _constant_as_int(each) for each in constants],
        np.int64,
    )
    ranks: dict[int, Int64s] = {}
    for arrow in by_rank:
        places = [place for place, column in enumerate(columns) if column.type == arrow]
        written = [place for place, each in enumerate(constants) if each.type.arrow == arrow]
        if not places and not written:
            continue
        encoded = [columns[place].dictionary_encode() for place in places]
        literals = pa.array([constants[place].value for place in written], arrow)
        every = pa.concat_arrays([*(each.dictionary for each in encoded), literals])
        every = every.unique().drop_null()
        every = every.take(pc.sort_indices(every))
        for place, each in zip(places, encoded, strict=True):
            rank = pc.index_in(each.dictionary, value_set=every).cast(pa.int64())
            ranks[place] = int64s(rank.take(each.indices))
        if written:
            numbers[written] = int64s(pc.index_in(literals, value_set=every).cast(pa.int64()))
    return _Ranks(ranks, numbers)


def _constants_table(numbers: Int64s, constants: Sequence[Literal]) -> Int64s:
    known = np.array([each.value is not None for each in constants], np.int64)
    return frozen(np.column_stack([numbers, known]))


def _as_float(literal: Literal) -> float:
    return float(literal.value) if isinstance(literal.value, int | float) else 0.0


def _constant_as_int(literal: Literal) -> int:
    value = literal.value
    if isinstance(value, Decimal):
        scaled = int(value.scaleb(literal.type.scale))
        if not -(2**63) <= scaled < 2**63:
            raise OverflowError
        return scaled
    return int(value) if isinstance(value, int) else 0


def _distinct_codes(values: Sequence[Expression], rows: pa.RecordBatch) -> tuple[Int64s, int]:
    """Number the different values of expressions; return also how many there are."""
    columns = [one_spelling(evaluate(each, rows)) for each in values]
    encoded = pa.concat_arrays(columns).dictionary_encode(null_encoding="encode")
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes.reshape(len(values), rows.num_rows), len(encoded.dictionary)


def _ranks(counted: CountedValues, columns: Sequence[Numbers]) -> tuple[Int64s, Int64s]:
    """Number values in their order; return also the values of a tree, by number.

    Floats are written as the integers of the same bits. A tree of 2^n values has as many nodes
    above them.
    """
    every: npt.NDArray[Any] = np.concatenate(columns)
    if every.dtype == np.float64:
        # There is one zero.
        every = every + 0.0
    if counted.form == "bucket":
        every = bucket_values(bucket_keys(to_arrow(every)))
    values: npt.NDArray[Any]
    values, codes = np.unique(every, return_inverse=True)
    if counted.form == "number":
        values = values / 10.0 ** counted.expressions[0].type.scale
    size = 1
    while size < len(values):
        size *= 2
    found = np.zeros(2 * size, np.int64)
    found[: len(values)] = values.view(np.int64)
    return codes.astype(np.int64).reshape(len(columns), len(columns[0])), found
