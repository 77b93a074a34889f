"""The clauses around a block: ORDER BY, LIMIT, OFFSET and DISTINCT."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from eventide.errors import BindError
from eventide.lang.sql.block import Block, expand_stars
from eventide.lang.sql.names.columns import identifier, item_name
from eventide.lang.sql.names.scope import Scope, refuse
from eventide.lang.sql.spans import span_of
from eventide.plan.column_names import unique_names

_MOST_ROWS = 2**63 - 1


@dataclass(frozen=True)
class OuterClauses:
    """The clauses around a block.

    `order` has, for each item of ORDER BY, the name of an output column, or None if the next of
    `extras` has to be computed for it.
    """

    clauses: dict[str, exp.Expr]
    order: list[tuple[exp.Ordered, str | None]]

    @property
    def extras(self) -> list[exp.Expr]:
        """The expressions of ORDER BY that are not columns of the SELECT list."""
        return [item.this for item, name in self.order if name is None]

    @property
    def is_empty(self) -> bool:
        """Whether there are no clauses around the block."""
        return not self.clauses and not self.order

    def check(self, block: Block) -> None:
        """Refuse to order distinct rows by columns that they do not have."""
        hidden = [name for name in block.extra if name not in block.names]
        if "distinct" in self.clauses and hidden:
            message = "SELECT DISTINCT can be ordered by its own columns only"
            place = next(item for item, name in self.order if name is None)
            raise BindError(message, span=span_of(place), hint="add it to the SELECT list")

    def put(self, rest: exp.Select, block: Block) -> None:
        """Add the clauses to the SELECT that reads the block."""
        for key, clause in self.clauses.items():
            rest.set(key, clause)
        extra = iter(block.extra)
        items = []
        for item, name in self.order:
            ordered = item.copy()
            ordered.set("this", exp.column(identifier(name or next(extra))))
            items.append(ordered)
        if items:
            rest.set("order", exp.Order(expressions=items))


def around_of(select: exp.Select, scope: Scope) -> OuterClauses:
    """Return the clauses around the block that a SELECT would be."""
    clauses = {
        key: select.args[key] for key in ("limit", "offset", "distinct") if select.args.get(key)
    }
    for key in ("limit", "offset"):
        if key in clauses and clauses[key].find(exp.Query):
            refuse(f"a query inside {key.upper()}", clauses[key], "write the number itself")
    distinct = clauses.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        refuse("DISTINCT ON", select, "put it in a SELECT around this one")
    order = select.args.get("order")
    names = [item_name(node, [scope]) for node in expand_stars(select.expressions, scope)]
    items = order.expressions if order is not None else []
    return OuterClauses(clauses, [(item, output_column(item.this, names)) for item in items])


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


def output_column(node: exp.Expr, names: list[str]) -> str | None:
    """Return the output column that an item of ORDER BY means, or None.

    `names` are the names that the SELECT list gives; several items may have the same.
    """
    if isinstance(node, exp.Literal) and node.is_int:
        place = int(node.name)
        if not 1 <= place <= len(names):
            message = f"ORDER BY {place} points outside the SELECT list"
            raise BindError(message, span=span_of(node), hint=f"it has {len(names)} columns")
        return unique_names(names)[place - 1]
    if isinstance(node, exp.Column) and not node.table:
        # The first of several columns with the same name keeps it.
        return next((name for name in names if name.lower() == node.name.lower()), None)
    return None
