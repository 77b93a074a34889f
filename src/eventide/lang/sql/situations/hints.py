"""Errors for missing parts of a TPSTREAM or SITUATIONS, and for parts that do not belong there."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches

from sqlglot.tokenizer_core import Token, TokenType

from eventide.errors import ParseError, Span
from eventide.lang.sql.situations.tokens import (
    CLAUSES,
    defines,
    names_part,
    place_behind_table,
    statement_start,
)

PARTITION_HINT = "write PARTITION BY car"
_SHAPES: Mapping[str, str] = {
    "TPSTREAM": (
        "PARTITION BY … DEFINE fast AS speed > 70 AT LEAST 4 SECONDS, … [GAP …] "
        "[DIALECT ALLEN | PAPER] PATTERN fast overlaps brake AND … WITHIN 5 MINUTES "
        "[DETECT EARLY | FINAL] [CONFIRM] [LIMIT n PER KEY] RETURN max(fast.speed) AS top, …"
    ),
    "SITUATIONS": (
        "PARTITION BY … DEFINE fast AS speed > 70 AT LEAST 4 SECONDS, … [GAP …] "
        "[RETURN max(speed) AS top, …]"
    ),
}
_MISSING: Mapping[str, str] = {
    "DEFINE": "add DEFINE fast AS speed > 70, …",
    "PATTERN": "add PATTERN fast overlaps brake",
    "WITHIN": "add WITHIN 5 MINUTES: how long before it is found a match may have begun",
    "RETURN": "add RETURN max(fast.speed) AS top, or START(fast) AS since",
}
_ROW_PATTERNS: Mapping[str, str] = {
    "MEASURES": "write RETURN max(fast.speed) AS top",
    "ORDER BY": "leave it out: events are in order of time",
    "SUBSET": "leave it out: define a situation whose condition is an OR",
    "AFTER": "leave it out: every combination of situations is a match",
    "STRATEGY": "leave it out: every combination of situations is a match",
    "ONE": "leave it out: a match is one row",
    "ALL": "leave it out: a match is one row",
    "TIMEOUT": "leave it out: what is not complete in time is no match",
}
_QUERY = ("WHERE", "ORDER BY", "GROUP BY", "HAVING", "QUALIFY", "OFFSET", "UNION", "SELECT")
"""Parts that belong to the SELECT around a clause."""
_JOINS = frozenset(("JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "ASOF", "NATURAL", "UNION"))
_STREAMS_HINT = (
    "relate the situations of several: SELECT … FROM cars SITUATIONS (…) a "
    "JOIN trucks SITUATIONS (…) b ON a.k = b.k AND a OVERLAPS b"
)
_LASTING = ("FOR", "LASTING", "ATLEAST")
"""Other words for AT LEAST."""
_NEAR = 0.8
_TEMPORAL = ("DIALECT", "PATTERN", "WITHIN", "DETECT", "CONFIRM", "LIMIT")


def missing_part(kind: str, name: str, span: Span) -> ParseError:
    """Return the error for a clause without one of its parts."""
    return ParseError(f"{kind} has no {name}", span=span, hint=_MISSING[name])


def foreign_part(kind: str, name: str, span: Span) -> ParseError | None:
    """Return the error for a word that belongs to another clause, None for others."""
    if name in _ROW_PATTERNS:
        message = f"{name} belongs to MATCH_RECOGNIZE"
        return ParseError(message, span=span, hint=_ROW_PATTERNS[name])
    if kind == "SITUATIONS" and name in _TEMPORAL:
        message = f"{name} belongs to TPSTREAM"
        hint = "SITUATIONS gives every situation by itself; TPSTREAM (…) finds patterns of them"
        return ParseError(message, span=span, hint=hint)
    return None


def unread_hint(kind: str, before: Token, word: Token, following: Token) -> str:
    """Return what may be meant by a word that begins no part."""
    if word.text == ";" and following.text.upper() in ("FROM", "SELECT", "WITH"):
        return "a text is one query: run the next one by itself"
    if word.text == ";":
        return "; stands between alternatives of PATTERN only; elsewhere it is a comma"
    if word.text.upper() in _LASTING:
        return "write AT LEAST 5 SECONDS behind a condition, AT MOST or BETWEEN … AND …"
    if following.token_type == TokenType.ALIAS:
        return "a comma is missing before it"
    if before.token_type == TokenType.NUMBER and word.token_type == TokenType.VAR:
        return f"numbers of a condition have no unit: leave out {word.text}"
    if word.text.upper() == "PARTITION":
        return PARTITION_HINT
    return _SHAPES[kind]


def query_part(
    kind: str, name: str, span: Span, stream: str | None, seen: Collection[str]
) -> ParseError | None:
    """Return the error for a part of a SELECT inside a clause, or behind a statement."""
    if name not in _QUERY:
        return None
    if stream is not None:
        message = f"a TPStream statement has no {name}"
        behind = "" if name == "SELECT" else f" {name} …"
        return ParseError(message, span=span, hint=f"write {_as_sql(stream)}{behind}")
    if "RETURN" in seen and name != "SELECT":
        message = f"{name} stands inside the brackets of {kind}"
        return ParseError(message, span=span, hint=f"put it behind them: {kind} (…) {name} …")
    if name == "WHERE":
        message = f"WHERE stands inside the brackets of {kind}"
        hint = f"put it into a subquery: {_subquery('…')} {kind} (…)"
        return ParseError(message, span=span, hint=hint)
    return None


def spare_comma(span: Span, behind: Token) -> ParseError:
    """Return the error for a comma at the end of a list."""
    before = f" before {behind.text}" if names_part(behind) else ""
    return ParseError(f"there is a comma too many{before}", span=span, hint="leave it out")


def wrong_clause(word: str, span: Span) -> ParseError | None:
    """Return the error for a word that is nearly one of ours, with a clause behind it."""
    near = get_close_matches(word.upper(), CLAUSES, n=1, cutoff=_NEAR)
    if not near:
        return None
    message = f"no clause {word!r} behind a stream"
    return ParseError(message, span=span, hint=f"did you mean {near[0]}?")


def wrong_statement(tokens: Sequence[Token]) -> ParseError | None:
    """Return the error for a text that is a TPStream statement but for one word."""
    tokens = tokens[statement_start(tokens) :]
    place = place_behind_table(tokens)
    if not defines(tokens) or len(tokens) < place + 2:
        return None
    table = "".join(token.text for token in tokens[1:2] if token.text.isidentifier()) or "…"
    word = tokens[place]
    name, span = word.text.upper(), Span(word.start, word.end + 1)
    if name in _QUERY and name != "UNION":
        message = f"{name} stands before the parts of a TPStream statement"
        hint = f"put it into a subquery: {_subquery(table)} PARTITION BY …"
        if name != "WHERE":
            hint = f"leave it out, or write {_as_sql(table)} {name} …"
        return ParseError(message, span=span, hint=hint)
    if word.token_type == TokenType.COMMA or name in _JOINS:
        message = "a TPStream statement reads one stream"
        return ParseError(message, span=span, hint=_STREAMS_HINT)
    if name == "PARTITION":
        key = tokens[place + 1].text
        return ParseError("PARTITION lacks BY", span=span, hint=f"write PARTITION BY {key}")
    return None


def _as_sql(stream: str) -> str:
    return f"SELECT … FROM {stream} TPSTREAM (…)"  # noqa: S608  (words of a hint)


def _subquery(stream: str) -> str:
    return f"FROM (SELECT * FROM {stream} WHERE …)"  # noqa: S608  (words of a hint)
