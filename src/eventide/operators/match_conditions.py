"""The conditions of pattern variables, cut into what columns can tell and what a match must know.

A conjunct that looks at the tested row and rows at fixed distances is computed for all rows at
once. The rest becomes instructions for `kernels.match_code`, in which whatever looks at one row
of the match only is a column of values again: `LAST(A.x) * 2 + LAST(A.y) > x` loads two values
and compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import reduce
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.accumulators.columns import decimal_halves, floats, int64s, one_spelling
from eventide.errors import EvaluationError, UnsupportedError
from eventide.kernels import match_code as op
from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.match_code import Code, Tables
from eventide.kernels.match_tables import Steps
from eventide.operators.evaluate import evaluate
from eventide.plan.expressions import (
    ALWAYS,
    At,
    Call,
    Cast,
    Classifier,
    Column,
    Expression,
    Literal,
    MatchAggregate,
    MatchNumber,
    conjuncts,
    rebuild,
    walk,
)
from eventide.plan.nodes import MatchRecognize
from eventide.plan.program import Automaton, automaton_of
from eventide.plan.render import render
from eventide.schema import BOOL, FLOAT64, INT64, STRING, TIMESTAMP, TS, DataType

MOST_VARIABLES = 64
"""Sets of variables are the bits of one word."""

_TEXT = ("string", "binary")


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of a node's variables.

    `local` are those parts that the row itself decides, `code` is the rest. `float_values` and
    `values` are what the rest reads at rows of a match.
    """

    node: MatchRecognize
    automaton: Automaton
    steps: Steps
    local: tuple[Expression | None, ...]
    code: Code
    float_values: tuple[Expression, ...]
    int_values: tuple[Expression, ...]
    reach_back: int
    reach_ahead: int
    _constants: tuple[Literal, ...] = field(repr=False)
    _distinct: tuple[tuple[Expression, ...], ...] = field(repr=False)
    _origins: tuple[Expression, ...] = field(repr=False)

    @property
    def values(self) -> tuple[Expression, ...]:
        """What conditions read at rows of a match, computed from those rows alone."""
        return self.float_values + self.int_values

    @property
    def is_local(self) -> bool:
        """Whether rows alone decide all conditions."""
        return len(self.code.instructions) == 0

    def tables(self, rows: pa.RecordBatch) -> Tables:
        """Return the values of the rows, and those of a row that is not there."""
        count = rows.num_rows + 1
        columns = [_with_absent(each, rows) for each in self.values]
        numbers = np.zeros((len(self.float_values), count), np.float64)
        wholes = np.zeros((len(self.int_values), count), np.int64)
        valid = np.zeros((len(columns), count), np.bool_)
        ranks = _ranked(columns, self._constants)
        for place, column in enumerate(columns):
            valid[place] = column.is_valid().to_numpy(zero_copy_only=False)
            if place < len(numbers):
                numbers[place] = floats(column)
            elif place in ranks.columns:
                wholes[place - len(numbers)] = ranks.columns[place]
            else:
                wholes[place - len(numbers)] = _integers(column, self.values[place])
        codes, distinct = _distinct_codes(self._distinct, rows)
        return Tables(
            frozen(numbers),
            frozen(wholes),
            frozen(valid),
            frozen(codes),
            frozen(distinct),
            _constants_table(ranks.constants, self._constants),
            frozen(np.array([_as_float(each) for each in self._constants], np.float64)),
        )

    def no_answer(self, instruction: int) -> EvaluationError:
        """Return the error of an instruction that has no answer for some value."""
        origin = self._origins[instruction]
        if self.code.instructions[instruction, 0] in (op.F_TO_I, op.BOUND):
            message = f"{render(origin)} has no answer for some value"
            hint = "TRY_CAST gives NULL instead"
        else:
            message = f"{render(origin)} overflows {origin.type}"
            hint = "cast to double, which is not exact but has room"
        return EvaluationError(message, span=origin.span, hint=hint)


def compile_conditions(node: MatchRecognize) -> Conditions:
    """Cut the conditions of a bound node, and compile what needs the state of a match."""
    if len(node.variables) > MOST_VARIABLES:
        message = f"a pattern of {len(node.variables)} variables"
        raise UnsupportedError(message, span=node.span, hint=f"at most {MOST_VARIABLES} are there")
    automaton = automaton_of(node.pattern, all_matches=node.strategy == "skip_till_any")
    compiler = _Compiler(node)
    local: list[Expression | None] = []
    residual: list[Expression | None] = []
    for variable, define in enumerate(node.defines):
        own: list[Expression] = []
        rest: list[Expression] = []
        for part in conjuncts(define.expression):
            normal = compiler.normalised(part, variable)
            (rest if compiler.needs_match(normal) else own).append(normal)
        own = [each for each in own if each != ALWAYS]
        local.append(reduce(_both, own) if own else None)
        residual.append(reduce(_both, rest) if rest else None)
    for variable, condition in enumerate(residual):
        compiler.program(variable, condition)
    shifts = [
        part.shift
        for define in node.defines
        for part in walk(define.expression)
        if isinstance(part, At)
    ]
    return Conditions(
        node,
        automaton,
        steps_of(automaton),
        tuple(local),
        compiler.code(automaton),
        tuple(compiler.float_values),
        tuple(compiler.int_values),
        max([0, *(-shift for shift in shifts)]),
        max([0, *shifts]),
        tuple(compiler.constants),
        tuple(tuple(each) for each in compiler.distinct),
        tuple(compiler.origins),
    )


def steps_of(automaton: Automaton) -> Steps:
    """Return the automaton as arrays."""
    steps = [step for node in automaton.nodes for step in node.steps]
    counts = [len(node.steps) for node in automaton.nodes]
    absent = [sum(1 << variable for variable in step.absent) for step in steps]
    return Steps(
        first=frozen(np.cumsum([0, *counts], dtype=np.int64)),
        variable=_ints(step.variable for step in steps),
        target=_ints(step.target for step in steps),
        at_start=frozen(np.array([step.at_start for step in steps], np.bool_)),
        at_end=frozen(np.array([step.at_end for step in steps], np.bool_)),
        absent=frozen(np.array(absent, np.uint64)),
        node_variable=_ints(node.variable for node in automaton.nodes),
    )


def _ints(values: Iterable[int]) -> Int64s:
    return frozen(np.array(list(values), np.int64))


def _both(left: Expression, right: Expression) -> Expression:
    return Call("and", (left, right), BOOL)


@dataclass(frozen=True, slots=True)
class _Target:
    """A row of the match, and so many rows from there: variables as a set of bits."""

    variables: int
    edge: str
    offset: int
    shift: int


_CURRENT = "current"


@dataclass(frozen=True, slots=True)
class _Seen:
    """Something of the match that a condition reads: one entry of a remembered state."""

    kind: int
    register: int
    column: int = 0
    shift: int = 0
    by: int = op.PLAIN


_UNSEEABLE = _Seen(-1, -1)
"""Stands for state that is too much to be remembered."""


@dataclass(frozen=True, slots=True)
class _Chain:
    """Registers of the first or last rows of a set of variables, and of their variables."""

    variables: int
    edge: str
    register: int
    named: int
    width: int


@dataclass
class _Compiler:
    """Collects values, registers, constants and instructions of all conditions of a node."""

    node: MatchRecognize
    float_values: list[Expression] = field(default_factory=list)
    int_values: list[Expression] = field(default_factory=list)
    constants: list[Literal] = field(default_factory=list)
    distinct: list[list[Expression]] = field(default_factory=list)
    instructions: list[list[int]] = field(default_factory=list)
    origins: list[Expression] = field(default_factory=list)
    programs: list[int] = field(default_factory=lambda: [0])
    initial: list[int] = field(default_factory=list)
    initial_floats: list[float] = field(default_factory=list)
    chains: dict[tuple[int, str], _Chain] = field(default_factory=dict)
    updates: list[list[list[int]]] = field(default_factory=list)
    blocks: dict[tuple[object, ...], tuple[int, int]] = field(default_factory=dict)
    reads: list[set[_Seen]] = field(default_factory=list)
    reads_number: bool = False
    variable: int = 0

    def __post_init__(self) -> None:
        self.names = self.node.variables
        self.updates = [[] for _ in self.names]
        self.sets: dict[str | None, int] = {None: (1 << len(self.names)) - 1}
        for number, name in enumerate(self.names):
            self.sets[name] = 1 << number
        for name, members in self.node.subsets:
            self.sets[name] = sum(1 << self.names.index(each) for each in members)
        kinds = self.node.source.row.items()
        self.nothing = pa.RecordBatch.from_arrays(
            [pa.nulls(1, kind.arrow) for _, kind in kinds], names=[name for name, _ in kinds]
        )
        self._plan_chains()

    # What of a condition the row itself decides.

    def normalised(self, condition: Expression, variable: int) -> Expression:
        """Return the condition with every way to say "the tested row" spelled alike."""
        match condition:
            case At(variable=name, edge="last", offset=0) if self.sets[name] >> variable & 1:
                argument = condition.argument
                if condition.shift == 0:
                    argument = _named(argument, self.names[variable])
                return replace(condition, argument=argument, variable=None)
        return rebuild(condition, lambda part: self.normalised(part, variable))

    def needs_match(self, condition: Expression) -> bool:
        """Whether a condition looks at more than rows at fixed distances of the tested one."""
        for part in walk(condition):
            match part:
                case MatchAggregate() | MatchNumber():
                    return True
                case At(variable=None, edge="last", offset=0, shift=shift, argument=argument):
                    if shift != 0 and _reads_name(argument):
                        return True
                case At():
                    return True
        return False

    # Registers.

    def _plan_chains(self) -> None:
        """Give every set of variables registers for as many of its rows as conditions ask for."""
        widths: dict[tuple[int, str], int] = {}
        named: set[tuple[int, str]] = set()
        for target, reads_name in self._targets():
            chain = (target.variables, target.edge)
            widths[chain] = max(widths.get(chain, 0), target.offset + 1)
            if reads_name:
                named.add(chain)
        for (variables, edge), width in widths.items():
            register = self._registers(width, -1)
            second = self._registers(width, -1) if (variables, edge) in named else -1
            self.chains[variables, edge] = _Chain(variables, edge, register, second, width)
            code = op.LAST if edge == "last" else op.FIRST
            self._update(variables, lambda _: [code, -1, -1, register, -1, second, -1, width])  # noqa: B023

    def _targets(self) -> Iterator[tuple[_Target, bool]]:
        """Yield the rows that conditions look at, and whether at their variables too."""
        for variable, define in enumerate(self.node.defines):
            for part in conjuncts(define.expression):
                condition = self.normalised(part, variable)
                if not self.needs_match(condition):
                    continue
                for leaf in map(_as_leaf, walk(condition)):
                    if leaf is None:
                        continue
                    normal = self.normalised(leaf, variable)
                    assert isinstance(normal, At)
                    target = self.target(normal)
                    if target.edge != _CURRENT:
                        yield target, _reads_name(normal.argument)

    def target(self, at: At) -> _Target:
        """Return the row that a normalised leaf looks at."""
        if at.variable is None and at.edge == "last" and at.offset == 0:
            return _Target(self.sets[None], _CURRENT, 0, at.shift)
        return _Target(self.sets[at.variable], at.edge, at.offset, at.shift)

    def _registers(self, count: int, value: int) -> int:
        first = op.REGISTERS + len(self.initial)
        self.initial += [value] * count
        return first

    def _float_registers(self, count: int) -> int:
        first = len(self.initial_floats)
        self.initial_floats += [0.0] * count
        return first

    def _update(self, variables: int, of: Callable[[int], list[int]]) -> None:
        for variable in range(len(self.names)):
            if variables >> variable & 1:
                self.updates[variable].append(of(variable))

    # Programs.

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
        """Let jumps lead to here."""
        for jump in jumps:
            self.instructions[jump][1] = len(self.instructions)

    def emit(self, expression: Expression) -> None:
        """Append instructions that push the value of an expression."""
        leaf = _as_leaf(expression)
        if leaf is not None:
            expression = self.normalised(leaf, self.variable)
        leaves = [
            part for part in walk(expression) if isinstance(part, At | MatchAggregate | MatchNumber)
        ]
        targets = {self.target(leaf) if isinstance(leaf, At) else None for leaf in leaves}
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
        self.put(expression, code, 0, self._constants([literal]), 0, op.PLAIN)

    def _folded(self, expression: Expression) -> Literal:
        """Compute an expression without columns."""
        if isinstance(expression, Literal):
            return expression
        found = evaluate(expression, self.nothing)
        if pa.types.is_temporal(found.type):
            found = found.view(pa.int64())
        return Literal(found[0].as_py(), expression.type, expression.span)

    def _constants(self, literals: Sequence[Literal]) -> int:
        first = len(self.constants)
        self.constants += literals
        return first

    def _integer(self, value: int) -> int:
        return self._constants([Literal(value, INT64)])

    # Values at one row of the match.

    def _load(self, expression: Expression, target: _Target) -> None:
        register, by = self._row(target, reads_name=_reads_name(expression))
        is_float = expression.type == FLOAT64
        if by == op.PLAIN:
            column = self._value(self._at_row(expression, None))
            kind = op.KEY_LOAD_F if is_float else op.KEY_LOAD_I
            code = op.LOAD_F if is_float else op.LOAD_I
        else:
            each = [self._at_row(expression, name) for name in (*self.names, None)]
            if any(isinstance(part, Column) for one in each for part in walk(one)):
                column = self._value(*each)
                kind = op.KEY_LOAD_F if is_float else op.KEY_LOAD_I
                code = op.LOAD_F if is_float else op.LOAD_I
            else:
                column = self._constants([self._folded(one) for one in each])
                kind, code = op.KEY_NAMED, op.NAMED_F if is_float else op.NAMED_I
        self.put(expression, code, register, column, target.shift, by)
        if by == op.BY_PATH:
            self.reads[self.variable].add(_UNSEEABLE)
        elif register != op.CURRENT:
            seen = _Seen(kind, register, column, target.shift, by)
            if kind == op.KEY_NAMED:
                seen = _Seen(kind, register, 0, 0, by)
            self.reads[self.variable].add(seen)

    def _row(self, target: _Target, *, reads_name: bool) -> tuple[int, int]:
        """Return the register of a row and that of its variable."""
        if target.edge == _CURRENT:
            return op.CURRENT, op.BY_PATH if reads_name else op.PLAIN
        chain = self.chains[target.variables, target.edge]
        by = op.PLAIN
        if reads_name:
            by = chain.named + target.offset if target.shift == 0 else op.BY_PATH
        return chain.register + target.offset, by

    def _at_row(self, expression: Expression, name: str | None) -> Expression:
        """Return an expression over leaves of one row as an expression over that row."""
        if isinstance(expression, At):
            argument = _named(expression.argument, name)
            if evaluate(argument, self.nothing)[0].is_valid:
                # Where there is no row, there is no value either.
                here = Call("is null", (Column(TS, TIMESTAMP),), BOOL)
                parts = (here, Literal(None, argument.type), argument)
                return Call("case", parts, argument.type, expression.span)
            return argument
        return rebuild(expression, lambda part: self._at_row(part, name))

    def _value(self, *expressions: Expression) -> int:
        """Return the first of consecutive value columns."""
        columns = self.float_values if expressions[0].type == FLOAT64 else self.int_values
        if len(expressions) == 1 and expressions[0] in columns:
            return columns.index(expressions[0])
        columns += expressions
        return len(columns) - len(expressions)

    # What combines several rows.

    def _combine(self, expression: Expression) -> None:
        match expression:
            case MatchNumber():
                self.reads_number = True
                self.put(expression, op.NUMBER)
            case MatchAggregate():
                self._aggregate(expression)
            case Cast():
                self._cast(expression)
            case Call(function=function):
                _EMITTERS.get(function, _Compiler._refuse)(self, expression)
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
        for argument in call.arguments:
            self.emit(argument)
        of_floats, of_integers, option = _SIMPLE[call.function]
        kind = call.arguments[0].type
        self._refuse_text_arithmetic(call, kind)
        self.put(call, of_floats if kind == FLOAT64 else of_integers, option)

    def _refuse_text_arithmetic(self, call: Call, kind: DataType) -> None:
        if kind.kind in _TEXT and call.function in ("+", "-", "*", "%", "negate", "abs"):
            self._refuse(call)

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
        self.emit(cast.argument)
        if source == target:
            return
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
                    self.put(cast, op.CONST_F, 0, self._constants([literal]), 0, op.PLAIN)
                    self.put(cast, op.DIVIDE_F)
            case _:
                self._rescale(cast, source.scale, target)

    def _rescale(self, cast: Cast, scale: int, target: DataType) -> None:
        """Change the scale of a whole number or decimal, and see that it fits."""
        if target.scale > scale:
            power = self._integer(10 ** min(target.scale - scale, 18))
            self.put(cast, op.CONST_I, 0, power, 0, op.PLAIN)
            self.put(cast, op.MULTIPLY_I)
        elif target.scale < scale:
            self.put(cast, op.ROUND_DOWN, self._integer(10 ** min(scale - target.scale, 18)))
        if target.kind == "decimal" and target.precision <= 18:
            self.put(cast, op.BOUND, self._integer(10**target.precision - 1), int(cast.or_null))

    # Aggregates.

    def _aggregate(self, call: MatchAggregate) -> None:
        variables = self.sets[call.variable]
        function = call.function
        argument = call.argument
        if function == "count":
            if argument is not None and not call.distinct:
                # Only whether there is a value matters, not which.
                missing = Call("is null", (argument,), BOOL)
                argument = Call("case", (missing, Literal(None, BOOL), ALWAYS), BOOL)
            register, _ = self._block(op.COUNT, variables, argument, call.distinct, (1, 0))
            self.put(call, op.COUNTED, register)
            return
        assert argument is not None
        is_float = argument.type == FLOAT64
        if function in ("min", "max"):
            least = function == "min"
            of_floats = op.LEAST_F if least else op.GREATEST_F
            of_integers = op.LEAST_I if least else op.GREATEST_I
            update, size = (of_floats, (1, 1)) if is_float else (of_integers, (2, 0))
            register, first = self._block(update, variables, argument, False, size)
            self.put(call, op.BEST_F if is_float else op.BEST_I, register, first)
        elif function == "stddev":
            if not is_float:
                argument = Cast(argument, FLOAT64, call.span)
            size = (1, 4)
            register, first = self._block(op.ADD_SQUARES, variables, argument, call.distinct, size)
            self.put(call, op.DEVIATION, register, first)
        elif is_float:
            register, first = self._block(op.ADD_FLOATS, variables, argument, call.distinct, (1, 2))
            self.put(call, op.SUM_F if function == "sum" else op.AVG_F, register, first)
        else:
            register, _ = self._block(op.ADD_INTS, variables, argument, call.distinct, (3, 0))
            if function == "sum":
                self.put(call, op.SUM_I, register)
            else:
                power = Literal(10.0**argument.type.scale, FLOAT64)
                self.put(call, op.AVG_I, register, 0, self._constants([power]))

    def _block(
        self,
        update: int,
        variables: int,
        argument: Expression | None,
        distinct: bool,
        size: tuple[int, int],
    ) -> tuple[int, int]:
        """Return the registers of an aggregate, shared by those that are alike."""
        known = (update, variables, argument, distinct)
        if known not in self.blocks:
            register, first = self._registers(size[0], 0), self._float_registers(size[1])
            self.blocks[known] = register, first
            table = -1
            if distinct:
                table = len(self.distinct)
                self.distinct.append([])
            self._update(
                variables,
                lambda variable: self._adding(update, variable, argument, table, (register, first)),
            )
        register, first = self.blocks[known]
        reads = self.reads[self.variable]
        reads |= {_Seen(op.KEY_REGISTER, register + each) for each in range(size[0])}
        reads |= {_Seen(op.KEY_FLOAT, first + each) for each in range(size[1])}
        if distinct:
            reads.add(_UNSEEABLE)
        return register, first

    def _adding(
        self,
        update: int,
        variable: int,
        argument: Expression | None,
        table: int,
        registers: tuple[int, int],
    ) -> list[int]:
        """Return the update of an aggregate by a row of one variable."""
        register, first = registers
        if argument is None:
            return [update, -1, -1, register, first, -1, -1, 0]
        value = _named(argument, self.names[variable])
        column = self._value(value)
        width = 0
        if table >= 0:
            width = sum(map(len, self.distinct[:table])) + len(self.distinct[table])
            self.distinct[table].append(value)
        # Where the validity of whole numbers starts is known once all floats are.
        kind = -2 if value.type == FLOAT64 else -3
        return [update, column, kind, register, first, -1, table, width]

    # All together.

    def code(self, automaton: Automaton) -> Code:
        """Return everything as arrays."""
        updates = [list(each) for of_variable in self.updates for each in of_variable]
        for each in updates:
            if each[2] in (-2, -3):
                each[2] = each[1] + (0 if each[2] == -2 else len(self.float_values))
        seen = _Liveness(self, automaton).run()
        keys = [sorted(each - {_UNSEEABLE}, key=_seen_order) for each in seen]
        flat = [
            (each.kind, each.register, each.column, each.shift, each.by)
            for of_node in keys
            for each in of_node
        ]
        return Code(
            instructions=_matrix(self.instructions, 5),
            updates=_matrix(updates, 8),
            keys=_matrix(flat, 5),
            by_variable=_pairs(self.programs, _cumulated(map(len, self.updates))),
            by_node=_pairs(
                _cumulated(map(len, keys)), [*(_UNSEEABLE not in each for each in seen), False]
            ),
            registers=_ints(self.initial),
            float_registers=len(self.initial_floats),
            reads_number=self.reads_number,
            keeps_distinct=bool(self.distinct),
        )


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

_EMITTERS: dict[str, Callable[[_Compiler, Call], None]] = {
    **dict.fromkeys(_SIMPLE, _Compiler._simple),
    "and": _Compiler._logical,
    "or": _Compiler._logical,
    "in": _Compiler._is_in,
    "nullif": _Compiler._nullif,
    "case": _Compiler._case,
    "coalesce": _Compiler._coalesce,
    "greatest": _Compiler._best,
    "least": _Compiler._best,
}


class _Liveness:
    """What of a match the conditions that may come after each node can still read."""

    def __init__(self, compiler: _Compiler, automaton: Automaton) -> None:
        self.reads = compiler.reads
        self.automaton = automaton
        self.chain_of: dict[int, _Chain] = {}
        for chain in compiler.chains.values():
            for each in range(chain.width):
                self.chain_of[chain.register + each] = chain

    def run(self) -> list[set[_Seen]]:
        """Return it for every node: go backwards until nothing new turns up."""
        nodes = self.automaton.nodes
        live: list[set[_Seen]] = [set() for _ in nodes]
        if not any(self.reads):
            return live
        before: list[set[int]] = [set() for _ in nodes]
        for number, node in enumerate(nodes):
            for step in node.steps:
                if step.variable >= 0:
                    before[step.target].add(number)
        waiting = list(range(len(nodes)))
        queued = set(waiting)
        while waiting:
            number = waiting.pop()
            queued.discard(number)
            found: set[_Seen] = set()
            for step in nodes[number].steps:
                if step.variable >= 0:
                    after = self.reads[step.variable] | live[step.target]
                    found |= self._before(after, step.variable)
                for variable in step.absent:
                    found |= self._before(self.reads[variable], variable)
            if not found <= live[number]:
                live[number] |= found
                fresh = before[number] - queued
                waiting += fresh
                queued |= fresh
        return live

    def _before(self, after: set[_Seen], variable: int) -> set[_Seen]:
        """Return what decides, before a row is taken as a variable, what is seen after it."""
        found: set[_Seen] = set()
        for seen in after:
            chain = self.chain_of.get(seen.register) if seen.kind in _CHAINED else None
            if chain is None or not chain.variables >> variable & 1:
                found.add(seen)
            elif chain.edge == "first":
                found.add(seen)
                upto = range(chain.register, seen.register + 1)
                found |= {_Seen(op.KEY_PRESENT, each) for each in upto}
            elif seen.register > chain.register:
                by = seen.by if seen.by < 0 else seen.by - 1
                found.add(replace(seen, register=seen.register - 1, by=by))
        return found


_CHAINED = (op.KEY_PRESENT, op.KEY_LOAD_F, op.KEY_LOAD_I, op.KEY_NAMED)


def _seen_order(seen: _Seen) -> tuple[int, ...]:
    return seen.kind, seen.register, seen.column, seen.shift, seen.by


def _cumulated(counts: Iterable[int]) -> list[int]:
    return [0, *accumulate(counts)]


def _pairs(left: Sequence[int], right: Sequence[int]) -> Int64s:
    return _matrix(list(zip(left, right, strict=True)), 2)


def _matrix(rows: Sequence[Sequence[int]], width: int) -> Int64s:
    return frozen(np.array(rows, np.int64).reshape(len(rows), width))


def _reads_name(expression: Expression) -> bool:
    return any(isinstance(part, Classifier) for part in walk(expression))


def _named(expression: Expression, name: str | None) -> Expression:
    """Return an expression with the variable of its row filled in."""
    if isinstance(expression, Classifier):
        return Literal(name, STRING, expression.span)
    return rebuild(expression, lambda part: _named(part, name))


def _as_leaf(expression: Expression) -> At | None:
    """Return what is computed at one row of a match; the aggregates FIRST and LAST pick one."""
    match expression:
        case At():
            return expression
        case MatchAggregate(function="first" | "last" as edge, argument=argument) if argument:
            return At(
                argument,
                expression.variable,
                "first" if edge == "first" else "last",
                span=expression.span,
            )
    return None


# Values as arrays.


def _with_absent(expression: Expression, rows: pa.RecordBatch) -> pa.Array:
    """Return an expression's values, and its value where there is no row."""
    nothing = pa.RecordBatch.from_arrays(
        [pa.nulls(1, kind) for kind in rows.schema.types], names=rows.schema.names
    )
    return pa.concat_arrays([evaluate(expression, rows), evaluate(expression, nothing)])


def _integers(column: pa.Array, expression: Expression) -> Int64s:
    """Return whole numbers, times, truth values, or decimals without their point."""
    if not pa.types.is_decimal(column.type):
        return int64s(column)
    high, low = decimal_halves(column)
    if np.any(high != low >> 63):
        raise _too_long(expression)
    return low


def _too_long(expression: Expression) -> EvaluationError:
    message = f"{render(expression)} has more digits than a condition over several rows can take"
    return EvaluationError(message, span=expression.span, hint="cast it to double")


@dataclass(frozen=True, slots=True)
class _Ranks:
    """Text as places in one sorted dictionary, by value column; and all constants."""

    columns: dict[int, Int64s]
    constants: Int64s


def _ranked(columns: Sequence[pa.Array], constants: Sequence[Literal]) -> _Ranks:
    numbers = np.array([_constant_as_int(each) for each in constants], np.int64)
    ranks: dict[int, Int64s] = {}
    for kind in _TEXT:
        arrow = pa.string() if kind == "string" else pa.binary()
        places = [place for place, column in enumerate(columns) if column.type == arrow]
        written = [place for place, each in enumerate(constants) if each.type.kind == kind]
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
    return _pairs(numbers.tolist(), [each.value is not None for each in constants])


def _as_float(literal: Literal) -> float:
    return float(literal.value) if isinstance(literal.value, int | float) else 0.0


def _constant_as_int(literal: Literal) -> int:
    value = literal.value
    if isinstance(value, Decimal):
        scaled = int(value.scaleb(literal.type.scale))
        if not -(2**63) <= scaled < 2**63:
            raise _too_long(literal)
        return scaled
    return int(value) if isinstance(value, int) else 0


def _distinct_codes(
    groups: Sequence[Sequence[Expression]], rows: pa.RecordBatch
) -> tuple[Int64s, Int64s]:
    """Number the distinct values of each group of expressions, and say where numbers start."""
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
