"""Conditions on their way into the index: shapes, and constants as words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.arrays import to_arrow, to_numpy
from eventide.kernels.compiled import Bools, Int32s, Int64s
from eventide.kernels.ordering import ranges
from eventide.kernels.sharing.conditions.listing import sort_constants
from eventide.kernels.sharing.conditions.programs import COLUMN, COUNT, ONE_OF, OPERATION, TEXT
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.sharing.conditions.apart import (
    ApartConditions,
    ConditionOrigin,
    with_constants,
)
from eventide.operators.sharing.conditions.batches import Batch
from eventide.operators.sharing.conditions.columns import Columns
from eventide.operators.sharing.conditions.formulas import (
    NEVER,
    EmbeddedPlaceError,
    Formula,
    Formulas,
    Test,
)
from eventide.operators.sharing.conditions.optional import (
    AskedTest,
    asked_tests,
    distinct_rows,
    has_equality,
    is_ragged,
    membership,
    variants,
)
from eventide.operators.sharing.conditions.shapes import Shapes
from eventide.operators.sharing.conditions.texts import TextTest
from eventide.operators.sharing.conditions.words import has_order, words_in_order
from eventide.plan.expressions import (
    Column,
    Expression,
    Literal,
    columns_of,
    substituted,
    walk,
)


@dataclass
class Constants:
    """Words of constants as they are gathered; those of values are filled in at the end."""

    words: list[int] = field(default_factory=list)
    values: dict[int, tuple[list[object], list[int]]] = field(default_factory=dict)
    """Values of constants by column, and their places among the words."""

    def add(self, column: int, constant: Expression) -> None:
        """Add a value that a column is compared with."""
        assert isinstance(constant, Literal)
        values, places = self.values.setdefault(column, ([], []))
        values.append(constant.value)
        places.append(len(self.words))
        self.words.append(0)


class Registering:
    """Puts conditions into words, and counts what they use."""

    def __init__(self, columns: Columns, shapes: Shapes, apart: ApartConditions) -> None:
        self._columns = columns
        self._shapes = shapes
        self._apart = apart
        self._formulas = Formulas(columns)

    def conditions(self, numbers: Sequence[int], conditions: Sequence[Expression]) -> Batch:
        """Return conditions as the index has them, without those that are evaluated apart."""
        kept, shapes, bases = [], [], []
        constants = Constants()
        for number, condition in zip(numbers, conditions, strict=True):
            self._columns.fallible = set()
            try:
                formula = self._formulas.formula(condition)
                tests = list(_tests(formula))
                used = [self._text_test(test) for test in tests if test.operation == TEXT]
            except Exception:
                self._apart.always[number] = ConditionOrigin(condition)
                continue
            shape = self._shapes.number_of(formula)
            kept.append(number)
            shapes.append(shape)
            bases.append(len(constants.words))
            text_numbers = iter(used)
            for test in tests:
                if test.operation == TEXT:
                    constants.words.append(self._columns.texts.use(next(text_numbers)))
                    continue
                for constant in test.constants:
                    constants.add(test.column, constant)
            self._note_fallible([number], [ConditionOrigin(condition)])
        batch = Batch(
            np.array(kept, np.int64),
            np.array(shapes, np.int32),
            np.array(bases, np.int32),
            self._words(constants),
        )
        self._finish(batch)
        return batch

    def template(
        self, numbers: Int64s, shape: Expression, constants: pa.RecordBatch
    ) -> list[Batch]:
        """Return the conditions of a template; rows with nulls at the same places go together."""
        names = constants.schema.names
        places = {
            part.name: part
            for part in walk(shape)
            if isinstance(part, Column) and part.name in names
        }
        nulls = [to_numpy(pc.is_null(constants.column(name))) for name in places]
        batches = []
        if is_ragged(nulls):
            known = dict(zip(places, nulls, strict=True))
            whole = self._ragged(numbers, shape, constants, places, known)
            if whole is not None:
                return whole
        for which in _alike(nulls, len(numbers)):
            missing = [name for name, null in zip(places, nulls, strict=True) if null[which[0]]]
            meaning = {name: Literal(None, places[name].type) for name in missing}
            rows = constants if len(which) == len(numbers) else constants.take(to_arrow(which))
            batches += self._rows(numbers[which], substituted(shape, meaning), rows)
        return batches

    def _rows(self, numbers: Int64s, shape: Expression, constants: pa.RecordBatch) -> list[Batch]:
        """Return the conditions of a template none of whose constants is null."""
        formulas = Formulas(self._columns, frozenset(constants.schema.names))
        self._columns.fallible = set()
        try:
            formula = formulas.formula(shape)
            found = [
                [evaluate(each, constants) for each in test.constants] for test in _tests(formula)
            ]
            if any(column.null_count for columns in found for column in columns):
                raise EmbeddedPlaceError
            for test, columns in zip(_tests(formula), found, strict=True):
                if test.operation == TEXT:
                    for text_test in self._text_tests(test, columns)[0]:
                        self._columns.texts.check(text_test)
        except Exception:
            each_alone = [with_constants(shape, constants, row) for row in range(len(numbers))]
            return [self.conditions(numbers.tolist(), each_alone)]
        number = self._shapes.number_of(formula)
        slots = [
            words
            for test, columns in zip(_tests(formula), found, strict=True)
            for words in self._template_words(test, columns)
        ]
        width = len(slots)
        words = np.empty((len(numbers), width), np.int64)
        for slot, each in enumerate(slots):
            words[:, slot] = each
        batch = Batch(
            numbers.astype(np.int64),
            np.full(len(numbers), number, np.int32),
            (np.arange(len(numbers)) * width).astype(np.int32),
            words.ravel(),
        )
        if self._columns.fallible:
            origins = [ConditionOrigin(shape, constants, row) for row in range(len(numbers))]
            self._note_fallible(numbers.tolist(), origins)
        self._finish(batch)
        return [batch]

    def _ragged(
        self,
        numbers: Int64s,
        shape: Expression,
        constants: pa.RecordBatch,
        places: dict[str, Column],
        nulls: dict[str, Bools],
    ) -> list[Batch] | None:
        """Return the conditions of a template with many patterns of nulls, or None."""
        formulas = Formulas(self._columns, frozenset(places))
        self._columns.fallible = set()
        try:
            found = variants(shape, places, nulls, formulas.formula)
        except Exception:
            return None
        asked = asked_tests(found)
        if asked is None or self._columns.fallible:
            return None
        count = len(numbers)
        never = np.zeros(count, np.bool_)
        for rows, formula in found:
            never[rows] |= formula == NEVER
        if not (never | has_equality(asked, count)).all():
            return None
        return self._conjunctions(numbers, constants, asked, never)

    def _conjunctions(
        self, numbers: Int64s, constants: pa.RecordBatch, asked: list[AskedTest], never: Bools
    ) -> list[Batch] | None:
        """Return conditions each of which asks for several tests, but for those never true."""
        columns = []
        for test, rows in asked:
            chosen = _columns_of(test, constants).take(to_arrow(rows))
            found = [evaluate(each, chosen) for each in test.constants]
            if test.operation == TEXT or any(column.null_count for column in found):
                return None
            columns.append(found)
        kept = membership(asked, len(numbers))
        kept[never] = False
        code = np.array([each.code for each in asked], np.int32)
        first, which = distinct_rows(kept)
        empty = ~kept[first].any(axis=1)
        shapes = np.empty(len(first), np.int32)
        shapes[~empty] = self._shapes.add_conjunctions(kept[first[~empty]], code)
        shapes[empty] = self._shapes.number_of(NEVER)
        rows, tests = np.nonzero(kept)
        counts = code[tests, COUNT].astype(np.int64)
        starts = np.cumsum(counts) - counts
        words = np.empty(int(counts.sum()), np.int64)
        by_test = np.argsort(tests.astype(np.min_scalar_type(len(asked))), kind="stable")
        ends = np.cumsum(np.bincount(tests, minlength=len(asked))).tolist()
        begin = 0
        for (test, there), found, end in zip(asked, columns, ends, strict=True):
            at, begin = starts[by_test[begin:end]], end
            for slot, column in enumerate(found):
                values = column.filter(to_arrow(~never[there])) if never.any() else column
                words[at + slot] = self._value_words(test.column, values)
        bases = np.zeros(len(numbers), np.int64)
        bases[rows[::-1]] = starts[::-1]
        batch = Batch(numbers.astype(np.int64), shapes[which], bases.astype(np.int32), words)
        self._finish(batch)
        return [batch]

    def forget(self, numbers: Iterable[int]) -> None:
        """Count what conditions do not use any more that are evaluated alone, at times or ever."""
        for columns in self._apart.drop(numbers):
            if columns:
                self._columns.use(np.array(sorted(columns)), -1)

    def release(self, batch: Batch) -> None:
        """Count what conditions that left do not use any more."""
        tests, places = self._shapes.tests_of(batch)
        columns = tests[:, COLUMN]
        self._columns.use(columns, -1)
        texts = tests[:, OPERATION] == TEXT
        self._columns.texts.leave(batch.constants[places[texts]].tolist())
        coded = self._columns.coded[columns] & ~texts
        if coded.any():
            counts = tests[coded, COUNT].astype(np.int64)
            self._columns.coder.leave(batch.constants[ranges(places[coded], counts)])

    def _text_test(self, test: Test) -> TextTest:
        """Return a text test with its constants, once it is known that it can pass."""
        place = self._columns.columns[test.column].text_place
        constants = tuple(each for each in test.constants if isinstance(each, Literal))
        found = TextTest(place, test.function, constants)
        self._columns.texts.check(found)
        return found

    def _text_tests(self, test: Test, columns: list[pa.Array]) -> tuple[list[TextTest], Int64s]:
        """Return the distinct text tests of a template, and which each row has."""
        place = self._columns.columns[test.column].text_place
        types = [each.type for each in test.constants]
        rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
        distinct = {row: at for at, row in enumerate(dict.fromkeys(rows))}
        tests = [
            TextTest(place, test.function, tuple(map(Literal, row, types))) for row in distinct
        ]
        return tests, np.array([distinct[row] for row in rows], np.int64)

    def _template_words(self, test: Test, columns: list[pa.Array]) -> list[Int64s]:
        """Return the words of the constants of a test, for all rows."""
        if test.operation == TEXT:
            tests, which = self._text_tests(test, columns)
            times = np.bincount(which, minlength=len(tests)).tolist()
            used = [
                self._columns.texts.use(each, count)
                for each, count in zip(tests, times, strict=True)
            ]
            return [np.array(used, np.int64)[which]]
        return [self._value_words(test.column, column) for column in columns]

    def _value_words(self, column: int, values: pa.Array) -> Int64s:
        kind = self._columns.columns[column].expression.type
        if has_order(kind):
            return words_in_order(values, kind)
        return self._columns.coder.use(values)

    def _words(self, constants: Constants) -> Int64s:
        words = np.array(constants.words, np.int64)
        for column, (values, places) in constants.values.items():
            kind = self._columns.columns[column].expression.type
            words[places] = self._value_words(column, pa.array(values, kind.arrow))
        return words

    def _finish(self, batch: Batch) -> None:
        """Count what conditions use, and put the constants of each IN in order."""
        tests, places = self._shapes.tests_of(batch)
        self._columns.use(tests[:, COLUMN], 1)
        several = tests[:, OPERATION] == ONE_OF
        if several.any():
            counts = tests[several, COUNT].astype(np.int64)
            sort_constants(places[several], counts, batch.constants)

    def _note_fallible(self, numbers: Sequence[int], origins: Sequence[ConditionOrigin]) -> None:
        fallible = frozenset(self._columns.fallible)
        if fallible:
            self._columns.use(np.array(sorted(fallible)), len(numbers))
            for number, origin in zip(numbers, origins, strict=True):
                self._apart.fragile[number] = fallible, origin


def _tests(formula: Formula) -> Iterator[Test]:
    if isinstance(formula, Test):
        yield formula
        return
    for part in formula.parts:
        yield from _tests(part)


def _columns_of(test: Test, constants: pa.RecordBatch) -> pa.RecordBatch:
    """Return the columns that the constants of a test are computed from, but at least one."""
    read = {name for each in test.constants for name in columns_of(each)}
    return constants.select(sorted(read) or constants.schema.names[:1])


def _by_shape(shapes: Int32s | Int64s) -> Iterator[tuple[int, Int64s]]:
    """Yield each shape that occurs, and where."""
    order = np.argsort(shapes, kind="stable")
    found, starts = np.unique(shapes[order], return_index=True)
    ends = [*starts[1:].tolist(), len(order)]
    for shape, start, end in zip(found.tolist(), starts.tolist(), ends, strict=False):
        yield shape, order[start:end]


def _alike(nulls: list[np.ndarray], count: int) -> Iterator[Int64s]:
    """Yield rows that have nulls at the same places."""
    if not any(null.any() for null in nulls):
        yield np.arange(count)
        return
    patterns = np.packbits(np.stack(nulls, axis=1), axis=1)
    _, alike = np.unique(patterns, axis=0, return_inverse=True)
    for _, rows in _by_shape(alike.ravel().astype(np.int64)):
        yield rows
