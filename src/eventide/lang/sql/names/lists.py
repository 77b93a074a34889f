"""FROM cars AS c(t, who) → FROM (SELECT ts AS t, car AS who, … FROM cars) AS c; WITH x(a) alike.

A list renames the first columns, in order; `FROM cars(t, who)` is `FROM cars AS cars(t, who)`.
Where the columns of a query are not known before it runs, its list is left to the engine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from sqlglot import exp

from eventide.errors import BindError
from eventide.lang.sql.ctes import visible_cte
from eventide.lang.sql.names.columns import identifier, item_name, unique_names
from eventide.lang.sql.names.scope import NO_CTE, sources_of
from eventide.lang.sql.patterns.clause import RowPattern
from eventide.lang.sql.rest.remainder import own_nodes
from eventide.lang.sql.situations.clause import SituationTable
from eventide.lang.sql.spans import span_of
from eventide.lang.sql.standing.clause import window_of_table
from eventide.schema import DELETED, SEQ, Schema

Catalog = Mapping[str, Schema]


def read_short_lists(query: exp.Expr, catalog: Catalog) -> None:
    """FROM cars(t, who) → FROM cars AS cars(t, who). The parser takes it for a function."""
    for table in list(query.find_all(exp.Table)):
        _read_short_list(table, catalog)


def _read_short_list(table: exp.Table, catalog: Catalog) -> None:
    call = table.this
    if not isinstance(call, exp.Anonymous) or not all(map(_is_bare_name, call.expressions)):
        return
    name = call.this if isinstance(call.this, exp.Identifier) else exp.to_identifier(call.this)
    name.meta.update(call.meta)
    named = table.copy()
    named.set("this", name)
    alias = table.args.get("alias")
    known = _stream(named, catalog) is not None
    known = known or any(
        c.alias.lower() == name.name.lower() for c in table.root().find_all(exp.CTE)
    )
    if not known or (alias is not None and alias.columns):
        return
    outer = exp.TableAlias(this=name.copy()) if alias is None else alias
    outer.set("columns", [each.this for each in call.expressions])
    table.set("this", name)
    table.set("alias", outer)


def _is_bare_name(argument: exp.Expr) -> bool:
    return isinstance(argument, exp.Column) and not argument.table


def apply_lists(query: exp.Expr, catalog: Catalog) -> None:
    """Replace queries, CTEs and streams with a list of names by SELECTs that rename columns."""
    # Inner lists first: the lists around them see the new names.
    for alias in reversed(list(query.find_all(exp.TableAlias))):
        if not alias.columns or isinstance(alias.parent, RowPattern | SituationTable):
            continue
        match alias.parent:
            case exp.CTE(parent=exp.With() as with_) as cte:
                if not with_.args.get("recursive"):
                    _rename_query(cte, alias, catalog)
            case exp.Subquery() as subquery:
                _rename_query(subquery, alias, catalog)
            case exp.Table() as table:
                _rename_table(table, alias, catalog)


def _rename_query(holder: exp.Expr, alias: exp.TableAlias, catalog: Catalog) -> None:
    """Rename the columns of a CTE or of a query in brackets."""
    values = _all_values(holder.this)
    if values is not None:
        values.set("alias", alias.copy())
        alias.set("columns", None)
        return
    given = columns_of(holder.this, catalog)
    if given is None:
        return
    inner = exp.Subquery(this=holder.this.copy(), alias=exp.TableAlias(this=alias.this.copy()))
    holder.set("this", _renaming(inner, unique_names(given), alias))
    alias.set("columns", None)


def _all_values(query: exp.Expr) -> exp.Values | None:
    """Return the rows of `SELECT * FROM (VALUES …)`, as `WITH x(a) AS (VALUES …)` is read."""
    from_ = query.args.get("from_")
    source = None if from_ is None else from_.this
    kept = {key for key, value in query.args.items() if value}
    plain = kept == {"expressions", "from_"} and query.expressions == [exp.Star()]
    if not plain or not isinstance(source, exp.Values):
        return None
    alias = source.args.get("alias")
    return None if alias is not None and alias.columns else source


def _rename_table(table: exp.Table, alias: exp.TableAlias, catalog: Catalog) -> None:
    """Rename the columns of a stream, or of a CTE where it is read."""
    given = source_columns(table, catalog)
    if given is None:
        return
    joins, names = table.args.get("joins"), list(alias.columns)
    inner = table.copy()
    inner.set("alias", exp.TableAlias(this=alias.this.copy()))
    inner.set("joins", None)
    wrapped = _renaming(inner, unique_names(given), alias)
    stream = _stream(table, catalog) if visible_cte(table) is None else None
    if stream is not None and not catalog[stream].key and window_of_table(table) is None:
        # `_seq` stays visible, though `*` does not include it.
        if SEQ not in {each.name.lower() for each in names}:
            wrapped.append("expressions", exp.column(SEQ))
        wrapped.meta[RENAMED_STREAM] = True
    outer = exp.TableAlias(this=alias.this.copy())
    table.replace(exp.Subquery(this=wrapped, alias=outer, joins=joins))


RENAMED_STREAM = "renamed_stream"
"""The key under which a SELECT remembers that it only renames the columns of a stream."""


def _renaming(source: exp.Expr, given: list[str], alias: exp.TableAlias) -> exp.Select:
    """Return the SELECT that gives columns the names of a list."""
    listed = list(alias.columns)
    if len(listed) > len(given):
        message = f"{alias.name} has {len(given)} columns, and the list has {len(listed)} names"
        hint = f"they are {', '.join(given)}"
        raise BindError(message, span=span_of(listed[len(given)]), hint=hint)
    _refuse_twice(listed, given[len(listed) :])
    items: list[exp.Expr] = []
    for place, name in enumerate(given):
        column = exp.column(identifier(name))
        if place >= len(listed):
            items.append(column)
            continue
        column.this.meta.update(listed[place].meta)
        items.append(exp.alias_(column, listed[place].copy(), copy=False))
    select = exp.Select(expressions=items)
    select.set("from_", exp.From(this=source))
    return select


def _refuse_twice(listed: list[exp.Expr], kept: Iterable[str]) -> None:
    """Refuse a list that would give two columns the same name."""
    seen = {name.lower() for name in kept}
    for each in listed:
        if each.name.lower() in seen:
            message = f"two columns would be called {each.name!r}"
            raise BindError(message, span=span_of(each), hint="give every column a name of its own")
        seen.add(each.name.lower())


def refuse_ambiguous(query: exp.Expr, catalog: Catalog) -> None:
    """Refuse to read a column of a query in FROM by a name that several of its columns have."""
    for select in query.find_all(exp.Select):
        for source in sources_of(select):
            if isinstance(source, exp.Table) and visible_cte(source) is None:
                continue
            counts = Counter(name.lower() for name in source_columns(source, catalog) or ())
            several = {name for name, count in counts.items() if count > 1}
            if not several:
                continue
            alias = source.alias_or_name
            for node in own_nodes(select):
                if not isinstance(node, exp.Column) or node.name.lower() not in several:
                    continue
                if node.table.lower() in ("", alias.lower()):
                    where = alias or "the subquery"
                    message = f"{counts[node.name.lower()]} columns of {where} are called "
                    message += repr(node.name)
                    hint = f"rename all but one of them with AS in {where}"
                    raise BindError(message, span=span_of(node), hint=hint)


def columns_of(query: exp.Expr, catalog: Catalog) -> list[str] | None:
    """Return the column names of a query, None if they are not known."""
    match query:
        case exp.Subquery():
            return columns_of(query.this, catalog)
        case exp.SetOperation():
            return columns_of(query.this, catalog)
        case exp.Select():
            return _selected(query, catalog)
    return None


def _selected(select: exp.Select, catalog: Catalog) -> list[str] | None:
    names: list[str] = []
    for item in select.expressions:
        star = item.this if isinstance(item, exp.Column) else item
        if not isinstance(star, exp.Star):
            if isinstance(star, exp.Columns):
                return None
            names.append(item_name(item))
            continue
        joins = select.args.get("joins") or ()
        merged = any(join.args.get("using") or join.method for join in joins)
        if star.args.get("replace") or star.args.get("rename") or merged:
            return None
        left_out = {each.name.lower() for each in star.args.get("except_") or ()}
        table = item.table.lower() if isinstance(item, exp.Column) else ""
        for source in sources_of(select):
            if table not in ("", source.alias_or_name.lower()):
                continue
            found = source_columns(source, catalog)
            if found is None:
                return None
            names += [name for name in unique_names(found) if name.lower() not in left_out]
    return names


def source_columns(source: exp.Expr, catalog: Catalog) -> list[str] | None:
    """Return the columns of a source in FROM, as `*` shows them; None if they are not known."""
    match source:
        case exp.Table():
            cte = visible_cte(source)
            if cte is not None:
                return columns_of(cte.this, catalog)
            stream = _stream(source, catalog)
            return None if stream is None else _shown(catalog[stream])
        case exp.Values():
            alias = source.args.get("alias")
            return [each.name for each in alias.columns] or None if alias is not None else None
        case exp.Subquery():
            found = columns_of(source.this, catalog)
            alias = source.args.get("alias")
            listed = [] if alias is None else [each.name for each in alias.columns]
            return None if found is None else [*listed, *found[len(listed) :]]
    return None


def _stream(table: exp.Table, catalog: Catalog) -> str | None:
    if table.db or not isinstance(table.this, exp.Identifier):
        return None
    if not table.meta.get(NO_CTE) and _is_recursive(table):
        return None
    if table.name in catalog:
        return str(table.name)
    folded = {stream.lower(): stream for stream in catalog}
    return folded.get(table.name.lower())


def _is_recursive(table: exp.Table) -> bool:
    """Whether a table may name a CTE whose columns are not known: a recursive one."""
    root = table.root()
    return any(cte.alias.lower() == table.name.lower() for cte in root.find_all(exp.CTE))


def _shown(schema: Schema) -> list[str]:
    hidden = {SEQ, DELETED} if schema.key else {SEQ}
    return [name for name in schema.visible if name not in hidden]
