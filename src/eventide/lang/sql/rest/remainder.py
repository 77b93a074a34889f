"""A SELECT that stays SQL: which events it needs of each stream, and what it calls its columns."""

from __future__ import annotations

from collections.abc import Iterator, Set

from sqlglot import exp

from eventide.errors import BindError, EventideError
from eventide.lang.sql.expressions import Translator, conjoin
from eventide.lang.sql.names.columns import identifier, item_name, unique_names
from eventide.lang.sql.names.qualifiers import check_left_out
from eventide.lang.sql.names.scope import Scope, column_hint
from eventide.lang.sql.select_list import refuse_aggregates
from eventide.lang.sql.spans import span_of
from eventide.plan.bind import suggestion
from eventide.plan.expressions import Expression, Named
from eventide.plan.nodes import Filter, Project
from eventide.plan.tree import Plan

Scopes = dict[int, Scope]


def keep_select(
    select: exp.Select, tables: list[exp.Expr], scopes: Scopes, *, nested: bool
) -> dict[int, Plan]:
    """Prepare a SELECT for the engine's SQL; return what each of its streams has to deliver.

    Conditions on one stream move into its plan, columns get the schema's spelling, and every
    item of the SELECT list gets a name.
    """
    known = [scopes[id(table)] for table in tables if id(table) in scopes]
    all_known = len(known) == len(tables)
    if all_known and not nested:
        check_columns(select, known)
    pushed = _push_conditions(select, tables, scopes)
    if all_known:
        _expand_stars(select, known)
    plans = {
        id(table): _deliver(select, scopes[id(table)], pushed.get(id(table), []))
        for table in tables
        if id(table) in scopes
    }
    _spell(select, known)
    _name_items(select, known)
    return plans


def own_nodes(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the nodes of a SELECT, without those of the queries inside it."""
    for child in node.iter_expressions():
        if not isinstance(child, exp.Query):
            yield child
            yield from own_nodes(child)


def check_columns(select: exp.Select, scopes: list[Scope]) -> None:
    """Refuse columns that no stream has, and ambiguous ones."""
    aliases = {item.alias.lower() for item in select.expressions if isinstance(item, exp.Alias)}
    merged = any(join.args.get("using") or join.method for join in select.args.get("joins") or ())
    for node in own_nodes(select):
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            continue
        owners = [scope.alias for scope in scopes if scope.owns(node)]
        aliased = not node.table and node.name.lower() in aliases
        if not owners and not aliased:
            raise _unknown(node, scopes)
        if len(owners) > 1 and not merged and not aliased:
            message = f"{node.name!r} is a column of {' and of '.join(owners)}"
            hint = f"say which, as in {owners[0]}.{node.name}"
            if node.table:
                message = f"two sides of a join are called {node.table!r}"
                hint = "give one of them another name with AS, as in JOIN … AS other"
            raise BindError(message, span=span_of(node), hint=hint)


def _unknown(node: exp.Column, scopes: list[Scope]) -> BindError:
    qualified = [scope for scope in scopes if scope.alias.lower() == node.table.lower()]
    if node.table and not qualified:
        message = f"no stream {node.table!r} in this FROM"
        names = [scope.alias for scope in scopes]
        hint = suggestion(node.table, names, "stream")
        return BindError(message, span=span_of(node), hint=hint)
    looked_in = qualified or scopes
    fields = [name for scope in looked_in for name in scope.fields]
    message = f"no column {node.name!r} in {' or '.join(scope.stream for scope in looked_in)}"
    hint = column_hint(node, list(dict.fromkeys(fields)))
    return BindError(message, span=span_of(node), hint=hint)


def _push_conditions(
    select: exp.Select, tables: list[exp.Expr], scopes: Scopes
) -> dict[int, list[Expression]]:
    """Take the parts of WHERE that read a single stream out of the SELECT."""
    where = select.args.get("where")
    if where is None:
        return {}
    pushed: dict[int, list[Expression]] = {}
    kept = []
    for part in where.this.unnest().flatten() if isinstance(where.this, exp.And) else [where.this]:
        owner = _owner(part, tables, scopes, select)
        translated = None if owner is None else _translate(part, scopes[owner])
        if owner is None or translated is None:
            kept.append(part)
        else:
            pushed.setdefault(owner, []).append(translated)
    select.set("where", exp.Where(this=exp.and_(*kept, copy=False)) if kept else None)
    return pushed


def _owner(
    part: exp.Expr, tables: list[exp.Expr], scopes: Scopes, select: exp.Select
) -> int | None:
    """Return the one stream that a condition reads, if it may be evaluated before the joins."""
    columns = list(part.find_all(exp.Column))
    if not columns or part.find(exp.Query) or not _preserves_rows(select):
        return None
    if len(scopes) < len(tables) and any(not column.table for column in columns):
        return None
    owners = {key for column in columns for key, scope in scopes.items() if scope.owns(column)}
    return owners.pop() if len(owners) == 1 else None


def _preserves_rows(select: exp.Select) -> bool:
    """Whether no join adds rows of nulls, which a condition would then have to see."""
    return not any(
        join.side or join.method or join.kind in ("OUTER", "SEMI", "ANTI")
        for join in select.args.get("joins") or ()
    )


def _translate(part: exp.Expr, scope: Scope) -> Expression | None:
    try:
        condition = Translator(scope.with_aliases({}), "").translate(part)
        refuse_aggregates(condition, "WHERE")
    except EventideError:
        return None
    return condition


def _expand_stars(select: exp.Select, scopes: list[Scope]) -> None:
    """Replace `*` by the columns it means, except where a NATURAL join decides that."""
    joins = select.args.get("joins") or ()
    if any(join.method == "NATURAL" for join in joins):
        return
    merged = {name.name.lower() for join in joins for name in join.args.get("using") or ()}
    expanded: list[exp.Expr] = []
    for item in select.expressions:
        star = item.this if isinstance(item, exp.Column) else item
        if not isinstance(star, exp.Star):
            expanded.append(item)
            continue
        table = item.table if isinstance(item, exp.Column) else ""
        meant = [scope for scope in scopes if not table or scope.alias.lower() == table.lower()]
        check_left_out(star, [name for scope in meant for name in scope.starred])
        if any(star.args.values()):
            expanded.append(item)
            continue
        expanded += _meant(star, meant, frozenset() if table else merged)
    select.set("expressions", expanded)


def _meant(star: exp.Expr, scopes: list[Scope], merged: Set[str]) -> Iterator[exp.Expr]:
    """Yield the columns a star means; those that USING merges come once, and unqualified."""
    for place, scope in enumerate(scopes):
        for name in scope.starred:
            if place > 0 and name.lower() in merged:
                continue
            table = None if name.lower() in merged else identifier(scope.alias)
            column = exp.column(identifier(name), table=table)
            column.this.meta.update(star.meta)
            yield column


def _deliver(select: exp.Select, scope: Scope, conditions: list[Expression]) -> Plan:
    """Return the plan of one stream: its events, filtered, with the columns that are read."""
    plan = scope.source
    if conditions:
        plan = Filter(plan, conjoin(conditions))
    names = _columns_read(select, scope)
    return Project(plan, tuple(Named(name, scope.means(name)) for name in names))


def _columns_read(select: exp.Select, scope: Scope) -> list[str]:
    """Return the stream's columns that a SELECT reads, also in the queries inside it."""
    read = {scope.find(column.name) for column in select.find_all(exp.Column) if scope.owns(column)}
    for star in select.find_all(exp.Star, exp.Columns):
        if not isinstance(star.parent, exp.Count) and _means(star, scope):
            left_out = {each.name.lower() for each in star.args.get("except_") or ()}
            read |= {name for name in scope.starred if name.lower() not in left_out}
    for join in select.find_all(exp.Join):
        read |= {scope.find(name.name) for name in join.args.get("using") or ()}
        if join.method:  # NATURAL joins by all that both have
            read |= set(scope.starred)
    return [name for name in scope.fields if name in read] or scope.fields[:1]


def _means(star: exp.Expr, scope: Scope) -> bool:
    parent = star.parent
    table = parent.table if isinstance(parent, exp.Column) else ""
    return not table or table.lower() == scope.alias.lower()


def _spell(select: exp.Select, scopes: list[Scope]) -> None:
    """Give columns the schema's spelling: engines differ in which spelling they show."""
    for column in select.find_all(exp.Column):
        if isinstance(column.this, exp.Star):
            continue
        for scope in scopes:
            found = scope.find(column.name) if scope.owns(column) else None
            if found is not None:
                spelled = identifier(found)
                spelled.meta.update(column.this.meta)
                column.set("this", spelled)
                break


def _name_items(select: exp.Select, scopes: list[Scope]) -> None:
    """Give every item of the SELECT list the name it has on all engines."""
    given = [each for each in select.expressions if not _is_several(each)]
    names = [item_name(each, scopes) for each in given]
    unique = iter(zip(names, unique_names(names), strict=True))
    items = []
    for item in select.expressions:
        if _is_several(item):
            items.append(item)
            continue
        name, shown = next(unique)
        if isinstance(item, exp.Alias | exp.Column) and name == shown:
            items.append(item)
        else:
            items.append(exp.alias_(item.unalias(), identifier(shown)))
    select.set("expressions", items)


def _is_several(item: exp.Expr) -> bool:
    """Whether an item of a SELECT list stands for several columns that are not known here."""
    return isinstance(item, exp.Star | exp.Columns) or item.is_star
