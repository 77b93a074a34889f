"""Make every relation of periods in a SELECT a condition of a join.

    before:  FROM trips a, stops b WHERE a.car = b.car AND a OVERLAPS b
    after:   FROM trips a JOIN stops b ON a.car = b.car AND a OVERLAPS b

Joins by relation come first. If all joins are inner ones, the order of FROM is changed for that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Literal

from sqlglot import exp

from eventide.errors import BindError
from eventide.lang.sql.names.scope import refuse
from eventide.lang.sql.rest.remainder import own_nodes
from eventide.lang.sql.situations.period_relations import (
    PeriodRelation,
    is_related,
    parts_of,
    relations_in,
)
from eventide.lang.sql.spans import span_of
from eventide.plan.bind import suggestion
from eventide.plan.situations import allen

SHAPE = "write JOIN … ON a.car = b.car AND a OVERLAPS b, or (a MEETS b OR a OVERLAPS b)"
_SIDES_HINT = "write FROM … a JOIN … b ON a OVERLAPS b"
_EXISTS_KEYS = {"expressions", "from_", "where", "distinct"}


# Conditions of joins


def relations_to_joins(select: exp.Select) -> None:
    """Put every relation of a SELECT into the ON of a join, and those joins first."""
    relations = [node for node in own_nodes(select) if isinstance(node, PeriodRelation)]
    if not relations:
        return
    from_ = select.args.get("from_")
    if from_ is None:
        refuse("a relation of periods without FROM", relations[0], _SIDES_HINT)
    first = from_.this
    if first.args.get("joins"):
        # FROM a JOIN b … without a SELECT before it: sqlglot hangs the joins on the first source.
        select.set("joins", [*first.args["joins"], *_joins(select)])
        first.set("joins", None)
    where = select.args.get("where")
    asked = [part for part in parts_of(where) if relations_in(part)]
    for part in asked:
        _check_condition(select, part)
    if not _joins(select):
        what = "a relation of periods is between two sides of a join"
        refuse(what, relations[0], _SIDES_HINT)
    if all(map(_is_inner, _joins(select))):
        names = _names(select)
        _arrange(select, _related_order(_pairs(select, names), len(names)))
        return
    for part in asked:
        _join_of_left(select, part)
    take_conditions(select, asked)


def _check_condition(select: exp.Select, part: exp.Expr) -> None:
    """Refuse a relation in WHERE that cannot be the condition of a join."""
    known = _names(select)
    for relation in relations_in(part):
        for name in relation.aliases:
            if name.lower() not in known:
                raise _unknown(select, name, relation)
    if not is_related(part):
        refuse("a relation of periods is a condition of its own", part, SHAPE)


def _unknown(select: exp.Select, name: str, relation: PeriodRelation) -> BindError:
    message, hint = f"no stream {name!r} in this FROM", suggestion(name, _names(select), "stream")
    around = select.find_ancestor(exp.Select)
    if around is not None and name.lower() in _names(around):
        message = f"{name} is of the query around, and this is no EXISTS of its WHERE"
        hint = "write WHERE … AND EXISTS (SELECT … WHERE b DURING a), or JOIN … ON b DURING a"
    return BindError(message, span=span_of(relation), hint=hint)


def _names(select: exp.Select) -> list[str]:
    """Return the names of the sources of a SELECT, in lower case."""
    return [each.alias_or_name.lower() for each in _sources(select)]


def _sources(select: exp.Select) -> list[exp.Expr]:
    from_ = select.args.get("from_")
    own = [] if from_ is None else [from_.this]
    return [*own, *(join.this for join in _joins(select))]


def _joins(select: exp.Select) -> list[exp.Join]:
    return select.args.get("joins") or []


def _is_inner(join: exp.Join) -> bool:
    plain = not (join.side or join.method or join.args.get("using"))
    return plain and join.kind in ("", "INNER", "CROSS")


def _join_of_left(select: exp.Select, part: exp.Expr) -> None:
    """Move a relation from WHERE into its join; a LEFT JOIN becomes an inner join.

    No row of nulls could satisfy the relation.
    """
    names = _names(select)
    relation = relations_in(part)[0]
    place = max(names.index(name.lower()) for name in relation.aliases)
    join = _joins(select)[max(place - 1, 0)]
    if join.method or join.args.get("using") or join.side not in ("", "LEFT"):
        what = f"a relation of periods in WHERE beside {join.side or join.method or 'USING'}"
        refuse(what, relation, f"write JOIN … ON {join.alias_or_name}.k = … AND the relation")
    for key in ("side", "kind"):
        join.set(key, None)
    join.set("on", conjoined([*parts_of(join.args.get("on")), part]))


def lead_with(select: exp.Select, name: str) -> None:
    """Put the source that an EXISTS is about first, if all joins are inner ones."""
    names = _names(select)
    first = names.index(name.lower()) if name.lower() in names else 0
    if first and all(map(_is_inner, _joins(select))):
        rest = [place for place in range(len(names)) if place != first]
        _arrange(select, [first, *rest])


def _pairs(select: exp.Select, names: list[str]) -> list[set[int]]:
    """Return the places of the sources that each relation of a SELECT is about."""
    pairs = []
    for part in _conditions(select):
        aliases = {name.lower() for each in relations_in(part) for name in each.aliases}
        if is_related(part):
            pairs.append({names.index(alias) for alias in aliases if alias in names})
    return pairs


def _conditions(select: exp.Select) -> list[exp.Expr]:
    """Return the conditions of inner joins, and those of WHERE: they mean the same."""
    on = [part for join in _joins(select) for part in parts_of(join.args.get("on"))]
    return [*on, *parts_of(select.args.get("where"))]


def _arrange(select: exp.Select, order: list[int]) -> None:
    """Order the sources of inner joins, and give each join its conditions."""
    sources, names = _sources(select), _names(select)
    conditions = _conditions(select)
    if order != sorted(order) and any(map(_is_bare_star, select.expressions)):
        what = "* beside relations of periods that stand in another order than FROM"
        relation = next(iter(select.find_all(PeriodRelation)))
        refuse(what, relation, "name the columns, or order FROM by the relations")
    placed = [names[place] for place in order]
    joins = [exp.Join(this=sources[place]) for place in order[1:]]
    left: list[exp.Expr] = []
    for part in conditions:
        place = _place_of(part, placed)
        if place is None:
            left.append(part)
        else:
            on = joins[place - 1].args.get("on")
            joins[place - 1].set("on", conjoined([*parts_of(on), part]))
    select.args["from_"].set("this", sources[order[0]])
    select.set("joins", joins)
    select.set("where", exp.Where(this=conjoined(left)) if left else None)


def _related_order(pairs: list[set[int]], count: int) -> list[int]:
    """Return the places of sources: first those that are related to one another, then the rest."""
    order = [min((place for pair in pairs for place in pair), default=0)]
    while True:
        near = {place for pair in pairs if pair & set(order) for place in pair} - set(order)
        if not near:
            break
        order.append(min(near))
    return [*order, *(place for place in range(count) if place not in order)]


def _place_of(part: exp.Expr, placed: list[str]) -> int | None:
    """Return the place of the join that a condition belongs to, None if it stays in WHERE."""
    relations = relations_in(part)
    if relations:
        names = {name.lower() for each in relations for name in each.aliases}
        # Mistakes in the others are reported where joins are planned.
        known = is_related(part) and names <= set(placed)
        return max([1, *(placed.index(name) for name in names if known)])
    names = {column.table.lower() for column in part.find_all(exp.Column)}
    if part.find(exp.Query) or len(names) < 2 or not names <= set(placed):
        return None
    return max(placed.index(name) for name in names)


def _is_bare_star(item: exp.Expr) -> bool:
    return isinstance(item, exp.Star | exp.Columns)


def conjoined(parts: Iterable[exp.Expr]) -> exp.Expr:
    """Return conditions with AND between them."""
    return exp.and_(*parts, copy=False)


def take_conditions(select: exp.Select, taken: Iterable[exp.Expr]) -> None:
    """Take conditions out of the WHERE of a SELECT."""
    gone = {id(part.unnest()) for part in taken}
    left = [part for part in parts_of(select.args.get("where")) if id(part.unnest()) not in gone]
    select.set("where", exp.Where(this=conjoined(left)) if left else None)


# EXISTS


@dataclass(frozen=True, slots=True)
class Exists:
    """EXISTS (SELECT … FROM stops b WHERE b.n > 3 AND b DURING a): whether a row has a partner.

    `part` is the condition in WHERE, and `of` the source whose rows it is about. `side` is what it
    reads, with the conditions on that alone; `on` are the others: the relation, and equalities.
    """

    part: exp.Expr
    of: str
    kind: Literal["semi", "anti"]
    side: exp.Subquery
    on: tuple[exp.Expr, ...]


def find_exists(select: exp.Select) -> list[Exists]:
    """Return the conditions of a WHERE that ask for a partner by a relation of periods."""
    parts = parts_of(select.args.get("where")) if select.args.get("from_") is not None else []
    found = (_exists(part) for part in parts)
    return [each for each in found if each is not None]


def _exists(part: exp.Expr) -> Exists | None:
    kind: Literal["semi", "anti"] = "semi"
    inner = part.unnest()
    while isinstance(inner, exp.Not):
        kind = "anti" if kind == "semi" else "semi"
        inner = inner.this.unnest()
    query = inner.this if isinstance(inner, exp.Exists) else None
    query = query.unnest() if isinstance(query, exp.Subquery) else query
    if not isinstance(query, exp.Select) or query.args.get("from_") is None:
        return None
    own = _names(query)
    relations = [node for node in own_nodes(query) if isinstance(node, PeriodRelation)]
    around = [each for each in relations if not {name.lower() for name in each.aliases} <= set(own)]
    if not around:
        return None
    _check_exists(query, around[0])
    source = query.args["from_"].this
    alias = source.alias_or_name
    conditions = parts_of(query.args.get("where"))
    on = tuple(each for each in conditions if not _is_own(each, alias))
    for each in on:
        if relations_in(each) and not is_related(each):
            refuse("a relation of periods is a condition of its own", each, SHAPE)
    if not any(map(is_related, on)):
        refuse("a relation of periods outside of WHERE", around[0], SHAPE)
    rows = exp.Select(expressions=[exp.Star()])
    rows.set("from_", exp.From(this=source.copy()))
    filters = [each.copy() for each in conditions if _is_own(each, alias)]
    if filters:
        rows.set("where", exp.Where(this=conjoined(filters)))
    named = exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
    of = next(name for name in around[0].aliases if name.lower() not in own)
    return Exists(part, of, kind, exp.Subquery(this=rows, alias=named), on)


def _check_exists(query: exp.Select, relation: PeriodRelation) -> None:
    """Refuse an EXISTS by relation that has more than one source and its conditions."""
    more = {key for key, value in query.args.items() if value} - _EXISTS_KEYS
    aggregate = next((each for each in query.expressions if each.find(exp.AggFunc)), None)
    if more or query.args["from_"].this.args.get("joins") or aggregate is not None:
        what = "an EXISTS by the relation of periods reads one source, with a WHERE and no more"
        refuse(what, relation, "put joins, groups and limits into a SELECT in brackets in its FROM")


def _is_own(part: exp.Expr, alias: str) -> bool:
    """Whether a condition reads only the rows of the EXISTS."""
    if relations_in(part):
        return False
    columns = [node for node in (part, *own_nodes(part)) if isinstance(node, exp.Column)]
    return all(column.table.lower() in ("", alias.lower()) for column in columns)


# A relation as SQL


def written_out(part: exp.Expr) -> exp.Expr:
    """Return a condition on one pair of periods as comparisons of their bounds."""
    first = relations_in(part)[0]
    start, end, other_start, other_end = (each.copy() for each in first.expressions)
    mask = mask_of(part, first.aliases[0])
    found = [
        _compared(each, (start, end), (other_start, other_end)) for each in allen.relations_of(mask)
    ]
    lasting = [exp.LT(this=start.copy(), expression=end.copy()),
               exp.LT(this=other_start.copy(), expression=other_end.copy())]  # fmt: skip
    return conjoined([*lasting, exp.paren(exp.or_(*found, copy=False), copy=False)])


def _compared(
    relation: int, one: tuple[exp.Expr, exp.Expr], other: tuple[exp.Expr, exp.Expr]
) -> exp.Expr:
    compare: dict[int, type[exp.Binary]] = {-1: exp.LT, 0: exp.EQ, 1: exp.GT}

    def is_(sign: int, left: exp.Expr, right: exp.Expr) -> exp.Expr:
        return compare[sign](this=left.copy(), expression=right.copy())

    apart = {
        allen.BEFORE: (-1, one[1], other[0]),
        allen.MEETS: (0, one[1], other[0]),
        allen.AFTER: (1, one[0], other[1]),
        allen.MET_BY: (0, one[0], other[1]),
    }
    if relation in apart:
        return is_(*apart[relation])
    starts = next(place for place, group in enumerate(allen.GROUPS) if relation & group) - 1
    sooner = allen.OVERLAPS | allen.STARTS | allen.DURING
    together = allen.FINISHED_BY | allen.EQUALS | allen.FINISHES
    ends = -1 if relation & sooner else 0 if relation & together else 1
    return exp.paren(
        conjoined(
            [
                is_(-1, one[0], other[1]),
                is_(1, one[1], other[0]),
                is_(starts, one[0], other[0]),
                is_(ends, one[1], other[1]),
            ]
        ),
        copy=False,
    )


def mask_of(part: exp.Expr, first: str) -> int:
    """Return the relations that a condition on one pair allows, seen from one side."""
    inner = part.unnest()
    match inner:
        case PeriodRelation():
            turned = inner.aliases[0].lower() != first.lower()
            return allen.inverse(inner.mask) if turned else inner.mask
        case exp.Not():
            return allen.ANY & ~mask_of(inner.this, first)
        case exp.Or():
            return reduce(int.__or__, (mask_of(each, first) for each in inner.flatten()))
        case exp.And():
            return reduce(int.__and__, (mask_of(each, first) for each in inner.flatten()))
    raise TypeError(type(inner))
