"""Standing plans to test with: short ways to write them, random ones, and their bags by DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import duckdb
from hypothesis import strategies as st

from eventide.plan.expressions import (
    Aggregate,
    Call,
    Column,
    Expression,
    Literal,
    Named,
    NamedAggregate,
)
from eventide.plan.nodes import Filter, Project, Scan
from eventide.plan.standing.joins import AsOfJoin, Existence, OuterJoin, WindowJoin
from eventide.plan.standing.nodes import Difference, Distinct, GroupAggregate, Merge, Standing
from eventide.plan.standing.windows import (
    RangeWindow,
    RowsWindow,
    StreamWindow,
    Unbounded,
    Windowed,
)
from eventide.plan.tree import Plan
from eventide.schema import BOOL, INT64, TIMESTAMP

S = 1_000_000
MINUTE = RangeWindow(60 * S)
COLUMNS = (("ts", TIMESTAMP), ("k", INT64), ("n", INT64))
Row = tuple[int | None, ...]
Bags = Mapping[str, list[Row]]


def window(alias: str, of: StreamWindow = MINUTE, *, internal: bool = False) -> Windowed:
    return Windowed(Scan(f"stream_{alias}", COLUMNS), alias, of, internal=internal)


def latest(alias: str) -> Windowed:
    return window(alias, RowsWindow(1, ("k",)))


def everything(alias: str) -> Windowed:
    return window(alias, Unbounded())


def column(name: str) -> Column:
    return Column(name, TIMESTAMP if name.endswith(".ts") else INT64)


def call(function: str, left: Expression | str, right: Expression | str | int) -> Call:
    first = column(left) if isinstance(left, str) else left
    match right:
        case str():
            return Call(function, (first, column(right)), BOOL)
        case int():
            return Call(function, (first, Literal(right, INT64)), BOOL)
    return Call(function, (first, right), BOOL)


def join(*sources: Plan, on: str = "k", condition: Expression | None = None) -> WindowJoin:
    keys = tuple((column(_ending(source, on)),) for source in sources)
    return WindowJoin(sources, keys, condition)


def outer_join(
    left: Plan, right: Plan, keeps: tuple[bool, bool], condition: Expression | None = None
) -> OuterJoin:
    keys = (column(_ending(left, "k")),), (column(_ending(right, "k")),)
    return OuterJoin((left, right), keys, keeps, condition)


def existence(left: Plan, right: Plan, *, negated: bool = True, on: str = "k") -> Existence:
    keys = (column(_ending(left, on)),), (column(_ending(right, on)),)
    return Existence(left, right, *keys, negated=negated)


def as_of(left: Plan, right: Plan) -> AsOfJoin:
    keys = (column(_ending(left, "k")),), (column(_ending(right, "k")),)
    return AsOfJoin(left, right, *keys)


def named(source: Plan, name: str) -> Project:
    """Its keys and numbers, under another name."""
    items = [Named(f"{name}.{each}", column(_ending(source, each))) for each in ("k", "n")]
    return Project(source, tuple(items))


def counted(source: Plan, by: str) -> GroupAggregate:
    count = NamedAggregate("g.n", Aggregate("count", None, INT64))
    return GroupAggregate(source, (Named("g.k", column(by)),), (count,))


def _ending(source: Plan, name: str) -> str:
    return next(each for each in source.row if each.endswith(f".{name}"))


@st.composite
def plans(draw: st.DrawFn, aliases: Sequence[str] = ("a", "b", "c", "d")) -> Plan:
    """Plans over windows with these aliases, each once."""
    numbers = iter(range(100))
    return _plan(draw, list(aliases), numbers)


def _plan(draw: st.DrawFn, aliases: list[str], numbers: Any) -> Plan:  # noqa: ANN401
    if len(aliases) == 1:
        source: Plan = window(aliases[0])
    else:
        cut = draw(st.integers(1, len(aliases) - 1))
        left, right = (_plan(draw, part, numbers) for part in (aliases[:cut], aliases[cut:]))
        kinds = ["join", "join", "outer", "exists", "not exists", "except", "union"]
        match draw(st.sampled_from(kinds)):
            case "join":
                apart = draw(st.none() | st.just("other") | st.just("single"))
                one = draw(st.sampled_from(_numeric(left)))
                two = draw(st.sampled_from(_numeric(right)))
                condition = {
                    None: None,
                    "other": call("<=", one, two),
                    "single": call("and", call("<=", one, 1), call("<>", one, two)),
                }[apart]
                source = join(left, right, on=draw(st.sampled_from("kn")), condition=condition)
            case "outer":
                names = [draw(st.sampled_from(_numeric(side))) for side in (left, right)]
                condition = draw(st.none() | st.just(call("<=", *names)))
                keeps = draw(st.sampled_from([(True, False), (False, True), (True, True)]))
                source = outer_join(left, right, keeps, condition)
            case "except":
                name = f"x{next(numbers)}"
                source = Difference(named(left, name), named(right, name))
            case "union":
                name = f"x{next(numbers)}"
                source = Merge((named(left, name), named(right, name)))
            case word:
                source = existence(left, right, negated=word == "not exists")
    match draw(st.sampled_from(["as it is", "as it is", "filter", "distinct", "named", "counted"])):
        case "filter":
            return Filter(source, draw(_conditions(_numeric(source))))
        case "distinct":
            return Distinct(source)
        case "named":
            return named(source, f"y{next(numbers)}")
        case "counted":
            inner = f"z{next(numbers)}"
            groups = counted(source, draw(st.sampled_from(_numeric(source))))
            renamed = (Named(f"{inner}.k", column("g.k")), Named(f"{inner}.n", column("g.n")))
            return Filter(Project(groups, renamed), draw(_conditions([f"{inner}.k", f"{inner}.n"])))
    return source


def _numeric(source: Plan) -> list[str]:
    return [name for name, kind in source.row.items() if kind == INT64]


def _conditions(names: list[str]) -> st.SearchStrategy[Expression]:
    comparisons = st.sampled_from(["=", "<>", "<", ">=", "is distinct from"])
    columns = st.sampled_from(names)
    single = st.builds(call, comparisons, columns, st.integers(0, 2))
    paired = st.builds(call, comparisons, columns, columns)
    parts = st.lists(single | paired, min_size=1, max_size=3)
    return parts.map(_all_of)


def _all_of(parts: Sequence[Expression]) -> Expression:
    first, *others = parts
    for part in others:
        first = Call("and", (first, part), BOOL)
    return first


VALUES = st.none() | st.integers(0, 2)
BAGS = st.fixed_dictionaries(
    {alias: st.lists(st.tuples(st.just(0), VALUES, VALUES), max_size=6) for alias in "abcd"}
)


@cache
def connected() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    # Of so few rows nothing is gained by looking for a better plan.
    connection.execute("PRAGMA disable_optimizer")
    return connection


def bag_of(plan: Plan, bags: Bags) -> Counter[Row]:
    """The answer of a plan over what its windows hold, by DuckDB."""
    tables = ", ".join(_table(alias, rows) for alias, rows in bags.items())
    found = connected().execute(f"WITH {tables} {sql_of(plan)}").fetchall()
    return Counter(found)


def _table(alias: str, rows: list[Row]) -> str:
    names = ", ".join(f'"{alias}.{name}"' for name, _ in COLUMNS)
    shown = ["NULL" if value is None else str(value) for row in rows for value in row]
    lines = [", ".join(shown[i : i + 3]) for i in range(0, len(shown), 3)]
    values = ", ".join(f"({line})" for line in lines or ["0, 0, 0"])
    kept = "" if rows else " WHERE FALSE"
    return f"{alias}({names}) AS (SELECT * FROM (VALUES {values}) AS v{kept})"


def sql_of(plan: Plan) -> str:
    match plan:
        case Standing(source=source):
            return sql_of(source)
        case Windowed(alias=alias):
            return f"SELECT * FROM {alias}"
        case Filter(source=source, condition=condition):
            return f"SELECT * FROM ({sql_of(source)}) WHERE {_text(condition)}"
        case Project(source=source, items=items):
            shown = ", ".join(f'{_text(item.expression)} AS "{item.name}"' for item in items)
            return f"SELECT {shown} FROM ({sql_of(source)})"
        case (
            WindowJoin(sources=sources, keys=keys, condition=condition)
            | OuterJoin(sources=sources, keys=keys, condition=condition)
        ):
            parts = [f"({sql_of(each)}) s{i}" for i, each in enumerate(sources)]
            equal = [
                f"{_text(one)} = {_text(other)}"
                for each in keys[1:]
                for one, other in zip(keys[0], each, strict=True)
            ]
            on = " AND ".join([*equal, *([] if condition is None else [_text(condition)])])
            if isinstance(plan, OuterJoin):
                return f"SELECT * FROM {parts[0]} {plan.word} JOIN {parts[1]} ON {on}"
            return f"SELECT * FROM {', '.join(parts)} WHERE {on}"
        case Existence(left=left, right=right, left_keys=left_keys, right_keys=right_keys):
            pairs = zip(left_keys, right_keys, strict=True)
            on = " AND ".join(f"l.{_text(one)} = r.{_text(other)}" for one, other in pairs)
            found = f"EXISTS (SELECT 1 FROM ({sql_of(right)}) r WHERE {on})"
            return f"SELECT * FROM ({sql_of(left)}) l WHERE {'NOT ' if plan.negated else ''}{found}"
        case Difference(left=left, right=right):
            return f"({sql_of(left)}) EXCEPT ALL ({sql_of(right)})"
        case Merge(sources=sources):
            return " UNION ALL ".join(f"({sql_of(each)})" for each in sources)
        case Distinct(source=source):
            return f"SELECT DISTINCT * FROM ({sql_of(source)})"
        case GroupAggregate(source=source, keys=keys):
            (key,) = keys
            shown = f'{_text(key.expression)} AS "{key.name}", COUNT(*) AS "g.n"'
            return f"SELECT {shown} FROM ({sql_of(source)}) GROUP BY {_text(key.expression)}"
    raise AssertionError(plan)


def _text(expression: Expression) -> str:
    match expression:
        case Column(name=name):
            return f'"{name}"'
        case Literal(value=value):
            return str(value)
        case Call(function=name, arguments=(left, right)):
            return f"({_text(left)} {name} {_text(right)})"
    raise AssertionError(expression)
