"""What the aggregates of a GROUP BY keep and read: columns, parts, readers.

A column is a word for each tuple, made from an expression. A part is what is kept of a column for
each group; aggregates of the same argument share parts. A reader writes an aggregate's words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa

from eventide.accumulators.buckets import bucket_keys
from eventide.errors import UnsupportedError
from eventide.kernels.compiled import Bools, Int64s
from eventide.kernels.groups import reading
from eventide.kernels.groups import sliding as parts
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.standing.words import (
    double_words,
    integer_words,
    text_words,
)
from eventide.plan.aggregates import LONGEST_WORD, MOST_AGGREGATES, MOST_LISTED
from eventide.plan.expressions import Aggregate, Expression, NamedAggregate
from eventide.plan.render import render
from eventide.schema import DataType

Form = Literal["any", "integer", "double", "text", "bucket"]


@dataclass(frozen=True, slots=True)
class WordColumn:
    """A word for each tuple: an expression, and how its value becomes a word."""

    expression: Expression
    form: Form

    def words(self, rows: pa.RecordBatch) -> tuple[Int64s, Bools, pa.Array]:
        """Return the words, whether there is a value, and the values."""
        values = evaluate(self.expression, rows)
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        match self.form:
            case "any":
                return np.zeros(len(values), np.int64), valid, values
            case "integer":
                return integer_words(values), valid, values
            case "double":
                return double_words(values), valid, values
            case "text":
                return text_words(values), valid, values
            case "bucket":
                return bucket_keys(values), valid, values


@dataclass(frozen=True, slots=True)
class Reader:
    """How an aggregate is read: the kind, its part, and the words it takes from `word` on."""

    aggregate: Aggregate
    kind: int
    part: int
    word: int
    width: int
    quantile: float = 0.5

    @property
    def argument(self) -> DataType:
        """The type of the argument; an integer for `COUNT(*)`."""
        argument = self.aggregate.argument
        return self.aggregate.type if argument is None else argument.type

    @property
    def scale(self) -> float:
        """The divisor of words of decimals."""
        return 10.0**self.argument.scale


@dataclass(slots=True)
class GroupPlan:
    """Columns, parts and readers of a list of aggregates."""

    knows_ends: bool = False
    """Whether each tuple knows when it comes when it will go."""
    columns: list[WordColumn] = field(default_factory=list)
    parts: list[tuple[int, int]] = field(default_factory=list)
    readers: list[Reader] = field(default_factory=list)
    width: int = 1

    @classmethod
    def of(cls, aggregates: tuple[NamedAggregate, ...], *, knows_ends: bool = False) -> GroupPlan:
        """Return the plan of these aggregates; an error if one cannot be maintained."""
        if len(aggregates) > MOST_AGGREGATES:
            message = f"a GROUP BY of a standing query has at most {MOST_AGGREGATES} aggregates"
            raise UnsupportedError(message, hint="ask two queries")
        plan = cls(knows_ends)
        for item in aggregates:
            plan._add(item.aggregate)
        return plan

    @property
    def kinds(self) -> Int64s:
        """The parts, as kernels take them."""
        return np.array(self.parts, np.int64).reshape(-1, 2)

    @property
    def keeps_values(self) -> bool:
        """Whether some part keeps values themselves."""
        sums = (parts.COUNTED, parts.INTEGERS, parts.DOUBLES, parts.SQUARES)
        return any(kind not in sums for kind, _ in self.parts)

    @property
    def lists(self) -> bool:
        """Whether the most frequent values are listed."""
        return any(
            reader.kind in (reading.FREQUENT, reading.FREQUENT_TEXT) for reader in self.readers
        )

    @property
    def texts(self) -> list[int]:
        """The columns whose texts are listed."""
        listed = {
            self.parts[reader.part][1]
            for reader in self.readers
            if reader.kind == reading.FREQUENT_TEXT
        }
        return sorted(listed)

    @property
    def text_parts(self) -> list[int]:
        """The parts with all texts of such a column, in order of their words."""
        return [
            place
            for place, (kind, column) in enumerate(self.parts)
            if kind == parts.SORTED and column in self.texts
        ]

    def _add(self, aggregate: Aggregate) -> None:
        kind, width, quantile = 0, 1, 0.5
        argument = aggregate.argument
        if aggregate.distinct and aggregate.function != "count":
            raise _not_kept(aggregate)
        match aggregate.function:
            case "count" if argument is None:
                kind, part = reading.ROWS, 0
            case "count" if aggregate.distinct:
                kind = reading.DISTINCT
                part = self._part(parts.SORTED, aggregate, self._any_form(aggregate))
            case "count":
                kind, part = reading.COUNT, self._part(parts.COUNTED, aggregate, "any")
            case "sum" if self._word_form(aggregate) == "integer":
                part = self._part(parts.INTEGERS, aggregate, "integer")
                kind, width = reading.INTEGER_SUM, 2
            case "sum":
                kind, part = reading.DOUBLE_SUM, self._part(parts.DOUBLES, aggregate, "double")
            case "avg" if self._word_form(aggregate) == "integer":
                kind, part = reading.INTEGER_MEAN, self._part(parts.INTEGERS, aggregate, "integer")
            case "avg":
                kind, part = reading.DOUBLE_MEAN, self._part(parts.DOUBLES, aggregate, "double")
            case "stddev" | "stddev_pop" | "variance" | "var_pop":
                # The sum of squares is expected behind the sum.
                part = self._pair(parts.DOUBLES, parts.SQUARES, aggregate, "double")
                kind, width = reading.DEVIATION, 5
            case "min" | "max":
                kind, part = self._extreme(aggregate)
            case "median" | "quantile_cont":
                form = self._word_form(aggregate)
                part = self._part(parts.SORTED, aggregate, form)
                whole = form == "integer"
                kind = reading.INTEGER_QUANTILE if whole else reading.DOUBLE_QUANTILE
                quantile = _fraction(aggregate)
            case "top_k" if argument is None or argument.type.kind != "binary":
                form = self._any_form(aggregate)
                kind = reading.FREQUENT_TEXT if form == "text" else reading.FREQUENT
                # The list of the most frequent values is expected behind the values.
                listed = parts.LISTED_TEXTS if form == "text" else parts.LISTED
                part = self._pair(parts.SORTED, listed, aggregate, form)
                width = 2 * _count(aggregate) + 1
            case "approx_quantile":
                kind, part = reading.BUCKET_QUANTILE, self._part(parts.BUCKETS, aggregate, "bucket")
                quantile = _fraction(aggregate)
            case _:
                raise _not_kept(aggregate)
        self.readers.append(Reader(aggregate, kind, part, self.width, width, quantile))
        self.width += width

    def _extreme(self, aggregate: Aggregate) -> tuple[int, int]:
        """Return how MIN or MAX is read, and its part: with known ends few values are kept."""
        form, least = self._word_form(aggregate), aggregate.function == "min"
        if self.knows_ends:
            kind = parts.LEAST if least else parts.GREATEST
            read = reading.LEAST_LIVING if least else reading.GREATEST_LIVING
            return read, self._part(kind, aggregate, form)
        read = reading.SMALLEST if least else reading.LARGEST
        return read, self._part(parts.SORTED, aggregate, form)

    def _word_form(self, aggregate: Aggregate) -> Form:
        """Return the form in which values are in order and can be added."""
        form = self._any_form(aggregate)
        if form == "text":
            raise _not_kept(aggregate)
        return form

    def _any_form(self, aggregate: Aggregate) -> Form:
        assert aggregate.argument is not None
        kind = aggregate.argument.type
        if kind.kind == "float64":
            return "double"
        if kind.kind in ("string", "binary"):
            return "text"
        if kind.kind == "decimal" and kind.precision > LONGEST_WORD:
            message = f"{render(aggregate)} of {kind} in a standing query"
            hint = f"cast the argument to decimal({LONGEST_WORD},{min(kind.scale, 9)}) or to double"
            raise UnsupportedError(message, span=aggregate.span, hint=hint)
        return "integer"

    def _column(self, aggregate: Aggregate, form: Form) -> int:
        assert aggregate.argument is not None
        column = WordColumn(aggregate.argument, form)
        if column not in self.columns:
            self.columns.append(column)
        return self.columns.index(column)

    def _part(self, kind: int, aggregate: Aggregate, form: Form) -> int:
        part = (kind, self._column(aggregate, form))
        if part not in self.parts:
            self.parts.append(part)
        return self.parts.index(part)

    def _pair(self, kind: int, behind: int, aggregate: Aggregate, form: Form) -> int:
        column = self._column(aggregate, form)
        pair = [(kind, column), (behind, column)]
        for place in range(len(self.parts) - 1):
            if self.parts[place : place + 2] == pair:
                return place
        self.parts += pair[1:] if self.parts[-1:] == pair[:1] else pair
        return len(self.parts) - 2


def _fraction(aggregate: Aggregate) -> float:
    share = 0.5 if aggregate.parameter is None else float(aggregate.parameter)
    if not 0.0 <= share <= 1.0:
        message = f"{render(aggregate)}: a quantile is between 0 and 1, got {share}"
        raise UnsupportedError(message, span=aggregate.span, hint="the median is 0.5")
    return share


def _count(aggregate: Aggregate) -> int:
    count = int(aggregate.parameter or 0)
    if not 1 <= count <= MOST_LISTED:
        message = f"{render(aggregate)}: lists of 1 to {MOST_LISTED} values are kept, got {count}"
        raise UnsupportedError(message, span=aggregate.span, hint="ask for fewer values")
    return count


def _not_kept(aggregate: Aggregate) -> UnsupportedError:
    message = f"{render(aggregate)} is not kept up by standing queries"
    kind = "" if aggregate.argument is None else aggregate.argument.type.kind
    if aggregate.function in ("approx_count_distinct", "approx_top_k"):
        exact = aggregate.function.removeprefix("approx_")
        message = f"{render(aggregate)} is kept for whole panes: what is in a sketch stays there"
        hint = f"add SLIDE to the window, which says how long panes are, or use {exact}"
        return UnsupportedError(message, span=aggregate.span, hint=hint)
    hints = {
        "first": "a window of the latest rows, LATEST BY the key, has the last of each",
        "last": "a window of the latest rows, LATEST BY the key, has the last of each",
        "min": f"of {kind} values COUNT, COUNT(DISTINCT …) and TOP_K are kept up",
        "max": f"of {kind} values COUNT, COUNT(DISTINCT …) and TOP_K are kept up",
    }
    hint = hints.get(aggregate.function, "COUNT, SUM, AVG, STDDEV, MIN, MAX and MEDIAN are")
    return UnsupportedError(message, span=aggregate.span, hint=hint)
