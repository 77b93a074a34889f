"""Compile conditions and what chains carry: from expressions to instructions for the kernel.

What needs only one of the two events is computed for whole columns beforehand. The kernel computes
arithmetic, comparisons and logic of both; it asks for the values of all other functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import pyarrow as pa

from eventide.kernels.algebra import code as op
from eventide.kernels.algebra.code import Programs
from eventide.kernels.compiled import frozen
from eventide.operators.algebra.words import is_word
from eventide.operators.expressions.evaluate import evaluate
from eventide.plan.algebra.nodes import Carried, Follows, Iterate
from eventide.plan.expressions import (
    ALWAYS,
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    columns_of,
)
from eventide.plan.failing import can_fail
from eventide.schema import BOOL, START_TS, TS, DataType

_CALCULATED = ("int64", "timestamp", "interval")
_ARITHMETIC = {
    "+": (op.ADD_I, op.ADD_F),
    "-": (op.SUBTRACT_I, op.SUBTRACT_F),
    "*": (op.MULTIPLY_I, op.MULTIPLY_F),
    "%": (op.REMAINDER_I, op.REMAINDER_F),
    "/": (None, op.DIVIDE_F),
    "negate": (op.NEGATE_I, op.NEGATE_F),
    "abs": (op.ABS_I, op.ABS_F),
}
_COMPARISONS = {"<": 1, "=": 2, "<=": 3, ">": 4, "<>": 5, ">=": 6}
"""Bits: holds if less 1, equal 2, greater 4."""
_DISTINCT = {"is distinct from": 1, "is not distinct from": 0}
_EQUALITIES = ("=", "<>", *_DISTINCT)


@dataclass(frozen=True, slots=True)
class AskedFunction:
    """A function of both events whose values the kernel asks for, and what it is computed from."""

    expression: Expression
    left: tuple[str, ...]
    right: tuple[str, ...]
    carried: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Compiled:
    """The programs of a node, and what their columns and registers stand for."""

    program: Programs
    left: tuple[Expression, ...]
    right: tuple[Expression, ...]
    constants: tuple[tuple[int, Literal], ...]
    functions: tuple[AskedFunction, ...]
    registers: int
    carried: tuple[DataType, ...]
    """The types of what chains carry."""
    origins: tuple[Expression, ...]
    """The expression of each instruction."""

    @property
    def own(self) -> int:
        """How many carried values are no columns."""
        return int((self.program.carried[:, 0] >= 0).sum())

    @property
    def width(self) -> int:
        """The most arguments that a function has."""
        counts = [2 + len(each.carried) for each in self.functions]
        return max(counts, default=0)


def compiled(node: Follows) -> Compiled:
    """Compile the condition of a node, whether a chain goes on, and what it carries then."""
    return _Compiler(node).compiled()


@dataclass
class _Compiler:
    """Collects columns, constants and instructions of all programs of a node."""

    node: Follows
    left: list[Expression] = field(default_factory=list)
    right: list[Expression] = field(default_factory=list)
    constants: dict[tuple[str, DataType], tuple[int, Literal]] = field(default_factory=dict)
    functions: list[AskedFunction] = field(default_factory=list)
    arguments: list[tuple[int, int]] = field(default_factory=list)
    instructions: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    origins: list[Expression] = field(default_factory=list)
    registers: int = 0

    def __post_init__(self) -> None:
        left, right = self.node.left.row, self.node.right.row
        # The times of both together: the start of the left event, the end of the right one.
        self.left_names = {*left} - {TS} | {START_TS}
        self.right_names = {*right} - {START_TS} | {TS}
        carried = self.node.carried if isinstance(self.node, Iterate) else ()
        self.carried = {each.name: number for number, each in enumerate(carried)}
        self.of_carried = tuple(left[each.first] for each in carried)
        self.places: list[tuple[int, int]] = []
        self.programs = [self.node.condition, ALWAYS]
        for each in carried:
            self.carry(each)
        if isinstance(self.node, Iterate):
            self.programs[op.PROCEED] = self.node.proceed
        row = self.node.row
        self.nothing = pa.RecordBatch.from_arrays(
            [pa.nulls(1, kind.arrow) for kind in row.values()], names=list(row)
        )

    def carry(self, carried: Carried) -> None:
        """Find a place for a value: that of the last event is there, others have programs."""
        if isinstance(carried.next, Column) and carried.next.name in self.right_names:
            self.places.append((-1, self.column(carried.next, self.right)))
        else:
            self.places.append((len(self.programs) - op.NEXT, -1))
            self.programs.append(carried.next)

    def compiled(self) -> Compiled:
        entries, results = [0], []
        for each in self.programs:
            results.append(self.own(each))
            entries.append(len(self.instructions))
        program = Programs(
            frozen(np.array(self.instructions, np.int64).reshape(-1, 5)),
            frozen(np.array(entries, np.int64)),
            frozen(np.array(results, np.int64)),
            frozen(np.array(self.arguments, np.int64).reshape(-1, 2)),
            frozen(np.array(self.places, np.int64).reshape(-1, 2)),
        )
        return Compiled(
            program,
            tuple(self.left),
            tuple(self.right),
            tuple(self.constants.values()),
            tuple(self.functions),
            self.registers,
            self.of_carried,
            tuple(self.origins),
        )

    def own(self, expression: Expression) -> int:
        """Append instructions that leave a value in a register that no other program writes."""
        return self.emit(expression, lazy=False)

    def register(self) -> int:
        """Return a register of its own."""
        self.registers += 1
        return self.registers - 1

    def put(self, origin: Expression, code: int, to: int, *operands: int) -> int:
        """Append an instruction; return its place."""
        one, other, third, *_ = (*operands, 0, 0, 0)
        self.instructions.append((code, to, one, other, third))
        self.origins.append(origin)
        return len(self.instructions) - 1

    def land(self, *jumps: int) -> None:
        """Make jumps lead here."""
        for jump in jumps:
            code, register, _, *rest = self.instructions[jump]
            self.instructions[jump] = (code, register, len(self.instructions), rest[0], rest[1])

    def emit(self, expression: Expression, *, lazy: bool) -> int:
        """Append instructions for the value of an expression; return its register.

        A value that is needed for some pairs only must not be computed for all of a column if it
        may fail.
        """
        names = columns_of(expression)
        if not names:
            return self.constant(expression)
        careful = lazy and can_fail(expression)
        if names <= self.left_names and not careful:
            return self.load(expression, op.LEFT, self.left)
        if names <= self.right_names and not careful:
            return self.load(expression, op.RIGHT, self.right)
        if isinstance(expression, Column):
            to = self.register()
            self.put(expression, op.CARRIED, to, self.carried[expression.name])
            return to
        found = self.combined(expression, lazy=lazy)
        return self.ask(expression) if found is None else found

    def load(self, expression: Expression, code: int, columns: list[Expression]) -> int:
        """Append the load of a column of one side."""
        to = self.register()
        self.put(expression, code, to, self.column(expression, columns))
        return to

    def column(self, expression: Expression, columns: list[Expression]) -> int:
        """Return the number of a column of one side."""
        if expression not in columns:
            columns.append(expression)
        return columns.index(expression)

    def constant(self, expression: Expression) -> int:
        """Return the register of a constant."""
        if not isinstance(expression, Literal):
            value = evaluate(expression, self.nothing)[0]
            if pa.types.is_temporal(value.type):
                value = value.cast(pa.int64())
            expression = Literal(value.as_py(), expression.type)
        # 0.0 and -0.0 are equal, and not the same.
        key = (repr(expression.value), expression.type)
        if key not in self.constants:
            self.constants[key] = (self.register(), expression)
        return self.constants[key][0]

    def ask(self, expression: Expression) -> int:
        """Append a question for the value of a function of both events."""
        names = columns_of(expression)
        function = AskedFunction(
            expression,
            tuple(sorted(names & self.left_names)),
            tuple(sorted(names & self.right_names)),
            tuple(sorted(self.carried[name] for name in names & self.carried.keys())),
        )
        number, first = len(self.functions), len(self.arguments)
        self.functions.append(function)
        self.arguments += [(-1, number), (-2, number)]
        self.arguments += [(each, each) for each in function.carried]
        to = self.register()
        self.put(expression, op.ASK, to, number, first, 2 + len(function.carried))
        return to

    def combined(self, expression: Expression, *, lazy: bool) -> int | None:
        """Append what the kernel can compute of parts; None if it cannot."""
        match expression:
            case Cast(argument=argument, type=kind):
                return self.cast(expression, argument, kind, lazy=lazy)
            case Call(function=function) if function in _ARITHMETIC:
                return self.calculated(expression, lazy=lazy)
            case Call(function=function) if function in _COMPARISONS or function in _DISTINCT:
                return self.compared(expression, lazy=lazy)
            case Call(function=function) if function in _EMITTERS:
                return _EMITTERS[function](self, expression, lazy)
        return None

    def cast(self, cast: Cast, argument: Expression, kind: DataType, *, lazy: bool) -> int | None:
        pair = (argument.type.kind, kind.kind)
        if argument.type == kind or pair == ("bool", "int64"):
            return self.emit(argument, lazy=lazy)
        if pair not in (("int64", "float64"), ("bool", "float64")):
            return None
        source, to = self.emit(argument, lazy=lazy), self.register()
        self.put(cast, op.I_TO_F, to, source)
        return to

    def calculated(self, call: Call, *, lazy: bool) -> int | None:
        of_integers, of_floats = _ARITHMETIC[call.function]
        kinds = {each.type.kind for each in (call, *call.arguments)}
        code = of_floats if kinds == {"float64"} else of_integers
        if code is None or (code == of_integers and not kinds <= {*_CALCULATED}):
            return None
        return self.apply(call, code, lazy=lazy)

    def compared(self, call: Call, *, lazy: bool) -> int | None:
        kind = call.arguments[0].type
        if kind.kind == "list" or not (is_word(kind) or call.function in _EQUALITIES):
            return None
        real = kind.kind == "float64"
        if call.function in _DISTINCT:
            code = op.DISTINCT_F if real else op.DISTINCT_I
            return self.apply(call, code, _DISTINCT[call.function], lazy=lazy)
        code = op.COMPARE_F if real else op.COMPARE_I
        return self.apply(call, code, _COMPARISONS[call.function], lazy=lazy)

    def apply(self, call: Call, code: int, *options: int, lazy: bool) -> int:
        """Append an instruction behind those of its arguments."""
        operands = [self.emit(each, lazy=lazy) for each in call.arguments]
        to = self.register()
        self.put(call, code, to, *operands, *options)
        return to

    def move(self, to: int, expression: Expression, *, lazy: bool) -> None:
        """Append instructions that leave a value in a given register."""
        self.put(expression, op.MOVE, to, self.emit(expression, lazy=lazy))

    def logical(self, call: Call, lazy: bool) -> int:
        left, right = call.arguments
        is_and = call.function == "and"
        to = self.register()
        self.move(to, left, lazy=lazy)
        jump = self.put(call, op.JUMP_IF_FALSE if is_and else op.JUMP_IF_TRUE, to)
        other = self.emit(right, lazy=True)
        self.put(call, op.AND if is_and else op.OR, to, to, other)
        self.land(jump)
        return to

    def negated(self, call: Call, lazy: bool) -> int:
        return self.apply(call, op.NOT, lazy=lazy)

    def is_null(self, call: Call, lazy: bool) -> int:
        return self.apply(call, op.IS_NULL, lazy=lazy)

    def is_in(self, call: Call, lazy: bool) -> int:
        value, *others = call.arguments
        equal = [Call("=", (value, each), BOOL, call.span) for each in others]
        either = reduce(lambda one, other: Call("or", (one, other), BOOL, call.span), equal)
        return self.emit(either, lazy=lazy)

    def case(self, call: Call, lazy: bool) -> int:
        *branches, otherwise = call.arguments
        to, ends = self.register(), []
        for number, (condition, value) in enumerate(
            zip(branches[::2], branches[1::2], strict=True)
        ):
            test = self.emit(condition, lazy=lazy or number > 0)
            jump = self.put(call, op.JUMP_UNLESS, test)
            self.move(to, value, lazy=True)
            ends.append(self.put(call, op.JUMP, 0))
            self.land(jump)
        self.move(to, otherwise, lazy=True)
        self.land(*ends)
        return to

    def coalesced(self, call: Call, lazy: bool) -> int:
        *firsts, last = call.arguments
        to, ends = self.register(), []
        for number, first in enumerate(firsts):
            self.move(to, first, lazy=lazy or number > 0)
            ends.append(self.put(call, op.JUMP_IF_VALID, to))
        self.move(to, last, lazy=lazy or bool(firsts))
        self.land(*ends)
        return to

    def null_if(self, call: Call, lazy: bool) -> int:
        value, other = call.arguments
        same = Call("=", (value, other), BOOL, call.span)
        empty = Literal(None, call.type)
        return self.case(Call("case", (same, empty, value), call.type, call.span), lazy)


_EMITTERS: dict[str, Callable[[_Compiler, Call, bool], int]] = {
    "and": _Compiler.logical,
    "or": _Compiler.logical,
    "not": _Compiler.negated,
    "is null": _Compiler.is_null,
    "in": _Compiler.is_in,
    "case": _Compiler.case,
    "coalesce": _Compiler.coalesced,
    "nullif": _Compiler.null_if,
}
