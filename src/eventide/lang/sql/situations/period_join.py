"""FROM x a JOIN y b ON a.car = b.car AND a OVERLAPS b → one input that holds the pairs.

Such joins come first in a SELECT (period_conditions.py). The columns that a side has to deliver are
found as for any other SELECT that stays SQL (remainder.py). The sides become a `PeriodJoin`, whose
columns are called `a_car` and so on, and the SELECT reads these. An EXISTS by relation is one more
join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp

from eventide.errors import BindError, Span
from eventide.lang.sql.names.columns import fresh, identifier
from eventide.lang.sql.names.scope import Scope, refuse
from eventide.lang.sql.relation_rows import as_input
from eventide.lang.sql.rest.remainder import keep_select, own_nodes
from eventide.lang.sql.situations.period_conditions import (
    SHAPE,
    Exists,
    conjoined,
    find_exists,
    lead_with,
    mask_of,
    relations_to_joins,
    take_conditions,
    written_out,
)
from eventide.lang.sql.situations.period_relations import (
    PeriodRelation,
    is_related,
    parts_of,
    relations_in,
)
from eventide.lang.sql.spans import span_of
from eventide.plan.bind import bind, suggestion
from eventide.plan.expressions import Named
from eventide.plan.nodes import Project
from eventide.plan.situations.allen import ANY
from eventide.plan.situations.nodes import END_TS, PairKind, PeriodJoin
from eventide.plan.situations.parts import RowPeriod
from eventide.plan.tree import Plan
from eventide.schema import START_TS, TIMESTAMP, Schema

Add = Callable[[Plan], exp.Table]
"""Makes a plan an input of the rest, and returns the table that stands for it there."""

_OUTER_HINT = "filter before the join: LEFT JOIN (SELECT … FROM … WHERE …) b ON …"
_EXISTS_HINT = (
    "besides the relation it may compare columns of one type with =, and look at its own rows; "
    "for more write SELECT DISTINCT … FROM … a JOIN … b ON …"
)
_KEY_HINT = "compare columns of one type, of the side that is joined and of an earlier one"
_PERIOD_HINT = "a period has columns start_ts and end_ts; rename yours in a SELECT in brackets"


def joined_sides(select: exp.Select) -> list[exp.Expr]:
    """Return the sides of a SELECT's joins by relation; move other conditions to its WHERE."""
    relations_to_joins(select)
    joins = _relation_joins(select)
    exists = find_exists(select)
    if exists and not joins:
        lead_with(select, exists[0].of)
        return [select.args["from_"].this]
    if not joins:
        return []
    for join in select.args["joins"]:
        if join.side in ("RIGHT", "FULL") or (join in joins and _is_strange(join)):
            what = f"{join.side or join.method or join.kind} JOIN beside a relation of periods"
            refuse(what, join, "write JOIN or LEFT JOIN; for RIGHT JOIN turn the sides around")
    for join in joins:
        _move_conditions(select, join)
    return [select.args["from_"].this, *(join.this for join in joins)]


def _relation_joins(select: exp.Select) -> list[exp.Join]:
    """Return the joins by relation, which come first; refuse relations anywhere else."""
    relations = [node for node in own_nodes(select) if isinstance(node, PeriodRelation)]
    if not relations:
        return []
    joins: list[exp.Join] = select.args.get("joins") or []
    first = [join for join in joins if any(map(is_related, parts_of(join.args.get("on"))))]
    if first != joins[: len(first)]:
        what = "joins by the relation of periods come first"
        refuse(what, relations[0], "put them before other joins, without brackets around them")
    read = {id(each) for join in first for each in join.args["on"].find_all(PeriodRelation)}
    for relation in relations:
        if id(relation) not in read:
            refuse("a relation of periods is a condition of its own", relation, SHAPE)
    return first


def _is_strange(join: exp.Join) -> bool:
    return bool(join.method or join.kind not in ("", "INNER") or join.side not in ("", "LEFT"))


def _move_conditions(select: exp.Select, join: exp.Join) -> None:
    """Leave a join its relation and its equal columns; if it is an inner join, move the rest."""
    kept: list[exp.Expr] = []
    moved: list[exp.Expr] = []
    for part in parts_of(join.args["on"]):
        if not is_related(part) and relations_in(part):
            refuse("a relation of periods is a condition of its own", part, SHAPE)
        (kept if is_related(part) or _is_equality(part) else moved).append(part)
    related = [part for part in kept if is_related(part)]
    pairs = [{name.lower() for name in relations_in(part)[0].aliases} for part in related]
    for part, pair in zip(related, pairs, strict=True):
        if pair == pairs[0]:
            continue
        if join.side or any(each.open_ends for each in relations_in(part)):
            what = "a join by the relation of periods has a condition on one pair"
            refuse(what, part, "relate each side to one before it, in joins of their own")
        kept.remove(part)
        moved.append(written_out(part))
    if moved and join.side:
        refuse("this condition in the ON of a LEFT JOIN by relation", moved[0], _OUTER_HINT)
    join.set("on", conjoined(kept))
    add_condition(select, moved)


def _is_equality(part: exp.Expr) -> bool:
    inner = part.unnest()
    return isinstance(inner, exp.EQ) and all(
        isinstance(each, exp.Column) for each in (inner.this, inner.expression)
    )


def add_condition(select: exp.Select, conditions: list[exp.Expr]) -> None:
    """Add conditions to the WHERE of a SELECT."""
    where = select.args.get("where")
    every = [*([where.this] if where is not None else []), *conditions]
    if conditions:
        select.set("where", exp.Where(this=conjoined(every)))


def keep_joined(  # noqa: PLR0913 - all that is known of the SELECT
    select: exp.Select,
    tables: list[exp.Expr],
    scopes: dict[int, Scope],
    catalog: Mapping[str, Schema],
    add: Add,
    *,
    nested: bool,
    partners: list[tuple[Exists, Scope]],
) -> dict[int, Plan]:
    """Prepare a SELECT as `keep_select` does, its joins by relation put into one table.

    `partners` are the conditions that a partner exists, with their sources.
    """
    joins = _relation_joins(select)
    if not joins and not partners:
        return keep_select(select, tables, scopes, nested=nested)
    sides = [select.args["from_"].this, *(join.this for join in joins)]
    for side in sides:
        if id(side) not in scopes:
            what = f"the columns of {side.alias_or_name} are not known here"
            hint = "write a SELECT from one stream in brackets, or a plain CTE, in its place"
            refuse(what, side, hint)
    conditions = [join.args["on"] for join in joins]
    conditions += [part for exists, _ in partners for part in exists.on]
    members = [_member_scope(scopes[id(side)], conditions) for side in sides]
    all_known = all(id(table) in scopes for table in tables)
    _expand_stars(select, members if len(members) == len(tables) else None, all_known=all_known)
    plans = keep_select(select, tables, scopes, nested=nested)
    joining = _Joining(select, catalog, [])
    for scope, side in zip(members, sides, strict=True):
        joining.members.append(joining.member(scope, plans.pop(id(side))))
    joined = [joining.condition(join, place + 1) for place, join in enumerate(joins)]
    joined += [joining.exists(exists, scope) for exists, scope in partners]
    for join in joins:
        join.pop()
    take_conditions(select, [exists.part for exists, _ in partners])
    joining.put(joined, add)
    return plans


def _member_scope(scope: Scope, conditions: list[exp.Expr]) -> Scope:
    """Return the scope of a side, which has to have a period if a relation is about it."""
    for condition in conditions:
        for relation in relations_in(condition):
            if scope.alias.lower() not in (each.lower() for each in relation.aliases):
                continue
            for name in (START_TS, END_TS):
                if scope.find(name) is None:
                    message = f"{scope.alias} has no column {name!r}, so no period"
                    raise BindError(message, span=span_of(relation), hint=_PERIOD_HINT)
    return scope


def _expand_stars(select: exp.Select, scopes: list[Scope] | None, *, all_known: bool) -> None:
    """Write out `*`: a name that several sides have gets the name of its side in front."""
    items: list[exp.Expr] = []
    for item in select.expressions:
        star = item.this if isinstance(item, exp.Column) else item
        if not isinstance(star, exp.Star | exp.Columns):
            items.append(item)
            continue
        if isinstance(star, exp.Columns) or any(star.args.values()) or not all_known:
            refuse("this star beside a relation of periods", item, "name the columns")
        if isinstance(item, exp.Column) or scopes is None:
            items.append(item)
            continue
        items += _starred(star, scopes)
    select.set("expressions", items)


def _starred(star: exp.Expr, scopes: list[Scope]) -> Iterator[exp.Expr]:
    names = [name.lower() for scope in scopes for name in scope.starred]
    for scope in scopes:
        for name in scope.starred:
            column = exp.column(identifier(name), table=identifier(scope.alias))
            column.this.meta.update(star.meta)
            shared = names.count(name.lower()) > 1
            yield exp.alias_(column, identifier(f"{scope.alias}_{name}")) if shared else column


@dataclass(frozen=True, slots=True)
class _Member:
    """A side of the joins: its plan, and the names of its columns among the pairs."""

    scope: Scope
    plan: Project
    names: Mapping[str, str]

    def period(self) -> RowPeriod:
        start, end = (self.names[self.scope.find(name) or name] for name in (START_TS, END_TS))
        return RowPeriod(self.scope.alias, start, end)

    def named(self, column: exp.Column) -> str:
        return self.names[self.scope.find(column.name) or column.name]


@dataclass(frozen=True, slots=True)
class _Condition:
    """The condition of one join: the side that is joined, and one before it."""

    new: _Member
    earlier: _Member
    keys: tuple[tuple[str, str], ...]
    mask: int
    open_ends: bool
    kind: PairKind
    span: Span | None


@dataclass(frozen=True, slots=True)
class _Joining:
    """Turns the sides of a SELECT's joins by relation into one table."""

    select: exp.Select
    catalog: Mapping[str, Schema]
    members: list[_Member]

    def member(self, scope: Scope, plan: Plan, taken: Iterable[str] = ()) -> _Member:
        """Return a side, with column names that no other side has."""
        bound = bind(plan, self.catalog)
        assert isinstance(bound, Project)
        for name in (scope.find(START_TS) or START_TS, scope.find(END_TS) or END_TS):
            if bound.row.get(name, TIMESTAMP) != TIMESTAMP:
                message = f"{name} of {scope.alias} is {bound.row[name]}, not a timestamp"
                span = next(map(span_of, self.select.find_all(PeriodRelation)), None)
                raise BindError(message, span=span, hint=_PERIOD_HINT)
        used = [*taken, *(name for member in self.members for name in member.names.values())]
        names: dict[str, str] = {}
        for name in bound.row:
            names[name] = fresh(f"{scope.alias}_{name}", [*used, *names.values()])
        items = tuple(Named(names[item.name], item.expression) for item in bound.items)
        return _Member(scope, Project(bound.source, items), names)

    def put(self, conditions: list[_Condition], add: Add) -> None:
        """Replace the sides by the pairs, and give the SELECT the columns of the pairs."""
        read = self.rename()
        plan = as_input(self.members[0].plan)
        for place, each in enumerate(conditions, start=1):
            needed = {column.name for column in read}
            for later in conditions[place:]:
                period = later.earlier.period()
                needed |= {period.start, period.end, *(key for key, _ in later.keys)}
            both = [*plan.row, *(() if each.kind in ("semi", "anti") else each.new.plan.row)]
            columns = tuple(name for name in both if name in needed) or (both[0],)
            plan = PeriodJoin(
                plan,
                as_input(each.new.plan),
                each.earlier.period(),
                each.new.period(),
                each.keys,
                each.mask,
                columns,
                each.kind,
                each.open_ends,
                each.span,
            )
        table = add(plan)
        self.select.args["from_"].set("this", table)
        for column in read:
            column.set("table", identifier(table.name))

    def condition(self, join: exp.Join, place: int) -> _Condition:
        """Return the condition of a join; equalities between unlike types become conditions."""
        new, before = self.members[place], self.members[:place]
        kind: PairKind = "left" if join.side else "inner"
        found, others = self.asked(parts_of(join.args["on"]), new, before, kind)
        if others and join.side:
            refuse("this condition in the ON of a LEFT JOIN by relation", others[0], _KEY_HINT)
        add_condition(self.select, others)
        return found

    def exists(self, exists: Exists, scope: Scope) -> _Condition:
        """Return the condition of an EXISTS, on a side that nothing else reads."""
        on = [_qualified(part, scope) for part in exists.on]
        _member_scope(scope, on)
        named = {scope.find(START_TS), scope.find(END_TS)}
        columns = (column for part in on for column in part.find_all(exp.Column))
        named |= {scope.find(column.name) for column in columns if scope.owns(column)}
        items = [Named(name, scope.means(name)) for name in scope.fields if name in named]
        new = self.member(scope, Project(scope.source, tuple(items)))
        found, others = self.asked(on, new, self.members, exists.kind)
        if others:
            refuse(
                "this condition in an EXISTS by the relation of periods", others[0], _EXISTS_HINT
            )
        return found

    def asked(
        self, parts: list[exp.Expr], new: _Member, before: list[_Member], kind: PairKind
    ) -> tuple[_Condition, list[exp.Expr]]:
        """Return the condition on a side and those before it, and the parts it leaves out."""
        related = [part for part in parts if is_related(part)]
        relations = [relation for part in related for relation in relations_in(part)]
        earlier = self.partner(relations[0], new, before)
        for relation in relations:
            if self.partner(relation, new, before) is not earlier:
                what = "relations with OR between them are about one pair"
                refuse(what, relation, f"relate {earlier.scope.alias} and {new.scope.alias}")
        mask = ANY
        for part in related:
            mask &= mask_of(part, earlier.scope.alias)
        if not mask:
            what = "no two periods can be all that"
            refuse(what, relations[-1], "put OR between the relations that may hold")
        keys: list[tuple[str, str]] = []
        others: list[exp.Expr] = []
        for part in parts:
            key = None if part in related else self.key(part.unnest(), new, before)
            if key is not None:
                keys.append(key)
            elif part not in related:
                others.append(part)
        open_ends = any(each.open_ends for each in relations)
        span = span_of(relations[0])
        return _Condition(new, earlier, tuple(keys), mask, open_ends, kind, span), others

    def partner(self, relation: PeriodRelation, new: _Member, before: list[_Member]) -> _Member:
        """Return the side that a relation is about besides the one that is joined."""
        names = [each.lower() for each in relation.aliases]
        known = {member.scope.alias.lower(): member for member in (*self.members, new)}
        for name in names:
            if name not in known and name in _names_in(self.select):
                what = f"{name} is joined by no relation, and related to another one"
                refuse(what, relation, "put it first in FROM, or join it by a relation too")
            if name not in known:
                aliases = [member.scope.alias for member in self.members]
                message = f"no stream {name!r} in this FROM"
                hint = suggestion(name, aliases, "stream")
                raise BindError(message, span=span_of(relation), hint=hint)
        if known[names[0]] is known[names[1]]:
            refuse("a period related to itself", relation, "give the two sides different aliases")
        if new.scope.alias.lower() not in names:
            _refuse_absent(relation, new)
        names.remove(new.scope.alias.lower())
        partner = known[names[0]]
        if partner not in before:
            _refuse_absent(relation, new)
        return partner

    def key(self, part: exp.Expr, new: _Member, before: list[_Member]) -> tuple[str, str] | None:
        """Return the columns that have to be equal, or None if the rest has to compare them."""
        if not _is_equality(part):
            return None
        for one, other in ((part.this, part.expression), (part.expression, part.this)):
            owner = next((member for member in before if member.scope.owns(one)), None)
            if owner is not None and new.scope.owns(other):
                left, right = owner.named(one), new.named(other)
                if owner.plan.row[left] == new.plan.row[right]:
                    return left, right
        return None

    def rename(self) -> list[exp.Column]:
        """Give the columns of the sides their names among the pairs; return them."""
        aliases = {
            item.alias.lower() for item in self.select.expressions if isinstance(item, exp.Alias)
        }
        read = []
        for column in list(self.select.find_all(exp.Column)):
            member = self.owner(column, aliases)
            if member is None:
                continue
            name = member.named(column)
            renamed = exp.column(identifier(name))
            renamed.this.meta.update(column.this.meta)
            read.append(renamed)
            is_item = isinstance(column.parent, exp.Select) and column.arg_key == "expressions"
            item = exp.alias_(renamed, identifier(column.name), copy=False) if is_item else renamed
            column.replace(item)
        return read

    def owner(self, column: exp.Column, aliases: set[str]) -> _Member | None:
        """Return the side that a column belongs to, None if it belongs to none of them."""
        owners = [member for member in self.members if member.scope.owns(column)]
        if not owners or isinstance(column.this, exp.Star):
            return None
        if not column.table and column.name.lower() in aliases:
            order = column.find_ancestor(exp.Order)
            if len(owners) > 1 or (order is not None and order.parent is self.select):
                return None
        # In a query inside, a plain name may be a column of that query.
        inner = column.find_ancestor(exp.Select)
        while inner is not None and inner is not self.select:
            if not column.table or column.table.lower() in _names_in(inner):
                return None
            inner = inner.find_ancestor(exp.Select)
        return owners[0]


def _qualified(part: exp.Expr, scope: Scope) -> exp.Expr:
    """Return a condition of an EXISTS with its own columns qualified."""
    for column in part.find_all(exp.Column):
        if not column.table and scope.owns(column):
            column.set("table", identifier(scope.alias))
    return part


def _refuse_absent(relation: PeriodRelation, new: _Member) -> NoReturn:
    what = f"this relation is not about {new.scope.alias} and a side before it"
    refuse(what, relation, f"relate {new.scope.alias} to a side that stands before it in FROM")


def _names_in(select: exp.Select) -> set[str]:
    """Return the names of the sources of a SELECT."""
    from_ = select.args.get("from_")
    sources = [from_.this] if from_ is not None else []
    sources += [join.this for join in select.args.get("joins") or ()]
    return {source.alias_or_name.lower() for source in sources}
