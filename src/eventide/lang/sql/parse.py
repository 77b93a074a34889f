"""Query text → sqlglot's syntax tree, with sqlglot's errors turned into ours."""

from __future__ import annotations

import logging
import re
from itertools import pairwise

from sqlglot import exp
from sqlglot.errors import ParseError as SqlglotParseError
from sqlglot.errors import SqlglotError, TokenError
from sqlglot.tokenizer_core import TokenType

from eventide.errors import ParseError, Span, UnsupportedError
from eventide.lang.sql.dialect import Eventide
from eventide.lang.sql.parameters import substituted
from eventide.lang.sql.situations.tokens import CLAUSES, readable
from eventide.lang.sql.spans import span_of

_HINT = "a query is SELECT … FROM stream [WHERE …] [GROUP BY …]"


def parse(text: str, params: object = None) -> exp.Query:
    """Return the one query that the text holds; `params` are the values of its parameters."""
    try:
        text.encode()
        _refuse_endless(text)
        statements = _statements(text, params)
    except UnicodeEncodeError as error:
        message = f"the query has half a character, {text[error.start]!r}"
        place = Span(error.start, error.end)
        raise ParseError(message, span=place, hint="read the text as UTF-8") from None
    except SqlglotParseError as error:
        known = _pattern_in_window(text) or _command(text)
        raise known or parse_error(error, text) from None
    except TokenError:
        raise token_error(text) from None
    except SqlglotError as error:
        message = f"cannot read the query: {error}"
        raise ParseError(message, hint=_HINT) from None
    if not statements:
        message = "the query is empty"
        raise ParseError(message, hint=_HINT)
    if len(statements) > 1:
        raise _several(span_of(statements[1]))
    query = _query(statements[0])
    for select in query.find_all(exp.Select):
        if not select.expressions:
            message = "SELECT names no columns"
            raise ParseError(message, span=span_of(select) or Span(0, 6), hint=_HINT)
    return query


_LONG = 10_000
"""Longer texts are checked for depth before they are parsed."""
_DEEPEST = 1_000
_LONGEST_CHAIN = 3_000
_SEPARATORS = (TokenType.COMMA, TokenType.SELECT)
_LINKS = frozenset(
    {
        *(TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.PLUS, TokenType.DASH),
        *(TokenType.STAR, TokenType.SLASH, TokenType.DPIPE, TokenType.CASE),
    }
)
_SETS = (TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT)


def _refuse_endless(text: str) -> None:
    """Refuse too deep brackets and too long chains: parsing them takes minutes, then fails."""
    if len(text) < _LONG:
        return
    open_chains = [[0, 0]]
    for token in Eventide().tokenize(text):
        kind, chains = token.token_type, open_chains[-1]
        if kind == TokenType.L_PAREN:
            open_chains.append([0, 0])
        elif kind == TokenType.R_PAREN and len(open_chains) > 1:
            open_chains.pop()
        elif kind in _SEPARATORS:
            chains[0] = 0
        elif kind in _LINKS:
            chains[0] += 1
        elif kind in _SETS:
            chains[1] += 1
        if len(open_chains) > _DEEPEST or max(chains) > _LONGEST_CHAIN:
            raise too_deep(Span(token.start, token.end + 1))


def too_deep(span: Span | None = None) -> ParseError:
    """Return the error for a query that is nested too deeply to be parsed."""
    hint = "write x IN (…) for many ORs; split it with WITH"
    return ParseError("the query is nested too deeply", span=span, hint=hint)


def _several(span: Span | None) -> ParseError:
    return ParseError("more than one statement", span=span, hint="run them one at a time")


def _statements(text: str, params: object) -> list[exp.Expr]:
    # sqlglot logs a warning about statements it does not know; they become errors of ours.
    logger, level = logging.getLogger("sqlglot"), logging.getLogger("sqlglot").level
    logger.setLevel(logging.ERROR)
    try:
        dialect = Eventide()
        tokens = substituted(dialect.tokenize(text), params)
        return [each for each in dialect.parser().parse(tokens, text) if each is not None]
    finally:
        logger.setLevel(level)


def _query(statement: exp.Expr) -> exp.Query:
    if isinstance(statement, exp.Query):
        return statement
    kind = statement.key.upper() if not isinstance(statement, exp.Command) else str(statement.this)
    if isinstance(statement, exp.Column | exp.Alias | exp.Literal | exp.Binary):
        message = "not a query"
        raise ParseError(message, span=span_of(statement), hint=_HINT)
    message = f"{kind} is not a query"
    hint = "only SELECT is SQL here; create streams and append events through the Python API"
    raise UnsupportedError(message, span=Span(0, len(kind)), hint=hint)


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


def _command(text: str) -> ParseError | None:
    """Return the error for a second statement that sqlglot cannot read behind another."""
    tokens = readable(Eventide().tokenize(text))
    for end, word in pairwise(tokens):
        if end.token_type == TokenType.SEMICOLON and word.token_type in Eventide.Tokenizer.COMMANDS:
            return _several(Span(word.start, word.end + 1))
    return None


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
    return _HINT


def token_error(text: str) -> ParseError:
    """Return the error for a text that cannot be cut into tokens."""
    for quote, what in (("'", "string"), ('"', "quoted name")):
        if text.count(quote) % 2:
            place = text.rfind(quote)
            message = f"a {what} is not closed"
            return ParseError(message, span=Span(place, place + 1), hint=f"end it with {quote}")
    return ParseError("the query has characters that are not SQL", hint=_HINT)
