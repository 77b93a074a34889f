"""Parts of SQL: names, literals, and conditions that are true or false and never null."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Equality:
    """`left = right`; several with the same left side become one IN."""

    left: str
    right: str

    def __str__(self) -> str:
        return f"{self.left} = {self.right}"


Condition = str | Equality


def quoted(name: str) -> str:
    """Return a name as SQL.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def literal(value: str | float) -> str:
    """Return a text or a number as SQL.

    >>> literal("it's"), literal(-2), literal(1.5)
    ("'it''s'", '-2', '1.5')
    """
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


AT_ONCE = 20
"""More conditions than these are joined in groups: a parser goes as deep as a chain is long."""


def all_of(conditions: Iterable[Condition]) -> str:
    """Return the condition that all of some conditions hold.

    >>> all_of(["a", "b"])
    '(a AND b)'
    """
    return joined([str(each) for each in conditions], " AND ")


def joined(parts: list[str], word: str) -> str:
    """Return conditions joined by a word, in brackets if there are several."""
    while len(parts) > AT_ONCE:
        groups = (parts[start : start + AT_ONCE] for start in range(0, len(parts), AT_ONCE))
        parts = [joined(group, word) for group in groups]
    return parts[0] if len(parts) == 1 else f"({word.join(parts)})"


def any_of(conditions: Iterable[Condition]) -> Condition:
    """Return the condition that one of some conditions holds; equalities are gathered.

    >>> str(any_of([Equality("x", "1"), "y", Equality("x", "2")]))
    '(x IN (1, 2) OR y)'
    """
    listed: dict[str, list[str]] = {}
    parts: dict[object, Condition] = {}
    for each in conditions:
        if not isinstance(each, Equality):
            parts[each] = each
            continue
        values = listed.setdefault(each.left, [])
        if each.right not in values:
            values.append(each.right)
        several = f"{each.left} IN ({', '.join(values)})"
        parts[Equality, each.left] = each if len(values) == 1 else several
    found = list(parts.values())
    return found[0] if len(found) == 1 else joined([str(each) for each in found], " OR ")


def none_of(condition: Condition) -> str:
    """Return the condition that another one does not hold: a null in it counts as false.

    >>> none_of("a = 1")
    'NOT COALESCE(a = 1, FALSE)'
    """
    return f"NOT COALESCE({condition}, FALSE)"
