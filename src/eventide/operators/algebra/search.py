"""One search for the events that follow others: what the kernel reads and writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import int64s
from eventide.errors import EvaluationError
from eventide.kernels.algebra.code import (
    AHEAD,
    ASKED,
    COUNT,
    WHERE,
    BothSides,
    FoundChains,
    Machine,
)
from eventide.kernels.algebra.follow import ASKS, DONE, FAILS, follow
from eventide.kernels.compiled import Bools, Int32s, Int64s, frozen
from eventide.kernels.growing import longer
from eventide.operators.algebra.asked import Asker, argument_codes, no_answers
from eventide.operators.algebra.compiler import Compiled
from eventide.operators.algebra.keyed import KeyedEvents
from eventide.operators.algebra.results import Results
from eventide.operators.algebra.waiting import WaitingRows
from eventide.operators.algebra.words import Codes
from eventide.operators.expressions.evaluate import evaluate
from eventide.plan.expressions import Expression
from eventide.plan.render import render
from eventide.schema import START_TS, TS

_SPARE = 1024
"""Room for results at first."""
_QUESTIONS = 1 << 16
_FURTHER = 4
"""So many times as far ahead every further round of questions looks."""


@dataclass
class ChainSearch:
    """Chains that begin with waiting rows, and what follows them among events, which are by key."""

    compiled: Compiled
    names: tuple[str, ...]
    waiting: WaitingRows
    keyed: KeyedEvents
    numbers: Int32s
    """The keys of events, as waiting rows number them."""
    goes_on: bool
    codes: Codes = field(default_factory=Codes)

    @property
    def events(self) -> pa.RecordBatch:
        """The events that may follow."""
        return self.keyed.keyed.rows

    def run(self) -> Results:
        """Return what follows the waiting rows."""
        sides = self.sides()
        found, machine = self.nothing_found(), self.machine(sides)
        answers = no_answers(self.compiled.width)
        program = self.compiled.program
        asker = Asker(self.compiled, self.names, self.waiting.rows, self.events, self.codes)
        while True:
            reason = follow(program, sides, found, answers, machine, self.goes_on)
            results = Results(self.compiled, self.codes, sides, found, int(machine.facts[COUNT]))
            if reason == DONE:
                return results
            if reason == FAILS:
                raise self.failure(int(machine.facts[WHERE]))
            if reason == ASKS:
                asked = machine.asked[: machine.facts[ASKED]]
                answers = asker.answered(answers, asked, results)
                machine.facts[AHEAD] *= _FURTHER
            else:
                room = 2 * len(found.origin)
                found = FoundChains(found.waiting_on, *(longer(each, room) for each in found[1:]))

    def sides(self) -> BothSides:
        """Return the values of both sides."""
        waiting, events, functions = self.waiting, self.events, self.compiled.functions
        rows = waiting.rows
        left, left_valid = table(self.compiled.left, rows, self.codes)
        right, right_valid = table(self.compiled.right, events, self.codes)
        low, high = self.keyed.bounds(self.numbers, waiting.count)
        firsts = [
            self.codes.words(rows.column(name), kind)
            for name, kind in zip(self.names, self.compiled.carried, strict=True)
        ]
        first, first_valid = stacked(firsts, rows.num_rows)
        return BothSides(
            left,
            left_valid,
            argument_codes(functions, rows, left=True),
            right,
            right_valid,
            argument_codes(functions, events, left=False),
            first,
            first_valid,
            frozen(waiting.codes),
            int64s(rows.column(TS)),
            waiting.expires,
            low,
            high,
            self.keyed.by_key.order,
            int64s(events.column(TS)),
            int64s(events.column(START_TS)),
        )

    def nothing_found(self) -> FoundChains:
        """Return room for results: one for each waiting row, and some more."""
        count = self.waiting.rows.num_rows
        room, width = count + _SPARE, self.compiled.own
        return FoundChains(
            np.zeros(count, np.bool_),
            np.zeros(room, np.int32),
            np.zeros(room, np.int32),
            np.zeros(room, np.int32),
            np.zeros(room, np.bool_),
            np.zeros((room, width), np.int64),
            np.zeros((room, width), np.bool_),
        )

    def machine(self, sides: BothSides) -> Machine:
        """Return the memory of the search, with all constants."""
        registers = max(1, self.compiled.registers)
        words, valid = np.zeros(registers, np.int64), np.zeros(registers, np.bool_)
        for register, literal in self.compiled.constants:
            column = pa.array([literal.value], literal.type.arrow)
            found = self.codes.words(column, literal.type)
            words[register], valid[register] = found[0][0], found[1][0]
        width = 2 + self.compiled.width
        questions = _QUESTIONS if self.compiled.functions else 1
        facts = np.zeros(7, np.int64)
        facts[AHEAD] = 1
        return Machine(
            words,
            valid,
            np.zeros((questions, 3 + width), np.int64),
            np.zeros((1, width), np.int64),
            np.zeros((questions + 1, 3), np.int64),
            sides.low.copy(),
            facts,
        )

    def failure(self, place: int) -> EvaluationError:
        """Return the error of an instruction whose result does not fit."""
        origin = self.compiled.origins[place]
        message = f"{render(origin)} overflows {origin.type}"
        hint = "cast to double, which is not exact but has room"
        return EvaluationError(message, span=origin.span, hint=hint)


def table(
    expressions: Sequence[Expression], rows: pa.RecordBatch, codes: Codes
) -> tuple[Int64s, Bools]:
    """Return the words of expressions over rows, by expression and row."""
    found = [codes.words(evaluate(each, rows), each.type) for each in expressions]
    return stacked(found, rows.num_rows)


def stacked(columns: Sequence[tuple[Int64s, Bools]], count: int) -> tuple[Int64s, Bools]:
    """Return columns as one array; a single one is not copied."""
    if len(columns) == 1:
        (words, valid) = columns[0]
        return frozen(words.reshape(1, count)), frozen(valid.reshape(1, count))
    words, valid = np.empty((len(columns), count), np.int64), np.empty((len(columns), count), bool)
    for number, (each, present) in enumerate(columns):
        words[number], valid[number] = each, present
    return frozen(words), frozen(valid)
