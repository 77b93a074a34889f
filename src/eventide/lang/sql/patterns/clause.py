"""MATCH_RECOGNIZE ( … ) as it was written.

The clause is a `RowPattern` in FROM, which holds its source and a `MatchClause`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, cast

from sqlglot import exp

from eventide.errors import Span
from eventide.lang.sql.names.written import Item, Name
from eventide.lang.sql.patterns.pattern import PatternText
from eventide.plan.patterns.tree import Output, SkipTo, Strategy

SEMANTICS = "semantics"
"""The key under which a node remembers the RUNNING or FINAL before it."""


class RowPattern(exp.Expression, exp.Func):
    """A source in FROM: a table or subquery, and the clause behind it.

    For sqlglot it is a function, so that every dialect can print it, in errors and column names.
    """

    _sql_names: ClassVar[list[str]] = ["MATCH_RECOGNIZE"]
    arg_types: ClassVar[dict[str, bool]] = {"this": True}

    @property
    def clause(self) -> MatchClause:
        """The parsed clause."""
        return cast("MatchClause", self.args["clause"])


@dataclass(frozen=True, slots=True)
class SkipText:
    """AFTER MATCH SKIP, as it was written."""

    to: SkipTo
    variable: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class Subset:
    """SUBSET name = (members)."""

    name: Name
    members: tuple[Name, ...]


@dataclass
class MatchClause:
    """The parts of a MATCH_RECOGNIZE. `seen` has the place of each clause that was given."""

    span: Span
    keys: list[Item] = field(default_factory=list)
    order: list[exp.Ordered] = field(default_factory=list)
    measures: list[Item] = field(default_factory=list)
    output: Output = "one row"
    timeout_rows: bool = False
    skip: SkipText | None = None
    strategy: Strategy = "contiguous"
    pattern: PatternText | None = None
    within: exp.Interval | None = None
    subsets: list[Subset] = field(default_factory=list)
    defines: list[tuple[Name, exp.Expr]] = field(default_factory=list)
    seen: dict[str, Span] = field(default_factory=dict)
