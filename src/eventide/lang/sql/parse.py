"""A statement → sqlglot's syntax tree, with sqlglot's errors turned into ours."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.errors import ParseError as SqlglotParseError
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from eventide.errors import ParseError, Span, UnsupportedError
from eventide.lang.parameters import assigned
from eventide.lang.sql.dialect import Eventide
from eventide.lang.sql.functions.arguments import ArgumentParser
from eventide.lang.sql.parameters import SIGNS, parameters_in, substituted
from eventide.lang.sql.situations.tokens import CLAUSES, readable
from eventide.lang.sql.spans import span_of
from eventide.lang.sql.statement import QUERY_HINT, Statement

if TYPE_CHECKING:
    from eventide.lang.sql.cel.read import CelParts


def parse(statement: Statement, params: object = None) -> exp.Query:
    """Return the query that a statement is; `params` are the values of its parameters."""
    if statement.explain is not None:
        kind = "EXPLAIN"
        raise _no_query(kind)
    given: Sequence[Token] = statement.tokens
    cel = _cel_of(statement)
    values: Mapping[int, object] = {}
    if params is not None or cel or any(each.token_type in SIGNS for each in given):
        own = parameters_in(given)
        values = assigned([*own, *(cel.parameters if cel else ())], params)
        given = substituted(given, values)
    selects = cel.selects(values) if cel else []
    if statement.kind == "cel":
        return selects[0]
    tokens = list(given)
    if not statement.plain:
        tokens = readable(given, is_statement=statement.kind == "tpstream")
    try:
        statements = _statements(tokens, statement)
    except SqlglotParseError as error:
        raise _pattern_in_window(statement.text) or _error(error, statement.text, tokens) from None
    except SqlglotError as error:
        message = f"cannot read the query: {error}"
        raise ParseError(message, hint=QUERY_HINT) from None
    if not statements:
        message = "the query is empty"
        raise ParseError(message, hint=QUERY_HINT)
    if len(statements) > 1:
        raise _several(span_of(statements[1]))
    query = _query(statements[0])
    _put_written(query, statement, selects)
    for select in query.find_all(exp.Select):
        if not select.expressions:
            message = "SELECT names no columns"
            raise ParseError(message, span=span_of(select) or Span(0, 6), hint=QUERY_HINT)
    return query


def _cel_of(statement: Statement) -> CelParts | None:
    """Return the CEL of a statement; what reads it is imported if there is any."""
    if not statement.cel:
        return None
    from eventide.lang.sql.cel.read import CelParts

    return CelParts.of(statement.text, statement.cel)


def _put_written(query: exp.Query, statement: Statement, selects: Sequence[exp.Select]) -> None:
    """Put what is written in other languages into FROM; what does that is imported if there is."""
    if not (selects or statement.tree_patterns):
        return
    from eventide.lang.sql.names.put_sources import put_sources
    from eventide.lang.sql.xml.table import XPATH, pattern_select

    put_sources(query, "CEL", selects)
    text = statement.text
    put_sources(query, XPATH, [pattern_select(text, each) for each in statement.tree_patterns])


def _several(span: Span | None) -> ParseError:
    return ParseError("more than one statement", span=span, hint="run them one at a time")


def _statements(tokens: list[Token], statement: Statement) -> list[exp.Expr]:
    dialect = Eventide()
    parser = ArgumentParser(dialect=dialect) if statement.plain else dialect.parser()
    # sqlglot logs a warning about statements it does not know; they become errors of ours.
    logger, level = logging.getLogger("sqlglot"), logging.getLogger("sqlglot").level
    logger.setLevel(logging.ERROR)
    try:
        parsed = parser.parse(tokens, statement.text)
    finally:
        logger.setLevel(level)
    return [each for each in parsed if each is not None]


def _query(statement: exp.Expr) -> exp.Query:
    if isinstance(statement, exp.Query):
        return statement
    kind = statement.key.upper() if not isinstance(statement, exp.Command) else str(statement.this)
    if isinstance(statement, exp.Column | exp.Alias | exp.Literal | exp.Binary):
        message = "not a query"
        raise ParseError(message, span=span_of(statement), hint=QUERY_HINT)
    raise _no_query(kind)


def _no_query(kind: str) -> UnsupportedError:
    hint = "only SELECT is SQL here; create streams and append events through the Python API"
    if kind == "CREATE":
        hint = "CREATE STREAM name AS SELECT … and CREATE VIEW work; other streams: create_stream"
    span = Span(0, len(kind))
    return UnsupportedError(f"{kind} is not a query", span=span, hint=hint)


def _error(error: SqlglotParseError, text: str, tokens: Sequence[Token]) -> ParseError:
    """Return sqlglot's error as ours; it may be that another statement follows the first."""
    found = parse_error(error, text)
    for end, word in pairwise(tokens):
        if end.token_type == TokenType.SEMICOLON and found.span and end.start < found.span.start:
            return _several(Span(word.start, word.end + 1))
    return found


def parse_error(error: SqlglotParseError, text: str, what: str = "the query") -> ParseError:
    """Return sqlglot's error as ours; `what` names the kind of text."""
    first = error.errors[0] if error.errors else {}
    highlight = str(first.get("highlight") or "")
    span = _place(text, int(first.get("line") or 1), int(first.get("col") or 1), highlight)
    shown = f"near {highlight!r}" if highlight else "at the end"
    return ParseError(f"cannot read {what} {shown}", span=span, hint=_hint(first, highlight))


def _pattern_in_window(text: str) -> UnsupportedError | None:
    """Return the error for a row pattern in OVER or WINDOW, which sqlglot cannot read."""
    pattern = re.search(
        r"\b(?:OVER|AS)\s*\((?:[^()]|\([^()]*\))*?\b(PATTERN)\s*\(", text, re.IGNORECASE
    )
    if pattern is None or re.search(r"\b(?:MATCH_RECOGNIZE|TPSTREAM)\b", text, re.IGNORECASE):
        return None
    message = "row patterns in a window are beyond Eventide"
    hint = "put the pattern behind the stream: FROM stream MATCH_RECOGNIZE (… PATTERN (…) …)"
    return UnsupportedError(message, span=Span(*pattern.span(1)), hint=hint)


def _place(text: str, line: int, column: int, highlight: str) -> Span:
    """Return the token that ends at a line and column, both counted from one."""
    lines = text.split("\n")
    end = sum(len(each) + 1 for each in lines[: line - 1]) + column
    return Span(max(0, end - max(1, len(highlight))), end)


def _hint(first: dict[str, object], highlight: str) -> str:
    description = str(first.get("description") or "")
    expected = re.match(r"Expect(?:ed|ing) (.+?)(?: but got .*)?$", description)
    if expected:
        return f"expected {expected[1]}"
    if highlight.upper() in ("MATCH_RECOGNIZE", *CLAUSES):
        return "it stands behind a stream or a subquery in FROM"
    if highlight in ("(", ","):
        return f"something is missing after {highlight!r}"
    return QUERY_HINT
