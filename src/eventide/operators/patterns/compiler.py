"""Compile conditions: from expressions over a match to instructions for a machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import reduce
from itertools import accumulate

import numpy as np
import pyarrow as pa

from eventide.errors import UnsupportedError
from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.patterns import code as op
from eventide.kernels.patterns.code import Code
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.patterns.aggregates import emit_aggregate
from eventide.operators.patterns.leaves import Target, VariableSets, as_leaf, named, reads_name
from eventide.operators.patterns.liveness import UNSEEABLE, ConditionRead, labels_before, live_at
from eventide.operators.patterns.registers import RegisterBlock, Registers, Sought
from eventide.operators.patterns.values import TEXT, ConditionValues, is_wide
from eventide.plan.expressions import (
    At,
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    MatchAggregate,
    MatchNumber,
    rebuild,
    walk,
)
from eventide.plan.patterns.automaton import PatternAutomaton
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.render import render
from eventide.schema import BOOL, FLOAT64, TIMESTAMP, TS, DataType


@dataclass
class Compiler:
    """Collects values, registers and instructions of all conditions of a node."""

    node: MatchRecognize
    sets: VariableSets
    values: ConditionValues = field(default_factory=ConditionValues)
    instructions: list[list[int]] = field(default_factory=list)
    origins: list[Expression] = field(default_factory=list)
    programs: list[int] = field(default_factory=lambda: [0])
    reads: list[set[ConditionRead]] = field(default_factory=list)
    thresholds: set[int] = field(default_factory=set)
    tells_numbers: bool = False
    variable: int = 0

    def __post_init__(self) -> None:
        self.registers = Registers(self.sets, self.values)
        self.registers.add_chains(self.sets.targets(self.node))
        kinds = self.node.source.row.items()
        self.nothing = pa.RecordBatch.from_arrays(
            [pa.nulls(1, kind.arrow) for _, kind in kinds], names=[name for name, _ in kinds]
        )

    def program(self, variable: int, condition: Expression | None) -> None:
        """Compile the condition of the next variable."""
        self.variable = variable
        self.reads.append(set())
        if condition is not None:
            self.emit(condition)
        self.programs.append(len(self.instructions))

    def put(self, origin: Expression, code: int, *operands: int) -> int:
        """Append an instruction; return its place."""
        self.instructions.append([code, *operands, *[0] * (4 - len(operands))])
        self.origins.append(origin)
        return len(self.instructions) - 1

    def land(self, *jumps: int) -> None:
        """Make jumps lead here."""
        for jump in jumps:
            self.instructions[jump][1] = len(self.instructions)

    def emit(self, expression: Expression) -> None:
        """Append instructions that push the value of an expression."""
        leaf = as_leaf(expression)
        if leaf is not None:
            expression = self.sets.normalised(leaf, self.variable)
        leaves = [
            part for part in walk(expression) if isinstance(part, At | MatchAggregate | MatchNumber)
        ]
        targets = {self.sets.target(leaf) if isinstance(leaf, At) else None for leaf in leaves}
        if not targets:
            self._constant(expression)
        elif len(targets) == 1 and None not in targets:
            (target,) = targets
            assert target is not None
            self._load(expression, target)
        else:
            self._combine(expression)

    def _constant(self, expression: Expression) -> None:
        literal = self._folded(expression)
        if literal.value is None:
            self.put(expression, op.NULL)
            return
        code = op.CONST_F if literal.type == FLOAT64 else op.CONST_I
        self.put(expression, code, 0, self.values.constant(literal), 0, op.PLAIN)

    def _folded(self, expression: Expression) -> Literal:
        """Compute an expression without columns."""
        if isinstance(expression, Literal):
            return expression
        found = evaluate(expression, self.nothing)
        if pa.types.is_temporal(found.type):
            found = found.view(pa.int64())
        return Literal(found[0].as_py(), expression.type, expression.span)

    # Values at one row of the match.

    def _load(self, expression: Expression, target: Target) -> None:
        register, by = self.registers.row(target, reads_name=reads_name(expression))
        is_float = expression.type == FLOAT64
        if by == op.PLAIN:
            column = self.values.place(self._at_row(expression, None))
            kind = op.KEY_LOAD_F if is_float else op.KEY_LOAD_I
            code = op.LOAD_F if is_float else op.LOAD_I
        else:
            each = [self._at_row(expression, name) for name in (*self.sets.names, None)]
            if any(isinstance(part, Column) for one in each for part in walk(one)):
                column = self.values.place(*each)
                kind = op.KEY_LOAD_F if is_float else op.KEY_LOAD_I
                code = op.LOAD_F if is_float else op.LOAD_I
            else:
                column = self.values.constant(*(self._folded(one) for one in each))
                kind, code = op.KEY_NAMED, op.NAMED_F if is_float else op.NAMED_I
        self.put(expression, code, register, column, target.shift, by)
        if by == op.BY_PATH:
            self.reads[self.variable] |= self._labels(expression, register, target.shift)
        elif register != op.CURRENT:
            seen = ConditionRead(kind, register, column, target.shift, by)
            if kind == op.KEY_NAMED:
                seen = ConditionRead(kind, register, 0, 0, by)
            self.reads[self.variable].add(seen)

    def _labels(self, expression: Expression, register: int, shift: int) -> set[ConditionRead]:
        """Return what decides a value at a row that PREV or NEXT leads to, by its variable."""
        if register == op.CURRENT:
            return labels_before(-shift)
        if any(isinstance(part, Column) for part in walk(expression)):
            return {UNSEEABLE}
        # A row outside of the match has to be as good as no row.
        outside = self._folded(self._at_row(expression, None))
        return {
            UNSEEABLE
            if outside.value is not None
            else ConditionRead(op.KEY_LABEL, register, 0, shift)
        }

    def _at_row(self, expression: Expression, name: str | None) -> Expression:
        """Return an expression over leaves of one row as an expression over that row."""
        if isinstance(expression, At):
            argument = named(expression.argument, name)
            if evaluate(argument, self.nothing)[0].is_valid:
                # Where there is no row, there is no value either.
                here = Call("is null", (Column(TS, TIMESTAMP),), BOOL)
                parts = (here, Literal(None, argument.type), argument)
                return Call("case", parts, argument.type, expression.span)
            return argument
        return rebuild(expression, lambda part: self._at_row(part, name))

    # What combines several rows.

    def _combine(self, expression: Expression) -> None:
        match expression:
            case MatchNumber():
                self.tells_numbers = True
                self.reads[self.variable].add(_LEVEL)
                self.put(expression, op.NUMBER)
            case MatchAggregate():
                emit_aggregate(self, expression)
            case Cast():
                self._cast(expression)
            case Call(function=function):
                _EMITTERS.get(function, Compiler._refuse)(self, expression)
            case _:
                self._refuse(expression)

    def _refuse(self, expression: Expression) -> None:
        message = f"{render(expression)} combines several rows of a match"
        hint = (
            "arithmetic, comparisons, CASE, COALESCE, NULLIF, GREATEST, LEAST and ABS can; "
            "other functions take values of one row"
        )
        raise UnsupportedError(message, span=expression.span, hint=hint)

    def _simple(self, call: Call) -> None:
        bound = self._bound(call)
        if bound is None:
            for argument in call.arguments:
                self.emit(argument)
        else:
            self._bounded(call, bound)
        of_floats, of_integers, option = _SIMPLE[call.function]
        kind = call.arguments[0].type
        self._refuse_text_arithmetic(call, kind)
        if call.function in _ARITHMETIC:
            self.calculate(call, *call.arguments)
        self.put(call, of_floats if kind == FLOAT64 else of_integers, option)

    def _bound(self, call: Call) -> int | None:
        """Return the count from which on its comparison with a constant does not change."""
        if call.function not in _COMPARISONS:
            return None
        counts = [each for each in call.arguments if _counted(each) is not None]
        others = [each for each in call.arguments if _counted(each) is None]
        if len(counts) != 1 or any(isinstance(part, _LEAVES) for part in walk(others[0])):
            return None
        value = self._folded(others[0]).value
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            return None
        if not -_LARGE < value < _LARGE:
            return None
        return math.ceil(value) + 1

    def _bounded(self, call: Call, bound: int) -> None:
        """Append a comparison of a count, of which only values up to a bound are remembered."""
        reads, tells = set(self.reads[self.variable]), self.tells_numbers
        for argument in call.arguments:
            self.emit(argument)
        fresh = self.reads[self.variable] - reads
        (leaf,) = (each for each in map(_counted, call.arguments) if each is not None)
        if isinstance(leaf, MatchNumber):
            # From one whole number to the next, and from the bound on, nothing changes.
            self.tells_numbers = tells
            self.thresholds |= {bound - 2, bound - 1, bound}
            return
        self.reads[self.variable] -= fresh
        for each in fresh:
            self.reads[self.variable].add(ConditionRead(op.KEY_COUNT, each.register, max(0, bound)))

    def _refuse_text_arithmetic(self, call: Call, kind: DataType) -> None:
        if kind.kind in TEXT and call.function in _ARITHMETIC:
            self._refuse(call)

    def calculate(self, origin: Expression, *arguments: Expression) -> None:
        """Note that long decimals have to be numbers, not only ranks."""
        if any(is_wide(each.type) for each in (origin, *arguments)):
            self.values.calculated.append(origin)

    def _logical(self, call: Call) -> None:
        left, right = call.arguments
        is_and = call.function == "and"
        self.emit(left)
        jump = self.put(call, op.JUMP_IF_FALSE if is_and else op.JUMP_IF_TRUE)
        self.emit(right)
        self.put(call, op.AND if is_and else op.OR)
        self.land(jump)

    def _is_in(self, call: Call) -> None:
        value, *others = call.arguments
        equal = [Call("=", (value, each), BOOL, call.span) for each in others]
        self.emit(reduce(lambda left, right: Call("or", (left, right), BOOL, call.span), equal))

    def _nullif(self, call: Call) -> None:
        value, other = call.arguments
        same = Call("=", (value, other), BOOL, call.span)
        self.emit(Call("case", (same, Literal(None, call.type), value), call.type, call.span))

    def _case(self, call: Call) -> None:
        *branches, otherwise = call.arguments
        ends = []
        for condition, value in zip(branches[::2], branches[1::2], strict=True):
            self.emit(condition)
            jump = self.put(call, op.JUMP_UNLESS)
            self.emit(value)
            ends.append(self.put(call, op.JUMP))
            self.land(jump)
        self.emit(otherwise)
        self.land(*ends)

    def _coalesce(self, call: Call) -> None:
        *firsts, last = call.arguments
        ends = []
        for first in firsts:
            self.emit(first)
            ends.append(self.put(call, op.JUMP_IF_VALID))
            self.put(call, op.POP)
        self.emit(last)
        self.land(*ends)

    def _best(self, call: Call) -> None:
        first, *others = call.arguments
        self.emit(first)
        code = op.BETTER_F if call.type == FLOAT64 else op.BETTER_I
        for other in others:
            self.emit(other)
            self.put(call, code, int(call.function == "greatest"))

    def _cast(self, cast: Cast) -> None:
        source, target = cast.argument.type, cast.type
        if source.kind == "null":
            self.put(cast, op.NULL)
            return
        moved = _moved_inside(cast) if is_wide(target) else None
        if moved is not None:
            self.emit(moved)
            return
        self.emit(cast.argument)
        if source == target:
            return
        self.calculate(cast, cast.argument)
        numbers = ("bool", "int64", "float64", "decimal")
        if source.kind not in numbers or target.kind not in numbers:
            self._refuse(cast)
        or_null = int(cast.or_null)
        match source.kind, target.kind:
            case "float64", "bool":
                self.put(cast, op.F_TO_BOOL)
            case _, "bool":
                self.put(cast, op.I_TO_BOOL)
            case "float64", "int64":
                self.put(cast, op.F_TO_I, 0, or_null)
            case "float64", _:
                self._refuse(cast)
            case _, "float64":
                self.put(cast, op.I_TO_F)
                if source.scale:
                    literal = Literal(10.0**source.scale, FLOAT64)
                    self.put(cast, op.CONST_F, 0, self.values.constant(literal), 0, op.PLAIN)
                    self.put(cast, op.DIVIDE_F)
            case _:
                self._rescale(cast, source.scale, target)

    def _rescale(self, cast: Cast, scale: int, target: DataType) -> None:
        """Change the scale of a whole number or decimal, and check that it fits."""
        if target.scale > scale:
            power = self.values.integer(10 ** min(target.scale - scale, 18))
            self.put(cast, op.CONST_I, 0, power, 0, op.PLAIN)
            self.put(cast, op.MULTIPLY_I)
        elif target.scale < scale:
            self.put(cast, op.ROUND_DOWN, self.values.integer(10 ** min(scale - target.scale, 18)))
        if target.kind == "decimal" and target.precision <= 18:
            most = self.values.integer(10**target.precision - 1)
            self.put(cast, op.BOUND, most, int(cast.or_null))

    # For aggregates; see aggregates.py.

    def load_picked(self, expression: Expression, value: Expression, register: int) -> None:
        """Append an instruction that pushes a value at the row of a register, or null."""
        is_float = expression.type == FLOAT64
        by = op.PLAIN
        if reads_name(value):
            by = register + 1
            column = self.values.place(*(named(value, name) for name in (*self.sets.names, None)))
        else:
            column = self.values.place(value)
        self.put(expression, op.LOAD_F if is_float else op.LOAD_I, register, column, 0, by)
        kind = op.KEY_LOAD_F if is_float else op.KEY_LOAD_I
        self.reads[self.variable].add(ConditionRead(kind, register, column, 0, by))

    def block(self, sought: Sought) -> RegisterBlock:
        """Return the registers of an aggregate, and note that they are read."""
        found = self.registers.block(sought)
        wholes, numbers = sought.size
        kinds = [op.KEY_REGISTER] * wholes
        if sought.operation in (op.ADD_FLOATS, op.ADD_SQUARES, op.ADD_PRODUCTS):
            kinds[1] = op.KEY_EXACT
        reads = self.reads[self.variable]
        reads |= {ConditionRead(kind, found.register + each) for each, kind in enumerate(kinds)}
        reads |= {ConditionRead(op.KEY_FLOAT, found.first + each) for each in range(numbers)}
        if sought.distinct or sought.form is not None:
            reads.add(UNSEEABLE)
        return found

    # All together.

    def _thresholds(self) -> Int64s:
        """Return the thresholds between which the number of a match makes no difference."""
        known = () if self.tells_numbers else sorted(self.thresholds)
        return frozen(np.array(known, np.int64))

    def code(self, automaton: PatternAutomaton) -> Code:
        """Return everything as arrays."""
        floats = len(self.values.floats)
        updates = [
            each.operands(floats) for of_variable in self.registers.updates for each in of_variable
        ]
        seen = live_at(automaton, self.reads, self.registers.chains.values())
        keys = [sorted(each - {UNSEEABLE}) for each in seen]
        return Code(
            instructions=_matrix(self.instructions, 5),
            updates=_matrix(updates, 10),
            keys=_matrix([each.operands for of_node in keys for each in of_node], 5),
            by_variable=_pairs(self.programs, _cumulated(map(len, self.registers.updates))),
            by_node=_pairs(
                _cumulated(map(len, keys)), [*(UNSEEABLE not in each for each in seen), False]
            ),
            registers=frozen(np.array(self.registers.initial, np.int64)),
            of_registers=frozen(np.array(self.registers.owners, np.int64)),
            of_floats=frozen(np.array(self.registers.float_owners, np.int64)),
            thresholds=self._thresholds(),
            float_registers=len(self.registers.float_owners),
            keeps_counts=bool(self.values.counted),
        )


_ARITHMETIC = ("+", "-", "*", "%", "negate", "abs")
_LEAVES = (At, MatchAggregate, MatchNumber)
_LEVEL = ConditionRead(op.KEY_LEVEL, -1)
_COMPARISONS = ("<", "<=", "=", "<>", ">", ">=", "is distinct from", "is not distinct from")
_LARGE = 2**53
"""Up to here floats tell whole numbers apart."""


def _moved_inside(cast: Cast) -> Expression | None:
    """Return a cast that cannot fail, done before one of several values is chosen."""
    source, target = cast.argument.type, cast.type
    if source.kind != "decimal" or target.scale < source.scale:
        return None
    if target.precision - target.scale < source.precision - source.scale:
        return None

    def inside(part: Expression) -> Expression:
        return replace(cast, argument=part)

    match cast.argument:
        case Call(function="coalesce" | "greatest" | "least", arguments=parts) as call:
            return replace(call, arguments=tuple(map(inside, parts)), type=target)
        case Call(function="case", arguments=parts) as call:
            *branches, otherwise = parts
            chosen = [inside(part) if place % 2 else part for place, part in enumerate(branches)]
            return replace(call, arguments=(*chosen, inside(otherwise)), type=target)
        case MatchAggregate(function="min" | "max", argument=part) as call if part is not None:
            return replace(call, argument=inside(part), type=target)
    return None


def _counted(expression: Expression) -> MatchAggregate | MatchNumber | None:
    """Return the count, or the number of the match, that an expression is, with any type."""
    while isinstance(expression, Cast):
        expression = expression.argument
    match expression:
        case MatchNumber() | MatchAggregate(function="count", distinct=False):
            return expression
    return None


_SIMPLE: dict[str, tuple[int, int, int]] = {
    "+": (op.ADD_F, op.ADD_I, 0),
    "-": (op.SUBTRACT_F, op.SUBTRACT_I, 0),
    "*": (op.MULTIPLY_F, op.MULTIPLY_I, 0),
    "/": (op.DIVIDE_F, op.DIVIDE_F, 0),
    "%": (op.REMAINDER_F, op.REMAINDER_I, 0),
    "negate": (op.NEGATE_F, op.NEGATE_I, 0),
    "abs": (op.ABS_F, op.ABS_I, 0),
    "<": (op.COMPARE_F, op.COMPARE_I, 1),
    "=": (op.COMPARE_F, op.COMPARE_I, 2),
    "<=": (op.COMPARE_F, op.COMPARE_I, 3),
    ">": (op.COMPARE_F, op.COMPARE_I, 4),
    "<>": (op.COMPARE_F, op.COMPARE_I, 5),
    ">=": (op.COMPARE_F, op.COMPARE_I, 6),
    "is distinct from": (op.DISTINCT_F, op.DISTINCT_I, 1),
    "is not distinct from": (op.DISTINCT_F, op.DISTINCT_I, 0),
    "not": (op.NOT, op.NOT, 0),
    "is null": (op.IS_NULL_I, op.IS_NULL_I, 0),
}
"""For floats, for everything else, and the option of both."""

_EMITTERS: dict[str, Callable[[Compiler, Call], None]] = {
    **dict.fromkeys(_SIMPLE, Compiler._simple),
    "and": Compiler._logical,
    "or": Compiler._logical,
    "in": Compiler._is_in,
    "nullif": Compiler._nullif,
    "case": Compiler._case,
    "coalesce": Compiler._coalesce,
    "greatest": Compiler._best,
    "least": Compiler._best,
}


def _cumulated(counts: Iterable[int]) -> list[int]:
    return [0, *accumulate(counts)]


def _pairs(left: Sequence[int], right: Sequence[int]) -> Int64s:
    return _matrix(list(zip(left, right, strict=True)), 2)


def _matrix(rows: Sequence[Sequence[int]], width: int) -> Int64s:
    return frozen(np.array(rows, np.int64).reshape(len(rows), width))
