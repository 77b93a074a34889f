"""Names of the columns of a SELECT: the same on every engine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sqlglot import ErrorLevel, exp

from eventide.lang.sql.dialect import Eventide
from eventide.lang.sql.names.scope import Scope
from eventide.lang.sql.names.written import Item

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def item_name(node: exp.Expr, scopes: Iterable[Scope] = ()) -> str:
    """Return the name of an item: its alias, its column as the schema spells it, or its text."""
    if isinstance(node, exp.Alias):
        return str(node.alias)
    if isinstance(node, exp.Column):
        spelled = (scope.find(node.name) for scope in scopes if scope.owns(node))
        return next((name for name in spelled if name is not None), node.name)
    # Whether DuckDB could run the text does not matter for its name.
    return node.sql(
        dialect=Eventide,
        normalize_functions="lower",
        comments=False,
        unsupported_level=ErrorLevel.IGNORE,
    )


def written_name(item: Item, scope: Scope) -> str:
    """Return the name of the column that an item of a clause of ours becomes."""
    return item.name.text if item.name is not None else item_name(item.node, [scope])


def identifier(name: str) -> exp.Identifier:
    """Return a name as syntax, quoted where it has to be."""
    return exp.to_identifier(name, quoted=not _PLAIN.fullmatch(name))


def fresh(name: str, used: Iterable[str]) -> str:
    """Return the name, with a number behind it if it is taken.

    >>> fresh("n", ["n", "n_2"])
    'n_3'
    """
    taken = {each.lower() for each in used}
    candidate, count = name, 1
    while candidate.lower() in taken:
        count += 1
        candidate = f"{name}_{count}"
    return candidate


def unique_names(names: Sequence[str]) -> list[str]:
    """Return the names, with a number behind each that occurred before; case does not matter.

    >>> unique_names(["v", "V", "v_1", "v"])
    ['v', 'V_2', 'v_1', 'v_3']
    """
    taken = {name.lower() for name in names}
    seen: set[str] = set()
    unique: list[str] = []
    for name in names:
        found, count = name, 0
        while found.lower() in seen or (count and found.lower() in taken):
            count += 1
            found = f"{name}_{count}"
        seen.add(found.lower())
        unique.append(found)
    return unique
