"""Check names and expressions that become part of a query's text.

Text that is put into a query must not reach beyond its place there, by an extra bracket or by a
comment. So it is parsed alone first, and goes into the query without surrounding comments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sqlglot import exp
from sqlglot.errors import ParseError as SqlglotParseError
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from eventide.errors import EventideError, ParseError, Span
from eventide.lang.sql.dialect import Eventide
from eventide.lang.sql.parse import parse, parse_error
from eventide.lang.sql.patterns.parser import MatchParser
from eventide.lang.sql.statement import read_statement, token_error

Kind = Literal["expression", "ordering", "query"]

_CLOSING = {
    TokenType.L_PAREN: TokenType.R_PAREN,
    TokenType.L_BRACKET: TokenType.R_BRACKET,
    TokenType.L_BRACE: TokenType.R_BRACE,
}
_WORDS = frozenset(("RUNNING", "FINAL", "PATTERN"))
"""Words with a meaning in MATCH_RECOGNIZE at places where a name may stand."""


class _FragmentParser(MatchParser):
    """Reads expressions of MATCH_RECOGNIZE without the clause around them."""

    def reset(self) -> None:
        """Forget the last text."""
        super().reset()
        self._match_depth = 1


def name_text(name: str) -> str:
    """Return a name as a query writes it, quoted unless it is a plain word.

    >>> name_text("car"), name_text("max speed"), name_text("select"), name_text('a" b')
    ('car', '"max speed"', '"select"', '"a"" b"')
    """
    try:
        words = Eventide().tokenize(name) if name.isidentifier() else []
    except SqlglotError:
        words = []
    plain = [word.token_type for word in words] == [TokenType.VAR] and name.upper() not in _WORDS
    return name if plain else '"' + name.replace('"', '""') + '"'


def fragment(text: str, what: str, kind: Kind = "expression") -> str:
    """Return a part of SQL without comments around it; an error calls it `what`.

    >>> fragment(" speed > 3 -- fast", "the condition of B")
    'speed > 3'
    """
    try:
        tokens = _tokens(text, what)
        _read(tokens, text, what, kind)
    except RecursionError:
        message = f"{what} is nested too deeply"
        raise ParseError(message, hint="write x IN (…) for many ORs").located_in(text) from None
    except EventideError as error:
        if what not in error.message:
            error.message = f"{what}: {error.message}"
        raise error.located_in(text) from None
    return text[tokens[0].start : tokens[-1].end + 1]


def _tokens(text: str, what: str) -> Sequence[Token]:
    """Return the tokens of a text; every bracket has to have its partner."""
    try:
        tokens = Eventide().tokenize(text)
    except SqlglotError:
        raise token_error(text) from None
    if not tokens:
        message = f"{what} is empty"
        raise ParseError(message, hint="write it as SQL text")
    opened: list[Token] = []
    for token in tokens:
        span = Span(token.start, token.end + 1)
        if token.token_type in _CLOSING:
            opened.append(token)
        elif token.token_type in _CLOSING.values():
            if not opened or _CLOSING[opened.pop().token_type] != token.token_type:
                message = f"{what} has a {token.text} that closes nothing"
                raise ParseError(message, span=span, hint="leave it out, or open it before")
        elif token.token_type == TokenType.SEMICOLON:
            message = f"{what} ends at ;"
            raise ParseError(message, span=span, hint="leave out the ; and what follows")
    if opened:
        span = Span(opened[-1].start, opened[-1].end + 1)
        message = f"{what} has a {opened[-1].text} that is not closed"
        raise ParseError(message, span=span, hint="close it")
    return tokens


def _read(tokens: Sequence[Token], text: str, what: str, kind: Kind) -> None:
    if kind == "query":
        parse(read_statement(text))
        return
    into = exp.Ordered if kind == "ordering" else exp.Condition
    try:
        _FragmentParser(dialect=Eventide()).parse_into(into, list(tokens), text)
    except SqlglotParseError as error:
        found = parse_error(error, text, what)
        found.hint = f"it has to be one {kind}, such as {_EXAMPLES[kind]}"
        raise found from None


_EXAMPLES = {"expression": "speed > PREV(speed)", "ordering": "ts or speed DESC"}
