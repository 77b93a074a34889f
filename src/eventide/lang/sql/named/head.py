"""CREATE STREAM name AS, CREATE VIEW name AS, and DROP: what stands in front of a query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from eventide.errors import (
    BindError,
    EventideError,
    ParseError,
    Span,
    UnsupportedError,
    pointing_into,
)
from eventide.lang.sql.parameters import first_parameter
from eventide.lang.sql.statement import Statement
from eventide.plan.named import NamedKind
from eventide.plan.times import duration_us

_CREATE = "CREATE [OR REPLACE] [STORED] STREAM [IF NOT EXISTS] name AS SELECT …"
_CREATE_VIEW = "CREATE [OR REPLACE] VIEW [IF NOT EXISTS] name AS SELECT …"
_DROP = "DROP STREAM [IF EXISTS] name, or DROP VIEW [IF EXISTS] name"
_LATENESS = "WITH (lateness = '5 seconds')"


@dataclass(frozen=True, slots=True)
class NamedRequest:
    """A statement about a named query, and where its name stands."""

    text: str
    name: str
    span: Span

    @contextmanager
    def pointing(self) -> Iterator[None]:
        """Make errors that are raised inside show the whole statement."""
        try:
            yield
        except EventideError as error:
            error.located_in(self.text)
            raise


@dataclass(frozen=True, slots=True)
class CreateRequest(NamedRequest):
    """CREATE … AS query."""

    kind: NamedKind
    start: int
    """Where the query begins."""
    lateness_us: int = 0
    replace: bool = False
    if_not_exists: bool = False
    end: int | None = None
    """Where the query ends, if that is not the end of the text."""

    @property
    def query(self) -> str:
        """The text of the query."""
        return self.text[self.start : self.end].rstrip().rstrip(";").rstrip()

    @contextmanager
    def pointing(self) -> Iterator[None]:
        """Make errors that are raised inside show the whole statement."""
        try:
            yield
        except EventideError as error:
            if error.text == self.query:
                error.text = self.text
                if error.span is not None:
                    error.span = Span(error.span.start + self.start, error.span.end + self.start)
            error.located_in(self.text)
            raise


@dataclass(frozen=True, slots=True)
class DropRequest(NamedRequest):
    """DROP STREAM or DROP VIEW."""

    view: bool
    if_exists: bool = False


def named_request(statement: Statement) -> CreateRequest | DropRequest:
    """Return what a statement says about a named query.

    >>> from eventide.lang.sql.statement import read_statement
    >>> named_request(read_statement("DROP VIEW IF EXISTS fast")).if_exists
    True
    """
    if statement.explain is not None:
        message = "EXPLAIN is for queries"
        hint = "explain the query behind AS, or one that reads the name"
        raise UnsupportedError(message, span=Span(0, 7), hint=hint).located_in(statement.text)
    with pointing_into(statement.text):
        reader = _HeadReader(statement.text, statement.tokens)
        return reader.create() if reader.takes("CREATE") else reader.drop()


@dataclass
class _HeadReader:
    """Reads the tokens of a statement up to its query."""

    text: str
    tokens: Sequence[Token]
    place: int = 0

    @property
    def current(self) -> Token | None:
        return self.tokens[self.place] if self.place < len(self.tokens) else None

    def takes(self, *words: str) -> bool:
        """Whether words stand here; go on behind them if they do."""
        following = self.tokens[self.place : self.place + len(words)]
        written = [
            "" if each.token_type == TokenType.IDENTIFIER else each.text.upper()
            for each in following
        ]
        found = written == list(words)
        self.place += len(words) if found else 0
        return found

    def create(self) -> CreateRequest:
        replace = self.takes("OR", "REPLACE")
        stored = self.takes("STORED")
        view = not stored and self.takes("VIEW")
        shape = _CREATE_VIEW if view else _CREATE
        if not view and not self.takes("STREAM"):
            self.fail("STREAM is missing behind STORED", shape)
        if_not_exists = self.takes("IF", "NOT", "EXISTS")
        if replace and if_not_exists:
            self.fail("OR REPLACE and IF NOT EXISTS exclude each other", "leave one of them out")
        name, span = self.name(shape)
        lateness_us = 0
        if self.takes("WITH"):
            if view:
                self.fail("a view has no lateness", "leave WITH out, or write CREATE STREAM")
            lateness_us = self.lateness()
        if not self.takes("AS"):
            self.fail("AS is missing", shape)
        if self.current is None:
            self.fail("the query is missing behind AS", shape)
        parameter = first_parameter(self.tokens[self.place :])
        if parameter is not None:
            message = "a definition has no parameters"
            hint = "write the value itself, or leave the condition to the queries that read it"
            raise BindError(message, span=parameter, hint=hint)
        kind: NamedKind = "view" if view else "stored stream" if stored else "stream"
        start = self.current.start
        request = CreateRequest(
            self.text, name, span, kind, start, lateness_us, replace, if_not_exists
        )
        if self.current.text == "CEL":  # stands for a definition in CEL
            from eventide.lang.sql.cel.publish import check_definition

            check_definition(request)
        return request

    def drop(self) -> DropRequest:
        self.takes("DROP")
        stored = self.takes("STORED")
        view = not stored and self.takes("VIEW")
        if not view and not self.takes("STREAM"):
            self.fail("STREAM is missing behind STORED", _DROP)
        if_exists = self.takes("IF", "EXISTS")
        name, span = self.name(_DROP)
        self.takes(";")
        if self.current is not None:
            self.fail(f"cannot read the statement near {self.current.text!r}", _DROP)
        return DropRequest(self.text, name, span, view, if_exists)

    def name(self, shape: str) -> tuple[str, Span]:
        token = self.current
        quoted = token is not None and token.token_type == TokenType.IDENTIFIER
        named = token is not None and (quoted or token.text.isidentifier())
        if token is None or not named or token.text.upper() in ("AS", "WITH", "IF"):
            self.fail("a name is missing", shape)
        self.place += 1
        return token.text, Span(token.start, token.end + 1)

    def lateness(self) -> int:
        if not self.takes("(", "LATENESS", "="):
            self.fail("cannot read WITH", f"write {_LATENESS}")
        token = self.current
        if token is None or token.token_type != TokenType.STRING:
            self.fail("lateness is a duration in quotes", f"write {_LATENESS}")
        span = Span(token.start, token.end + 1)
        self.place += 1
        if not self.takes(")"):
            self.fail("WITH ( is not closed", f"write {_LATENESS}")
        try:
            lateness_us = duration_us(token.text)
            if lateness_us < 0:
                message = "lateness must not be negative"
                raise ParseError(message, hint=f"write {_LATENESS}")
            return lateness_us
        except EventideError as error:
            error.span = span
            raise

    def fail(self, message: str, hint: str) -> NoReturn:
        token = self.current or (self.tokens[-1] if self.tokens else None)
        span = None if token is None else Span(token.start, token.end + 1)
        raise ParseError(message, span=span, hint=hint)
