"""The rewrites and checks of a query before it is cut.

Each is about some piece of syntax. What a query has is found in one walk, and a query without that
syntax does not go through the rewrite.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from eventide.lang.sql.ctes import inline_ctes
from eventide.lang.sql.functions.of_flink import FLINK_FUNCTIONS, apply_flink_functions
from eventide.lang.sql.names.lists import apply_lists, read_short_lists, refuse_ambiguous
from eventide.lang.sql.names.qualifiers import check_qualifiers
from eventide.lang.sql.ordering import check_limits
from eventide.lang.sql.standing.find import inline_standing
from eventide.lang.sql.standing.versions import give_windows
from eventide.lang.sql.windows.table_functions import (
    BOUND_FUNCTIONS,
    WindowTable,
    apply_window_tables,
)
from eventide.schema import Schema


@dataclass(frozen=True, slots=True)
class Syntax:
    """What a query has: kinds of nodes, and functions that sqlglot does not know.

    standing     a window in brackets, or ISTREAM and its like
    qualified    a name in front of a dot
    table_call   something in FROM that looks like a call
    """

    kinds: frozenset[type[exp.Expr]]
    functions: frozenset[str]
    standing: bool
    qualified: bool
    table_call: bool

    @classmethod
    def of(cls, query: exp.Expr) -> Syntax:
        """Return what a query has."""
        kinds, functions = set[type[exp.Expr]](), set[str]()
        standing = qualified = table_call = False
        for node in query.walk():
            kinds.add(type(node))
            standing = standing or "stream_window" in node.args or "report" in node.args
            if isinstance(node, exp.Column):
                qualified = qualified or bool(node.table)
            elif isinstance(node, exp.Anonymous):
                functions.add(node.name.lower())
                table_call = table_call or isinstance(node.parent, exp.Table)
        return cls(frozenset(kinds), frozenset(functions), standing, qualified, table_call)

    def has(self, *kinds: type[exp.Expr]) -> bool:
        """Whether a query has a node of one of these kinds."""
        return not self.kinds.isdisjoint(kinds)


def rewrite(query: exp.Query, catalog: Mapping[str, Schema]) -> Syntax:
    """Rewrite a query in place, and return what it has."""
    syntax = Syntax.of(query)
    flink = not syntax.functions.isdisjoint(FLINK_FUNCTIONS)
    windows = syntax.has(WindowTable) or not syntax.functions.isdisjoint(BOUND_FUNCTIONS)
    if flink:
        apply_flink_functions(query)
    if windows:
        apply_window_tables(query)
    if syntax.table_call:
        read_short_lists(query, catalog)
    versions = syntax.has(exp.Version)
    if versions:
        give_windows(query, catalog)
    if flink or windows or syntax.table_call or versions:
        syntax = Syntax.of(query)
    if syntax.qualified:
        check_qualifiers(query)
    if syntax.has(exp.Limit, exp.Offset):
        check_limits(query)
    if syntax.has(exp.Subquery, exp.CTE, exp.Values):
        refuse_ambiguous(query, catalog)
    if syntax.has(exp.TableAlias):
        apply_lists(query, catalog)
    if syntax.has(exp.CTE):
        inline_ctes(query)
        inline_standing(query)
    return syntax
