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
    NOT_YET,
    OPEN,
    WHERE,
    BothSides,
    Chains,
    Machine,
)
from eventide.kernels.algebra.follow import ASKS, DONE, FAILS, follow
from eventide.kernels.compiled import Bools, Int64s, frozen
from eventide.kernels.growing import longer
from eventide.operators.algebra.asked import Asker, argument_codes, no_answers
from eventide.operators.algebra.compiler import Compiled
from eventide.operators.algebra.waiting import WaitingRows
from eventide.operators.algebra.words import Codes
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.key_parts import KeyOrder
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
    events: pa.RecordBatch
    by_key: KeyOrder
    goes_on: bool
    codes: Codes = field(default_factory=Codes)

    def run(self) -> Chains:
        """Return all chains: the waiting rows, then those that were found."""
        sides, chains = self.sides(), self.begun()
        machine = self.machine(self.waiting.rows.num_rows)
        answers = no_answers(self.compiled.width)
        asker = Asker(self.compiled, self.names, self.waiting.rows, self.events, self.codes)
        program = self.compiled.program
        while True:
            reason = follow(program, sides, chains, answers, machine, self.goes_on)
            if reason == DONE:
                return Chains._make(each[: machine.facts[COUNT]] for each in chains)
            if reason == FAILS:
                raise self.failure(int(machine.facts[WHERE]))
            if reason == ASKS:
                asked = machine.asked[: machine.facts[ASKED]]
                answers = asker.answered(answers, asked, chains)
                machine.facts[AHEAD] *= _FURTHER
            else:
                room = 2 * len(chains.origin)
                chains = Chains._make(longer(each, room) for each in chains)

    def sides(self) -> BothSides:
        """Return the values of both sides."""
        waiting, events, functions = self.waiting, self.events, self.compiled.functions
        left, left_valid = table(self.compiled.left, waiting.rows, self.codes)
        right, right_valid = table(self.compiled.right, events, self.codes)
        return BothSides(
            left,
            left_valid,
            argument_codes(functions, waiting.rows, left=True),
            right,
            right_valid,
            argument_codes(functions, events, left=False),
            frozen(waiting.codes.astype(np.int64)),
            waiting.expires,
            self.by_key.offsets,
            self.by_key.order,
            int64s(events.column(TS)),
            int64s(events.column(START_TS)),
        )

    def begun(self) -> Chains:
        """Return the chains of the waiting rows alone."""
        rows = self.waiting.rows
        count = rows.num_rows
        columns = [
            self.codes.words(rows.column(name), kind)
            for name, kind in zip(self.names, self.compiled.carried, strict=True)
        ]
        carried, valid = stacked(columns, count)
        chains = Chains(
            np.arange(count),
            np.full(count, -1, np.int64),
            int64s(rows.column(TS)).copy(),
            np.full(count, -1, np.int64),
            np.full(count, NOT_YET, np.int64),
            np.full(count, OPEN, np.int64),
            np.ascontiguousarray(carried.T),
            np.ascontiguousarray(valid.T),
        )
        return Chains._make(longer(each, count + _SPARE) for each in chains)

    def machine(self, count: int) -> Machine:
        """Return the memory of the search, with all constants."""
        registers = max(1, self.compiled.registers)
        words, valid = np.zeros(registers, np.int64), np.zeros(registers, np.bool_)
        for register, literal in self.compiled.constants:
            column = pa.array([literal.value], literal.type.arrow)
            found = self.codes.words(column, literal.type)
            words[register], valid[register] = found[0][0], found[1][0]
        width = 2 + self.compiled.width
        questions = _QUESTIONS if self.compiled.functions else 1
        facts = np.zeros(5, np.int64)
        facts[COUNT], facts[AHEAD] = count, 1
        asked = np.zeros((questions, 3 + width), np.int64)
        return Machine(words, valid, asked, np.zeros((1, width), np.int64), facts)

    def failure(self, place: int) -> EvaluationError:
        """Return the error of an instruction whose result does not fit."""
        origin = self.compiled.origins[place]
        message = f"{render(origin)} overflows {origin.type}"
        hint = "cast to double, which is not exact but has room"
        return EvaluationError(message, span=origin.span, hint=hint)

    def carried(self, chains: Chains, places: Int64s) -> dict[str, pa.Array]:
        """Return what some chains carry, by name."""
        found: dict[str, pa.Array] = {}
        for number, name in enumerate(self.names):
            words, valid = chains.carried[places, number], chains.carried_valid[places, number]
            found[name] = self.codes.column(words, valid, self.compiled.carried[number])
        return found


def table(
    expressions: Sequence[Expression], rows: pa.RecordBatch, codes: Codes
) -> tuple[Int64s, Bools]:
    """Return the words of expressions over rows, by expression and row."""
    found = [codes.words(evaluate(each, rows), each.type) for each in expressions]
    words, valid = stacked(found, rows.num_rows)
    return frozen(words), frozen(valid)


def stacked(columns: Sequence[tuple[Int64s, Bools]], count: int) -> tuple[Int64s, Bools]:
    """Return columns as one array."""
    words, valid = np.zeros((len(columns), count), np.int64), np.zeros((len(columns), count), bool)
    for number, (each, present) in enumerate(columns):
        words[number], valid[number] = each, present
    return words, valid
