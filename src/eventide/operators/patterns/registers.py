"""The registers of a match: its first and last rows, and running aggregates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from eventide.kernels.patterns import code as op
from eventide.operators.patterns.leaves import CURRENT, Target, VariableSets, named
from eventide.operators.patterns.values import ConditionValues, Form
from eventide.plan.expressions import Expression
from eventide.schema import FLOAT64


@dataclass(frozen=True, slots=True)
class Chain:
    """Registers of the first or last rows of a set of variables, and of their variables."""

    variables: int
    edge: str
    register: int
    named: int
    width: int


@dataclass(frozen=True, slots=True)
class Update:
    """The update of registers when a row is taken; -1 stands for none.

    `value` is a column of floats or of whole numbers. `second` are the registers of the variables
    of a chain or of a picked row, or a second value. `width` is that of a chain, or the column of
    codes of a distinct aggregate; `codes` is that of a tree.
    """

    operation: int
    register: int
    float_register: int = -1
    value: int = -1
    of_floats: bool = False
    second: int = -1
    distinct: int = -1
    width: int = 0
    tree: int = -1
    codes: int = 0

    def operands(self, floats: int) -> tuple[int, ...]:
        """Return the update as a row of `Code.updates`: validity has columns of floats first."""
        valid = self.value
        if self.value >= 0 and not self.of_floats:
            valid += floats
        return (
            self.operation,
            self.value,
            valid,
            self.register,
            self.float_register,
            self.second,
            self.distinct,
            self.width,
            self.tree,
            self.codes,
        )


@dataclass(frozen=True, slots=True)
class Sought:
    """An aggregate that needs registers: how it is updated, by what, and how many it needs.

    `form` is that of its tree, `second` the second value of a pair. `picks` asks for registers of
    the row that has the extreme.
    """

    operation: int
    variables: int
    argument: Expression | None
    size: tuple[int, int]
    distinct: bool = False
    form: Form | None = None
    second: Expression | None = None
    picks: bool = False


@dataclass(frozen=True, slots=True)
class RegisterBlock:
    """The first registers of an aggregate, its tree, and the register of the row it picks."""

    register: int
    first: int
    tree: int = -1
    picked: int = -1


@dataclass(slots=True)
class Registers:
    """Collects the registers that conditions need, and how rows of each variable update them.

    `initial` are the registers before the first row, `owners` the sets of variables they belong to,
    `float_owners` those of registers of floats.
    """

    sets: VariableSets
    values: ConditionValues
    initial: list[int] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    float_owners: list[int] = field(default_factory=list)
    updates: list[list[Update]] = field(init=False)
    chains: dict[tuple[int, str], Chain] = field(default_factory=dict)
    blocks: dict[Sought, RegisterBlock] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.updates = [[] for _ in self.sets.names]

    def add(self, count: int, value: int, variables: int) -> int:
        """Return the first of that many new registers."""
        first = op.REGISTERS + len(self.initial)
        self.initial += [value] * count
        self.owners += [variables] * count
        return first

    def add_chains(self, targets: Iterable[tuple[Target, bool]]) -> None:
        """Give every set of variables registers for as many of its rows as conditions read."""
        widths: dict[tuple[int, str], int] = {}
        with_names: set[tuple[int, str]] = set()
        for target, reads_name in targets:
            key = (target.variables, target.edge)
            widths[key] = max(widths.get(key, 0), target.offset + 1)
            if reads_name:
                with_names.add(key)
        for (variables, edge), width in widths.items():
            register = self.add(width, -1, variables)
            names = self.add(width, -1, variables) if (variables, edge) in with_names else -1
            self.chains[variables, edge] = Chain(variables, edge, register, names, width)
            operation = op.LAST if edge == "last" else op.FIRST
            update = Update(operation, register, second=names, width=width)
            for variable in self.sets.members(variables):
                self.updates[variable].append(update)

    def row(self, target: Target, *, reads_name: bool) -> tuple[int, int]:
        """Return the register of a row and that of its variable."""
        if target.edge == CURRENT:
            return op.CURRENT, op.BY_PATH if reads_name else op.PLAIN
        chain = self.chains[target.variables, target.edge]
        by = op.PLAIN
        if reads_name:
            by = chain.named + target.offset if target.shift == 0 else op.BY_PATH
        return chain.register + target.offset, by

    def block(self, sought: Sought) -> RegisterBlock:
        """Return the registers of an aggregate; equal aggregates share them."""
        if sought in self.blocks:
            return self.blocks[sought]
        variables, size = sought.variables, sought.size
        members = self.sets.members(variables)
        found = RegisterBlock(
            self.add(size[0], 0, variables),
            len(self.float_owners),
            -1 if sought.form is None else self.values.count(sought.form, len(members)),
            self.add(2, -1, variables) if sought.picks else -1,
        )
        self.float_owners += [variables] * size[1]
        self.blocks[sought] = found
        distinct = self.values.count("distinct", len(members)) if sought.distinct else -1
        for variable in members:
            update = Update(sought.operation, found.register, found.first, second=found.picked)
            if sought.argument is not None:
                name = self.sets.names[variable]
                value = named(sought.argument, name)
                update = self._adding(update, value, distinct, found.tree)
                if sought.second is not None:
                    place = self.values.place(named(sought.second, name))
                    update = replace(update, second=place)
            self.updates[variable].append(update)
        return found

    def _adding(self, update: Update, value: Expression, distinct: int, tree: int) -> Update:
        """Return the update of an aggregate by a value, with what counts it."""
        return replace(
            update,
            value=self.values.place(value),
            of_floats=value.type == FLOAT64,
            distinct=distinct,
            width=self._codes(distinct, value),
            tree=tree,
            codes=self._codes(tree, value),
        )

    def _codes(self, table: int, value: Expression) -> int:
        """Return the number of the codes of a value in a table, which it is added to."""
        if table < 0:
            return 0
        counted = self.values.counted[table]
        counted.expressions.append(value)
        return counted.first + len(counted.expressions) - 1
