"""Tell a TPStream statement, `FROM cars PARTITION BY … DEFINE … PATTERN …`, from SQL."""

from __future__ import annotations

from itertools import pairwise

from sqlglot.errors import SqlglotError

from eventide.errors import ParseError, Span, pointing_into
from eventide.lang.sql.characters import check_words
from eventide.lang.sql.dialect import Eventide
from eventide.lang.sql.explain import explain_request
from eventide.lang.sql.parse import token_error
from eventide.lang.sql.situations.hints import wrong_statement
from eventide.lang.sql.situations.tokens import is_clause, is_statement


def require_tpstream(text: object) -> None:
    """Refuse a text that is not a TPStream statement, with or without EXPLAIN in front."""
    if not isinstance(text, str):
        message = f"a TPStream statement is a text, not {type(text).__name__}"
        hint = 'write it in quotes: tpstream("FROM cars DEFINE … PATTERN … WITHIN … RETURN …")'
        raise ParseError(message, hint=hint)
    asked = explain_request(text)
    try:
        tokens = Eventide().tokenize(text if asked is None else asked.query)
    except SqlglotError:
        raise token_error(text).located_in(text) from None
    with pointing_into(text):
        check_words(tokens)
    if is_statement(tokens):
        return
    wrong = wrong_statement(tokens)
    if wrong is not None:
        raise wrong.located_in(text)
    span = Span(tokens[0].start, tokens[0].end + 1) if tokens else None
    message = "not a TPStream statement"
    hint = "it is FROM stream PARTITION BY … DEFINE … PATTERN … WITHIN … RETURN …; sql takes SQL"
    for word, following in pairwise(tokens):
        if is_clause(word, following):
            span = Span(word.start, word.end + 1)
            hint = f"{word.text.upper()} (…) is SQL: use sql, as in db.sql(…)"
            break
    raise ParseError(message, span=span, hint=hint).located_in(text)
