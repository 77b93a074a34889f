"""The clauses around a block: ORDER BY, LIMIT, OFFSET and DISTINCT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from eventide.errors import BindError
from eventide.lang.sql.names.columns import identifier
from eventide.lang.sql.names.scope import refuse
from eventide.lang.sql.select_list import SelectList
from eventide.lang.sql.spans import span_of

_MOST_ROWS = 2**63 - 1


@dataclass(frozen=True)
class OuterClauses:
    """The clauses around a block; `order` has the column of each item of ORDER BY."""

    clauses: Mapping[str, exp.Expr] = field(default_factory=dict)
    order: Sequence[tuple[exp.Ordered, str]] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there are no clauses around the block."""
        return not self.clauses and not self.order

    def put(self, rest: exp.Select) -> None:
        """Add the clauses to the SELECT that reads the block."""
        for key, clause in self.clauses.items():
            rest.set(key, clause)
        items = []
        for item, name in self.order:
            ordered = item.copy()
            ordered.set("this", exp.column(identifier(name)))
            items.append(ordered)
        if items:
            rest.set("order", exp.Order(expressions=items))


NOTHING_AROUND = OuterClauses()


def around_of(select: exp.Select, columns: SelectList) -> OuterClauses:
    """Return the clauses around a block with some columns."""
    clauses = {
        key: select.args[key] for key in ("limit", "offset", "distinct") if select.args.get(key)
    }
    for key in ("limit", "offset"):
        if key in clauses and clauses[key].find(exp.Query):
            refuse(f"a query inside {key.upper()}", clauses[key], "write the number itself")
    distinct = clauses.get("distinct")
    if distinct is not None:
        if distinct.args.get("on"):
            refuse("DISTINCT ON", select, "put it in a SELECT around this one")
        columns.check_distinct()
    return OuterClauses(clauses, columns.order)


def check_limits(query: exp.Expr) -> None:
    """Refuse LIMIT and OFFSET that are not a number of rows, anywhere in a query."""
    for clause in query.find_all(exp.Limit, exp.Offset):
        count = clause.expression.unnest()
        plain = isinstance(count, exp.Literal)
        if plain and count.is_int and int(count.name) <= _MOST_ROWS:
            continue
        if plain or isinstance(count, exp.Neg):
            word = clause.key.upper()
            message = f"{word} takes a whole number of rows, up to {_MOST_ROWS}"
            raise BindError(message, span=span_of(clause), hint=f"write {word} 10")
