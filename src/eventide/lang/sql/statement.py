"""What a text is: a query in SQL, TPStream or CEL, EXPLAIN, or CREATE or DROP of a named one.

The text is cut into tokens here, once. Everything after this works with the `Statement`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from eventide.errors import ParseError, Span, pointing_into
from eventide.lang.seen import LONGEST_TEXT, MOST_PLANS
from eventide.lang.sql.dialect import Eventide
from eventide.lang.sql.situations.hints import wrong_statement
from eventide.lang.sql.situations.tokens import (
    CLAUSES,
    PARTS,
    is_clause,
    is_statement,
    statement_start,
)
from eventide.lang.sql.standing.clause import REPORTS, WINDOW_WORDS
from eventide.lang.sql.windows.table_functions import WINDOW_TABLES
from eventide.plan.situations.allen import WORDS

Kind = Literal["query", "tpstream", "cel", "create", "drop"]

QUERY_HINT = "a query is SELECT … FROM stream [WHERE …] [GROUP BY …]"

_BEFORE = r"(?:\s|--[^\n]*(?:\n|$)|/\*(?:[^*]|\*(?!/))*\*/)*+"
_EXPLAIN = re.compile(
    rf"{_BEFORE}(EXPLAIN\b(?:{_BEFORE}(?P<analyze>ANALY[ZS]E\b|\(\s*ANALY[ZS]E\s*\)))?)",
    re.IGNORECASE | re.DOTALL,
)
_NAMED = frozenset({"STREAM", "STORED", "VIEW"})
"""What stands behind CREATE or DROP of a named query."""
_MOST_DIGITS = 1_000
_MAY_BE_CEL = re.compile(r"\{|\bPUBLISH\b|\bCEL\b", re.IGNORECASE)
_MAY_HAVE_PATTERNS = re.compile(r"\bXPATH\s*\(", re.IGNORECASE)
_NO_NEWLINE = re.compile(r"[^\n]")
_NUL = "\0"
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
_OUR_TOKENS = frozenset(
    {
        *(TokenType.SELECT, TokenType.WITH, TokenType.TABLE),
        *(TokenType.L_BRACKET, TokenType.MATCH_RECOGNIZE),
    }
)
_OUR_WORDS = frozenset((*CLAUSES, *REPORTS))
_IN_BRACKETS = PARTS | {*WINDOW_WORDS}
"""Words that begin a clause of ours behind a round bracket, perhaps by mistake."""
_RELATIONS = frozenset(word.split()[0].upper() for word in WORDS)
_CONDITIONS = frozenset(
    {
        *(TokenType.WHERE, TokenType.ON, TokenType.HAVING),
        *(TokenType.AND, TokenType.OR, TokenType.NOT),
    }
)
"""Keywords that a name may follow in a condition."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A text and what it is. `tokens` are its words without EXPLAIN, at their places in `text`."""

    text: str
    tokens: tuple[Token, ...]
    kind: Kind
    explain: Literal["plan", "analyze"] | None = None
    plain: bool = False
    """Whether it is a SELECT without anything that our grammar adds to SQL's."""
    cel: tuple[Span, ...] = ()
    """Where CEL stands: in FROM CEL (…), or the whole text without EXPLAIN."""
    tree_patterns: tuple[Span, ...] = ()
    """Where tree_patterns stand, in FROM XPATH (…)."""

    @property
    def explained(self) -> Statement:
        """The statement behind EXPLAIN."""
        return replace(self, explain=None)


def read_statement(text: str) -> Statement:
    """Return what a text is; refuse what no text may have.

    >>> read_statement("EXPLAIN ANALYZE FROM cars PARTITION BY car DEFINE a AS x > 1").kind
    'tpstream'
    """
    return _read(text) if len(text) > LONGEST_TEXT else _read_once(text)


def _read(text: str) -> Statement:
    with pointing_into(text):
        _check_encoded(text)
        start, explain = _explain(text)
        query = _NO_NEWLINE.sub(" ", text[:start]) + text[start:]
        parts: tuple[Span, ...] = ()
        tree_patterns: tuple[Span, ...] = ()
        if _MAY_HAVE_PATTERNS.search(text) is not None:
            from eventide.lang.sql.xml.written import without_patterns

            query, tree_patterns = without_patterns(query)
        if _MAY_BE_CEL.search(text) is not None:
            from eventide.lang.sql.cel.written import without_cel

            written = without_cel(query)
            if written.whole:
                return Statement(text, (), "cel", explain, cel=(Span(start, len(text)),))
            query, parts = written.sql, written.parts
        tokens = _tokens(query, text)
        _check_words(tokens)
        _refuse_endless(text, tokens)
        plain = not parts and not tree_patterns and _is_plain(tokens)
        return Statement(text, tokens, _kind(tokens), explain, plain, parts, tree_patterns)


_read_once = lru_cache(maxsize=MOST_PLANS)(_read)


def read_cel(text: object) -> Statement:
    """Return a CEL text, with or without EXPLAIN; also one that is SQL as well."""
    if not isinstance(text, str):
        message = f"a CEL query is a text, not {type(text).__name__}"
        raise ParseError(message, hint='write it in quotes: cel("SELECT … FROM FILTER{…}(cars)")')
    with pointing_into(text):
        _check_encoded(text)
        start, explain = _explain(text)
        return Statement(text, (), "cel", explain, cel=(Span(start, len(text)),))


def read_tpstream(text: object) -> Statement:
    """Return a TPStream statement, with or without EXPLAIN; refuse any other text."""
    if not isinstance(text, str):
        message = f"a TPStream statement is a text, not {type(text).__name__}"
        hint = 'write it in quotes: tpstream("FROM cars DEFINE … PATTERN … WITHIN … RETURN …")'
        raise ParseError(message, hint=hint)
    statement = read_statement(text)
    if statement.kind == "tpstream":
        return statement
    tokens = statement.tokens
    span = _span(tokens[0]) if tokens else None
    hint = "it is FROM stream PARTITION BY … DEFINE … PATTERN … WITHIN … RETURN …; sql takes SQL"
    for word, following in pairwise(tokens):
        if is_clause(word, following):
            span = _span(word)
            hint = f"{word.text.upper()} (…) is SQL: use sql, as in db.sql(…)"
            break
    raise ParseError("not a TPStream statement", span=span, hint=hint).located_in(text)


def _kind(tokens: Sequence[Token]) -> Kind:
    first = tokens[0].token_type if tokens else None
    if first in (TokenType.CREATE, TokenType.DROP):
        words = [each.text.upper() for each in tokens[1:4]]
        named = words[2:] if words[:2] == ["OR", "REPLACE"] else words
        if not _NAMED.isdisjoint(named[:1]):
            return "create" if first == TokenType.CREATE else "drop"
    if first not in (TokenType.FROM, TokenType.WITH) or statement_start(tokens) == len(tokens):
        return "query"
    if is_statement(tokens):
        return "tpstream"
    wrong = wrong_statement(tokens)
    if wrong is not None:
        raise wrong
    return "query"


def _is_plain(tokens: Sequence[Token]) -> bool:
    """Whether a text is one SELECT in which no clause, window or relation of ours can stand.

    In doubt it is not: our grammar reads what SQL's own does, only through more rules.
    """
    if not tokens or tokens[0].token_type != TokenType.SELECT:
        return False
    in_from = in_condition = False
    for word, following in pairwise(tokens):
        kind, said = following.token_type, following.text.upper()
        if kind in _OUR_TOKENS or said in _OUR_WORDS:
            return False
        if word.token_type == TokenType.L_PAREN and said.split(" ")[0] in _IN_BRACKETS:
            return False
        if in_from and said in WINDOW_TABLES:
            return False
        named = kind == TokenType.VAR or said.replace("_", " ").split(" ")[0] in _RELATIONS
        if in_condition and named and _is_word(word):
            return False
        if kind in (TokenType.FROM, TokenType.JOIN):
            in_from = True
        elif kind in (TokenType.WHERE, TokenType.GROUP_BY):
            in_from = False
        in_condition = in_condition or kind in (TokenType.WHERE, TokenType.ON)
    return True


def _is_word(token: Token) -> bool:
    """Whether a token may be the name in front of a relation."""
    quoted = token.token_type == TokenType.IDENTIFIER
    return quoted or (token.text.isidentifier() and token.token_type not in _CONDITIONS)


def _explain(text: str) -> tuple[int, Literal["plan", "analyze"] | None]:
    """Return where a text goes on behind EXPLAIN, and what that asks for."""
    found = _EXPLAIN.match(text)
    if found is None:
        return 0, None
    return found.end(1), "plan" if found["analyze"] is None else "analyze"


def _tokens(query: str, text: str) -> tuple[Token, ...]:
    """Return the tokens of a text without EXPLAIN and CEL; they have their places in the text."""
    try:
        return tuple(Eventide().tokenize(query))
    except SqlglotError:
        raise token_error(text) from None


def token_error(text: str) -> ParseError:
    """Return the error for a text that cannot be cut into tokens."""
    for quote, what in (("'", "string"), ('"', "quoted name")):
        if text.count(quote) % 2:
            place = text.rfind(quote)
            message = f"a {what} is not closed"
            return ParseError(message, span=Span(place, place + 1), hint=f"end it with {quote}")
    return ParseError("the query has characters that are not SQL", hint=QUERY_HINT)


def _check_encoded(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        message = f"the query has half a character, {text[error.start]!r}"
        place = Span(error.start, error.end)
        raise ParseError(message, span=place, hint="read the text as UTF-8") from None


def _check_words(tokens: Iterable[Token]) -> None:
    """Refuse a NUL outside of a string, and an endless number."""
    for token in tokens:
        if token.token_type == TokenType.STRING:
            continue
        if _NUL in token.text:
            place = token.start + token.text.index(_NUL)
            message = "the query has a NUL character"
            raise ParseError(message, span=Span(place, place + 1), hint="leave it out")
        if token.token_type == TokenType.NUMBER and len(token.text) > _MOST_DIGITS:
            message = f"a number of {len(token.text):,} digits"
            span = Span(token.start, token.start + 1)
            raise ParseError(message, span=span, hint="write a number with up to 38 digits")


def _refuse_endless(text: str, tokens: Iterable[Token]) -> None:
    """Refuse too deep brackets and too long chains: parsing them takes minutes, then fails."""
    if len(text) < _LONG:
        return
    open_chains = [[0, 0]]
    for token in tokens:
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
            raise too_deep(_span(token))


def too_deep(span: Span | None = None) -> ParseError:
    """Return the error for a query that is nested too deeply to be parsed."""
    hint = "write x IN (…) for many ORs; split it with WITH"
    return ParseError("the query is nested too deeply", span=span, hint=hint)


def _span(token: Token) -> Span:
    return Span(token.start, token.end + 1)
