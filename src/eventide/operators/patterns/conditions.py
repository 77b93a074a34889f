"""Split the conditions of pattern variables: parts for whole columns, parts that read the match.

A conjunct that reads the tested row and rows at fixed distances is computed for all rows at once.
The rest becomes instructions (kernels/patterns/code.py). There, a part that reads a single row of
the match is again a column of values: `LAST(A.x) * 2 + LAST(A.y) > x` loads two values and compares
them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import pyarrow as pa

from eventide.errors import BindError, EvaluationError, UnsupportedError
from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.patterns import code as op
from eventide.kernels.patterns.code import Code, Tables
from eventide.kernels.patterns.tables import Masks, Steps
from eventide.operators.patterns.aggregates import COUNTS_VALUES
from eventide.operators.patterns.compiler import Compiler
from eventide.operators.patterns.leaves import VariableSets, needs_match
from eventide.operators.patterns.values import ConditionValues
from eventide.plan.expressions import (
    ALWAYS,
    At,
    Call,
    Expression,
    MatchAggregate,
    conjuncts,
    walk,
)
from eventide.plan.patterns.automaton import MOST_VARIABLES, PatternAutomaton, automaton_of
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.patterns.tree import Absent, walk_pattern
from eventide.plan.render import render
from eventide.schema import BOOL

MOST_OFFSET = 1_000
"""FIRST and LAST in a condition need a register of the match for each row they skip."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of a node's variables.

    `local` are the parts that depend on the row itself, `code` is the rest. `float_values` and
    `int_values` are the values that the rest reads at rows of a match.
    """

    node: MatchRecognize
    automaton: PatternAutomaton
    steps: Steps
    local: tuple[Expression | None, ...]
    code: Code
    reach_back: int
    reach_ahead: int
    _read: ConditionValues = field(repr=False)
    _origins: tuple[Expression, ...] = field(repr=False)

    @property
    def float_values(self) -> tuple[Expression, ...]:
        """The floats among `values`."""
        return tuple(self._read.floats)

    @property
    def int_values(self) -> tuple[Expression, ...]:
        """All other `values`."""
        return tuple(self._read.ints)

    @property
    def values(self) -> tuple[Expression, ...]:
        """The values that conditions read at rows of a match, each computed from its row alone."""
        return self.float_values + self.int_values

    @property
    def is_local(self) -> bool:
        """Whether all conditions depend on single rows only."""
        return len(self.code.instructions) == 0

    def tables(self, rows: pa.RecordBatch) -> Tables:
        """Return the values of the rows, and those for a row that does not exist."""
        return self._read.tables(rows)

    def no_answer(self, instruction: int) -> EvaluationError:
        """Return the error for an instruction that has no result for some value."""
        origin = self._origins[instruction]
        if self.code.instructions[instruction, 0] in (op.F_TO_I, op.BOUND):
            message = f"{render(origin)} has no answer for some value"
            hint = "TRY_CAST gives NULL instead"
        else:
            message = f"{render(origin)} overflows {origin.type}"
            hint = "cast to double, which is not exact but has room"
        return EvaluationError(message, span=origin.span, hint=hint)


def compile_conditions(node: MatchRecognize) -> Conditions:
    """Split the conditions of a bound node, and compile the parts that read the match."""
    if len(node.variables) > MOST_VARIABLES:
        message = f"a pattern of {len(node.variables)} variables"
        raise UnsupportedError(message, span=node.span, hint=f"at most {MOST_VARIABLES} are there")
    leaves = [
        part for define in node.defines for part in walk(define.expression) if isinstance(part, At)
    ]
    for leaf in leaves:
        _check_offset(leaf)
    automaton = automaton_of(node.pattern, all_matches=node.strategy == "skip_till_any")
    sets = VariableSets.of(node)
    for each in walk_pattern(node.pattern):
        if isinstance(each, Absent) and each.late:
            _check_counted(node, each, sets)
    compiler = Compiler(node, sets)
    local: list[Expression | None] = []
    for variable, define in enumerate(node.defines):
        own: list[Expression] = []
        rest: list[Expression] = []
        for part in conjuncts(define.expression):
            normal = sets.normalised(part, variable)
            if needs_match(normal):
                rest.append(normal)
            elif normal != ALWAYS:
                own.append(normal)
        local.append(reduce(_both, own) if own else None)
        compiler.program(variable, reduce(_both, rest) if rest else None)
    return Conditions(
        node,
        automaton,
        steps_of(automaton),
        tuple(local),
        compiler.code(automaton),
        max([0, *(-leaf.shift for leaf in leaves)]),
        max([0, *(leaf.shift for leaf in leaves)]),
        compiler.values,
        tuple(compiler.origins),
    )


def _check_offset(leaf: At) -> None:
    if leaf.offset > MOST_OFFSET:
        message = f"{leaf.edge.upper()} in DEFINE looks past at most {MOST_OFFSET:,} rows"
        message += f", not {leaf.offset:,}"
        hint = "PREV looks back any number of rows of the partition; or count with COUNT"
        raise BindError(message, span=leaf.span, hint=hint)


def _check_counted(node: MatchRecognize, absent: Absent, sets: VariableSets) -> None:
    """Refuse counts of values in a NOT that is checked late: those at that row are lost."""
    late = sum(sets.bits[each] for each in absent.late)
    (condition,) = (item.expression for item in node.defines if item.name == absent.name)
    for part in walk(condition):
        if not isinstance(part, MatchAggregate):
            continue
        if not part.distinct and part.function not in (*COUNTS_VALUES, "approx_count_distinct"):
            continue
        if sets.bits[part.variable] & ~late:
            later = " and ".join(sorted(absent.late))
            message = f"{render(part)} of earlier rows stands beside {later}, which comes later"
            other = "leave out DISTINCT" if part.distinct else "take AVG or MAX"
            hint = f"{other}, or leave out what NOT {absent.name} asks of {later}"
            raise UnsupportedError(message, span=part.span, hint=hint)


def steps_of(automaton: PatternAutomaton) -> Steps:
    """Return the automaton as arrays."""
    steps = [step for node in automaton.nodes for step in node.steps]
    counts = [len(node.steps) for node in automaton.nodes]
    return Steps(
        first=frozen(np.cumsum([0, *counts], dtype=np.int64)),
        variable=_ints(step.variable for step in steps),
        target=_ints(step.target for step in steps),
        at_start=frozen(np.array([step.at_start for step in steps], np.bool_)),
        at_end=frozen(np.array([step.at_end for step in steps], np.bool_)),
        absent=_bits(step.absent for step in steps),
        later=_bits(step.later for step in steps),
        late=_bits(step.late for step in steps),
        node_variable=_ints(node.variable for node in automaton.nodes),
    )


def _ints(values: Iterable[int]) -> Int64s:
    return frozen(np.array(list(values), np.int64))


def _bits(sets: Iterable[frozenset[int]]) -> Masks:
    found = [sum(1 << variable for variable in each) for each in sets]
    return frozen(np.array(found, np.uint64))


def _both(left: Expression, right: Expression) -> Expression:
    return Call("and", (left, right), BOOL)
