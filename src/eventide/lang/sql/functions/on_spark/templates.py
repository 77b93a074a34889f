"""Expressions of Spark's SQL made from templates, and errors for what Spark cannot do."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import sqlglot
from sqlglot import exp

from eventide.errors import UnsupportedError
from eventide.lang.sql.functions.arguments import unread
from eventide.lang.sql.functions.kinds import Kinds
from eventide.lang.sql.spans import span_of, written

EMBEDDED_HINT = "run this query without Spark, or compute it on the DataFrame"


@cache
def _template(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, dialect="spark")


def filled(text: str, **values: exp.Expr) -> exp.Expr:
    """Return Spark's SQL with expressions in the place of :names."""
    tree = exp.Paren(this=_template(text).copy())
    for place in list(tree.find_all(exp.Placeholder)):
        value = values[place.name]
        wrapped = value if isinstance(value, exp.Column | exp.Literal) else exp.Paren(this=value)
        place.replace(wrapped.copy())
    return tree


def filled_integer(text: str, **values: exp.Expr) -> exp.Expr:
    """Return a template, filled, as a BIGINT."""
    return filled(f"CAST({text} AS BIGINT)", **values)


def beyond_spark(what: str, node: exp.Expr, hint: str = EMBEDDED_HINT) -> UnsupportedError:
    """Return the error for an expression that Spark would answer differently, or not at all."""
    return UnsupportedError(f"{what} is not handed to Spark", span=span_of(node), hint=hint)


def one_argument(form: str, *, whole: bool = False) -> Callable[[exp.Expr, Kinds], exp.Expr]:
    """Return how to rewrite a function of one argument: by a template."""

    def rewrite(node: exp.Expr, _: Kinds) -> exp.Expr:
        if unread(node, "this") is not None:
            raise beyond_spark(written(node), node)
        return (filled_integer if whole else filled)(form, x=node.this)

    return rewrite


def refused(node: exp.Expr, _: Kinds) -> exp.Expr:
    """Refuse a function."""
    raise beyond_spark(written(node), node)


Rewrite = Callable[[exp.Expr, Kinds], exp.Expr]
