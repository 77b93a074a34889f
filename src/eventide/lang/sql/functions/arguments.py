"""Make sure that no argument of a function is lost while a query is parsed.

sqlglot reads functions of all dialects with builders that take the arguments they know: of
DATE_TRUNC('hour', ts, 'UTC') it keeps two. An argument that it does not keep is an error here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from sqlglot import exp
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import Token, TokenType

from eventide.errors import BindError, Span
from eventide.lang.sql.spans import span_of
from eventide.plan.functions import FUNCTIONS

_MOST: Mapping[type[exp.Expr], int] = {
    exp.Atan: 1,
    exp.Contains: 2,
    exp.Left: 2,
    exp.Length: 1,
    exp.RegexpLike: 3,
    exp.Right: 2,
    exp.Round: 2,
    exp.Substring: 3,
    exp.Week: 1,
}
"""How many arguments functions take in a query; sqlglot adds arguments of its own behind them."""
_COUNTED = ("QUANTILE", "QUANTILE_CONT", "QUANTILE_DISC", "APPROX_QUANTILE", "POSITION", "TRIM")
"""Functions that sqlglot parses in special ways."""

E = TypeVar("E", bound=exp.Expr)


class ArgumentParser(DuckDBParser):
    """DuckDB's grammar, in which a function takes all of its arguments or none."""

    def validate_expression(self, expression: E, args: list[exp.Expr] | None = None) -> E:
        """Return a parsed expression; `args` are its arguments, if it is a function."""
        if args:
            self._refuse_lost(expression, args)
        return super().validate_expression(expression, args)

    def _parse_function_call(
        self,
        functions: dict[str, Callable[..., Any]] | None = None,
        anonymous: bool = False,
        optional_parens: bool = True,
        any_token: bool = False,
    ) -> exp.Expr | None:
        first = self._index
        found = super()._parse_function_call(functions, anonymous, optional_parens, any_token)
        if found is not None and self._tokens[first].text.upper() in _COUNTED:
            self._refuse_unmarked(found, first)
        return found

    def _refuse_unmarked(self, function: exp.Expr, first: int) -> None:
        """Refuse an argument if nothing at its place in the text was kept."""
        marks = [node.meta["start"] for node in function.walk() if "start" in node.meta]
        name, depth = self._tokens[first], 0
        start = name.end + 2
        for token in self._tokens[first + 1 : self._index]:
            depth += (token.token_type == TokenType.L_PAREN) - (
                token.token_type == TokenType.R_PAREN
            )
            if depth > 1 or (depth == 1 and token.token_type != TokenType.COMMA):
                continue
            if not any(start <= mark < token.start for mark in marks):
                message = f"{name.text.upper()} takes fewer arguments"
                span = Span(start, token.start)
                raise BindError(message, span=span, hint="leave this one out")
            start = token.end + 1
            if depth == 0:
                return

    def _refuse_lost(self, function: exp.Expr, arguments: list[exp.Expr]) -> None:
        kept = {id(node) for node in function.walk()}
        words = {node.name.lower() for node in function.walk()}
        for argument in arguments:
            if any(id(node) in kept for node in argument.walk()):
                continue
            # A unit becomes a node of its own: DATE_TRUNC('hour', …).
            if argument.name and not argument.is_number and argument.name.lower() in words:
                continue
            raise self._too_many(function, arguments, argument)
        most = _MOST.get(type(function), len(function.arg_types))
        if (
            isinstance(function, exp.Func)
            and not function.is_var_len_args
            and len(arguments) > most
        ):
            raise self._too_many(function, arguments, arguments[most])

    def _too_many(
        self, function: exp.Expr, arguments: list[exp.Expr], culprit: exp.Expr
    ) -> BindError:
        token = self._function_token()
        name = function.key.upper() if token is None else token.text.upper()
        known = FUNCTIONS.get(name.lower())
        hint = f"it takes {known.takes}" if known is not None else "leave the last one out"
        message = f"{name} does not take {len(arguments)} arguments"
        start = None if token is None else Span(token.start, self._prev.end + 1)
        return BindError(message, span=span_of(culprit) or start, hint=hint)

    def _function_token(self) -> Token | None:
        """Return the name in front of the bracket that is open here."""
        depth = 0
        for place in range(self._index - 1, 0, -1):
            kind = self._tokens[place].token_type
            if kind == TokenType.R_PAREN:
                depth += 1
            elif kind == TokenType.L_PAREN and depth:
                depth -= 1
            elif kind == TokenType.L_PAREN:
                return self._tokens[place - 1]
        return None


def unread(node: exp.Expr, *keys: str) -> exp.Expr | None:
    """Return the first argument of a node that is under none of the given keys, if there is one.

    sqlglot also keeps arguments that only other dialects know: FLOOR(x, 2), FIRST(x, 2).
    """
    for key, value in node.args.items():
        for each in value if isinstance(value, list) else [value]:
            if key not in keys and isinstance(each, exp.Expr):
                return each
    return None
