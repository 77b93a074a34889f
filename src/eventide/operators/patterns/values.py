"""The values that conditions read, as arrays: numbers, ranks of text, codes of distinct values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.accumulators.columns import decimal_halves, floats, int64s, one_spelling
from eventide.errors import EvaluationError
from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.patterns.code import Tables
from eventide.operators.expressions.evaluate import evaluate
from eventide.plan.expressions import Expression, Literal
from eventide.plan.render import render
from eventide.schema import FLOAT64, INT64, DataType

TEXT = ("string", "binary")
WIDE = 18
"""Decimals of more digits do not always fit into 64 bits."""


@dataclass(frozen=True, slots=True)
class ConditionValues:
    """Collects what conditions read: expressions over one row, and constants.

    `distinct` are the groups of expressions whose distinct values are counted. Long decimals are
    represented by rank, as text is, unless something is `calculated` with them.
    """

    floats: list[Expression] = field(default_factory=list)
    ints: list[Expression] = field(default_factory=list)
    constants: list[Literal] = field(default_factory=list)
    distinct: list[list[Expression]] = field(default_factory=list)
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
        codes, distinct = _distinct_codes(self.distinct, rows)
        return Tables(
            frozen(numbers),
            frozen(wholes),
            frozen(valid),
            frozen(codes),
            frozen(distinct),
            _constants_table(ranks.constants, self.constants),
            frozen(np.array([_as_float(each) for each in self.constants], np.float64)),
        )


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


def _distinct_codes(
    groups: Sequence[Sequence[Expression]], rows: pa.RecordBatch
) -> tuple[Int64s, Int64s]:
    """Number the distinct values of each group of expressions; return also where numbers start."""
    codes: list[Int64s] = []
    starts = [0]
    for group in groups:
        columns = [one_spelling(evaluate(each, rows)) for each in group]
        encoded = pa.concat_arrays(columns).dictionary_encode(null_encoding="encode")
        numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        codes += list(numbers.reshape(len(group), rows.num_rows))
        starts.append(starts[-1] + len(encoded.dictionary))
    found = np.array(codes, np.int64).reshape(len(codes), rows.num_rows)
    return found, np.array(starts, np.int64)
