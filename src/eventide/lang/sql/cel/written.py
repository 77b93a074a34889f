"""Which part of a text is CEL. The tokens of SQL are found without it: braces and `$` mean others.

CEL text                    all of it
CREATE STREAM name AS …     what is behind AS, if it is CEL; one word stands for it
FROM CEL (…)                what is inside the brackets
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from eventide.errors import Span
from eventide.lang.cel.recognise import cel_in_sql, definition_in, is_cel

_NO_NEWLINE = re.compile(r"[^\n]")
CEL = "CEL"
"""The word that stands for a definition."""


@dataclass(frozen=True, slots=True)
class WrittenCel:
    """A text without its CEL, which is blank, and where that stands."""

    sql: str
    whole: bool = False
    """Whether all of it is CEL."""
    parts: tuple[Span, ...] = ()
    """What stands in FROM CEL (…)."""


def without_cel(text: str) -> WrittenCel:
    """Return a text without its CEL; everything else stays at its place.

    >>> without_cel("SELECT * FROM CEL (FILTER{a} s) AS t").sql
    'SELECT * FROM CEL (           ) AS t'
    """
    parts = tuple(cel_in_sql(text))
    sql = text
    for part in parts:
        sql = sql[: part.start] + _NO_NEWLINE.sub(" ", part.of(text)) + sql[part.end :]
    if not is_cel(sql):
        return WrittenCel(sql, parts=parts)
    start = definition_in(sql)
    if start is None:
        return WrittenCel(_NO_NEWLINE.sub(" ", sql), whole=True)
    rest = _NO_NEWLINE.sub(" ", sql[start + len(CEL) :])
    return WrittenCel(sql[:start] + CEL + rest)
