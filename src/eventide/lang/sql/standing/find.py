"""Find standing queries: those over windows in square brackets, or inside ISTREAM."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from eventide.lang.sql.ctes import inline_cte, visible_cte
from eventide.lang.sql.names.scope import sources_of
from eventide.lang.sql.standing.clause import report_of, window_of_table


def is_standing(query: exp.Expr) -> bool:
    """Whether a query is a standing one; a query around ISTREAM is not."""
    match query:
        case exp.Subquery():
            return report_of(query) is None and is_standing(query.this)
        case exp.SetOperation():
            return is_standing(query.this) or is_standing(query.expression)
        case exp.Select():
            return has_windows(query) or any(map(is_standing, _inner(query)))
    return False


def has_windows(query: exp.Expr) -> bool:
    """Whether a SELECT has windows of its own, not only in the queries that it reads."""
    match query:
        case exp.Subquery():
            return report_of(query) is None and has_windows(query.this)
        case exp.SetOperation():
            return has_windows(query.this) or has_windows(query.expression)
        case exp.Select():
            tables = any(window_of_table(each) is not None for each in sources_of(query))
            return tables or any(is_standing(inner) for _, inner in existence_tests(query))
    return False


def _inner(select: exp.Select) -> Iterator[exp.Expr]:
    yield from (each for each in sources_of(select) if isinstance(each, exp.Subquery))


def conjuncts_of(node: exp.Expr | None) -> Iterator[exp.Expr]:
    """Yield the parts of a chain of ANDs, left to right."""
    match node:
        case None:
            return
        case exp.Paren():
            yield from conjuncts_of(node.this)
        case exp.And():
            yield from conjuncts_of(node.this)
            yield from conjuncts_of(node.expression)
        case _:
            yield node


def existence_tests(select: exp.Select) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """Yield the conditions of WHERE that ask whether a query has rows, each with that query."""
    where = select.args.get("where")
    for part in conjuncts_of(None if where is None else where.this):
        inner = asked_query(part)
        if inner is not None:
            yield part, inner


def asked_query(part: exp.Expr) -> exp.Expr | None:
    """Return the query of EXISTS (…), of x IN (…), or of NOT before one of them."""
    test = part
    while isinstance(test, exp.Not | exp.Paren):
        test = test.this
    if isinstance(test, exp.Exists):
        return test.this if isinstance(test.this, exp.Query) else None
    query = test.args.get("query") if isinstance(test, exp.In) else None
    return query.unnest() if isinstance(query, exp.Subquery) else query


def inline_standing(query: exp.Expr) -> None:
    """Inline each CTE that is a standing query, or that one reads."""
    found: exp.Table | None = None
    while (found := next(_readers(query), None)) is not None:
        inline_cte(query, found)


def _readers(query: exp.Expr) -> Iterator[exp.Table]:
    for table in query.find_all(exp.Table):
        cte = visible_cte(table)
        if cte is not None and (is_standing(cte.this) or _stands_in_one(table)):
            yield table


def _stands_in_one(node: exp.Expr) -> bool:
    """Whether a node is part of a standing query."""
    parent = node.parent
    while parent is not None:
        reported = isinstance(parent, exp.Subquery) and report_of(parent) is not None
        if reported or (isinstance(parent, exp.Select) and is_standing(parent)):
            return True
        if isinstance(parent, exp.CTE):
            return False
        parent = parent.parent
    return False
