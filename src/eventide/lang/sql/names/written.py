"""Names and expressions as our clauses write them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from eventide.errors import Span
from eventide.plan.patterns.tree import fold


@dataclass(frozen=True, slots=True)
class Name:
    """A name as the query writes it."""

    text: str
    quoted: bool
    span: Span

    @property
    def folded(self) -> str:
        """The name as SQL compares it: without quotes, case does not matter."""
        return self.text if self.quoted else fold(self.text)

    def among(self, names: Iterable[Name]) -> str | None:
        """Return the spelling of the name meant.

        Without quotes, `b` is `B`. In quotes, `"b"` is the name with exactly this spelling, or else
        `"B"`, as in SQL.

        >>> names = [Name("b", True, Span(0, 3)), Name("B", False, Span(4, 5))]
        >>> Name("b", False, Span(9, 10)).among(names), Name("b", True, Span(9, 12)).among(names)
        ('B', 'b')
        """
        known = list(names)
        plain = [each for each in known if not (each.quoted or self.quoted)]
        found = [
            *(each.text for each in plain if each.folded == self.folded),
            *(each.text for each in known if each.text == self.text),
            *(each.text for each in known if each.folded == self.folded),
        ]
        return found[0] if found else None


@dataclass(frozen=True, slots=True)
class Item:
    """An expression of PARTITION BY or MEASURES, and the name behind its AS."""

    node: exp.Expr
    name: Name | None
