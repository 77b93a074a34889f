"""Names in front of a dot: `c.car` and `c.*` need a `c` in FROM, here or in a query around."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from eventide.errors import BindError
from eventide.lang.sql.names.scope import refuse, sources_of
from eventide.lang.sql.patterns.clause import RowPattern
from eventide.lang.sql.situations.clause import SituationTable
from eventide.lang.sql.spans import span_of
from eventide.plan.bind import suggestion


def check_qualifiers(query: exp.Expr) -> None:
    """Refuse names in front of a dot that nothing in FROM has, and COUNT(t.*)."""
    # A name in front of a dot may also be a column that holds a struct.
    columns = {each.alias.lower() for each in query.find_all(exp.Alias, exp.PropertyEQ)}
    for alias in query.find_all(exp.TableAlias):
        columns |= {each.name.lower() for each in alias.columns}
    for column in query.find_all(exp.Column):
        name = qualifier(column)
        if not name or column.table.lower() in columns:
            continue
        select = column.find_ancestor(exp.Select)
        if select is None:
            continue
        star = isinstance(column.this, exp.Star)
        known = list(_read(select) if star else _visible(select))
        if name.lower() in {each.lower() for each in known} or "" in known:
            if star:
                _refuse_counted(column)
            continue
        message = f"no stream {name!r} in this FROM"
        hint = suggestion(name, known, "stream")
        if len(known) == 1:
            hint = f"its columns are {known[0]}.…, or plain"
        raise BindError(message, span=span_of(column), hint=hint)


def qualifier(column: exp.Column) -> str:
    """Return what stands in front of a column, with all its dots.

    >>> qualifier(exp.column("car", table="cars", db="main"))
    'main.cars'
    """
    return ".".join(part.name for part in column.parts[:-1])


def _refuse_counted(column: exp.Column) -> None:
    """COUNT(t.*) counts rows on one engine, and rows without nulls on another."""
    if isinstance(column.parent, exp.Count):
        hint = f"write COUNT(*), or COUNT({column.table}.ts) for the rows that have a ts"
        refuse(f"COUNT({qualifier(column)}.*) has two readings", column, hint)


def check_left_out(star: exp.Expr, known: Iterable[str]) -> None:
    """Refuse `* EXCLUDE (x)` if the star does not include x."""
    names = list(known)
    folded = {each.lower() for each in names}
    for left_out in star.args.get("except_") or ():
        if left_out.name.lower() not in folded:
            message = f"no column {left_out.name!r} to exclude"
            hint = suggestion(left_out.name, names, "column")
            raise BindError(message, span=span_of(left_out), hint=hint)


def _visible(select: exp.Expr) -> Iterator[str]:
    """Yield the names of what a SELECT and those around it read; "" for a source without a name."""
    around: exp.Expr | None = select
    while around is not None:
        if isinstance(around, exp.Select):
            yield from _read(around)
        around = around.parent


def _read(select: exp.Select) -> Iterator[str]:
    yield from map(_name, sources_of(select))
    yield from (each.alias for each in select.args.get("laterals") or ())


def _name(source: exp.Expr) -> str:
    named = source.alias_or_name
    if not named and isinstance(source, RowPattern | SituationTable):
        return _name(source.this)
    return str(named)
