"""Columns of words that conditions are tested on: each expression is computed once a batch."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import validity
from eventide.kernels.compiled import Int32s, Int64s, frozen
from eventide.kernels.growing import longer
from eventide.kernels.sharing.conditions.programs import EventWords
from eventide.kernels.sharing.conditions.words import fill_column
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.fingerprints import fingerprints
from eventide.operators.sharing.conditions.texts import TextTests
from eventide.operators.sharing.conditions.words import Coder, has_order, words_in_order
from eventide.plan.expressions import Expression
from eventide.plan.failing import can_fail

Numbers = Int32s | Int64s


@dataclass(slots=True)
class ComputedColumn:
    """An expression over events. `text_place` is where its text tests are, -1 without any."""

    expression: Expression
    can_fail: bool
    text_place: int = -1


@dataclass
class Columns:
    """All columns that conditions use, by their numbers."""

    coder: Coder
    texts: TextTests
    columns: list[ComputedColumn] = field(default_factory=list)
    numbers: dict[Expression, int] = field(default_factory=dict)
    free: list[int] = field(default_factory=list)
    fallible: set[int] = field(default_factory=set)
    """The columns that can fail of the condition at hand, also if their values do not count."""

    def __post_init__(self) -> None:
        self.uses = np.zeros(16, np.int64)
        self.coded = np.zeros(16, np.bool_)

    def number_of(self, expression: Expression) -> int:
        """Return the number of the column with the values of an expression."""
        number = self.numbers.get(expression)
        if number is None:
            column = ComputedColumn(expression, can_fail(expression))
            if self.free:
                number = self.free.pop()
                self.columns[number] = column
            else:
                number = len(self.columns)
                self.columns.append(column)
                self.uses = longer(self.uses, number + 1)
                self.coded = longer(self.coded, number + 1)
            self.coded[number] = not has_order(expression.type)
            self.numbers[expression] = number
        if self.columns[number].can_fail:
            self.fallible.add(number)
        return number

    def text_number_of(self, expression: Expression) -> int:
        """Return the number of a column of texts that are tested."""
        number = self.number_of(expression)
        column = self.columns[number]
        if column.text_place < 0:
            column.text_place = self.texts.new_place()
        return number

    def use(self, numbers: Numbers, times: int) -> None:
        """Count uses of columns."""
        self.uses += times * np.bincount(numbers, minlength=len(self.uses))

    def sweep(self) -> None:
        """Let the numbers of columns that are not used any more stand for others."""
        if len(self.numbers) == np.count_nonzero(self.uses):
            return
        for expression, number in list(self.numbers.items()):
            column = self.columns[number]
            if not self.uses[number]:
                del self.numbers[expression]
                self.free.append(number)
                if column.text_place >= 0:
                    self.texts.free_places.append(column.text_place)
                    column.text_place = -1

    def computed(self, rows: pa.RecordBatch) -> tuple[EventWords, dict[int, Exception]]:
        """Return the words of events, and the columns that failed; those are null."""
        count = rows.num_rows
        words = np.zeros((count, max(1, len(self.columns))), np.int64)
        valid = np.zeros(words.shape, np.uint8)
        verdicts = np.full((count, self.texts.width), -1, np.int32)
        failed: dict[int, Exception] = {}
        for number, column in enumerate(self.columns):
            if not self.uses[number]:
                continue
            try:
                values = evaluate(column.expression, rows)
            except Exception as error:
                if not column.can_fail:
                    raise
                failed[number] = error
                continue
            kind = column.expression.type
            if has_order(kind):
                found, present = words_in_order(values, kind), validity(values)
            else:
                prints = fingerprints([values], count)
                found = self.coder.look_up(prints)
                present = frozen(~prints.null)
                if column.text_place >= 0:
                    self.texts.judge(column.text_place, values, prints, verdicts)
            fill_column(frozen(found), present, words, valid, number)
        return EventWords(words, valid, verdicts), failed
