"""Functions that the kernel cannot compute: their values for the events that it asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.kernels.algebra.answers import remember_answers
from eventide.kernels.algebra.code import Answers
from eventide.kernels.compiled import Int64s, frozen
from eventide.operators.algebra.compiler import AskedFunction, Compiled
from eventide.operators.algebra.words import Codes
from eventide.operators.columns import encode_keys
from eventide.operators.expressions.evaluate import evaluate

_QUESTION = 3
"""Columns of a question before its key: the function, the chain, the event."""
_LEAST = 64


def no_answers(width: int, room: int = _LEAST) -> Answers:
    """Return an empty table for functions of so many arguments."""
    return Answers(
        np.zeros((room, 2 + width), np.int64),
        np.zeros(room, np.bool_),
        np.zeros(room, np.int64),
        np.zeros(room, np.bool_),
    )


def argument_codes(
    functions: tuple[AskedFunction, ...], rows: pa.RecordBatch, *, left: bool
) -> Int64s:
    """Return, for each function, the number of what it reads of each row of one side."""
    codes = np.zeros((len(functions), rows.num_rows), np.int64)
    for number, each in enumerate(functions):
        names = each.left if left else each.right
        codes[number] = encode_keys([rows.column(name) for name in names], rows.num_rows)[0]
    return frozen(codes)


class AskedChains(Protocol):
    """The chains that questions are about, by number."""

    def origins(self, chains: Int64s) -> Int64s:
        """Return the waiting row of each."""
        ...

    def carried(self, number: int, chains: Int64s) -> pa.Array:
        """Return what each carries."""
        ...


@dataclass(frozen=True, slots=True)
class Asker:
    """Answers the questions of a search."""

    compiled: Compiled
    names: tuple[str, ...]
    """The names of what chains carry."""
    left: pa.RecordBatch
    right: pa.RecordBatch
    codes: Codes

    def answered(self, answers: Answers, asked: Int64s, chains: AskedChains) -> Answers:
        """Return the table with the values that were asked for."""
        _, first = np.unique(asked[:, _QUESTION:], axis=0, return_index=True)
        asked = asked[first]
        answers = roomy(answers, int(answers.used.sum()) + len(asked))
        for number, function in enumerate(self.compiled.functions):
            questions = asked[asked[:, 0] == number]
            if len(questions):
                values = evaluate(function.expression, self.rows(function, questions, chains))
                words, valid = self.codes.words(values, function.expression.type)
                keys = frozen(questions[:, _QUESTION:])
                remember_answers(answers, keys, frozen(words), frozen(valid))
        return answers

    def rows(
        self, function: AskedFunction, questions: Int64s, chains: AskedChains
    ) -> pa.RecordBatch:
        """Return what a function reads, a row for each question."""
        chain, event = questions[:, 1], questions[:, 2]
        origin = to_arrow(chains.origins(chain))
        columns = {name: self.left.column(name).take(origin) for name in function.left}
        place = to_arrow(event)
        columns |= {name: self.right.column(name).take(place) for name in function.right}
        for number in function.carried:
            columns[self.names[number]] = chains.carried(number, chain)
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def roomy(answers: Answers, count: int) -> Answers:
    """Return a table with room for so many values, at most half full."""
    room = len(answers.used)
    if 2 * count <= room:
        return answers
    while room < 2 * count:
        room *= 2
    larger = no_answers(answers.keys.shape[1] - 2, room)
    used = np.flatnonzero(answers.used)
    remember_answers(
        larger,
        frozen(answers.keys[used]),
        frozen(answers.words[used]),
        frozen(answers.valid[used]),
    )
    return larger
