"""A pattern as a source in FROM, with the stream that it reads as a table below it.

So names of queries and CTEs are found there as anywhere in SQL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from sqlglot import exp

from eventide.errors import Span
from eventide.lang.sql.names.columns import identifier

if TYPE_CHECKING:
    from eventide.lang.xscl.parse import ParsedPattern

XPATH = "XPATH"


class XPathTable(exp.Expression, exp.Func):
    """A pattern in FROM; `expressions` is the table of the stream that it reads."""

    _sql_names: ClassVar[list[str]] = [XPATH]
    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}

    @property
    def parsed(self) -> ParsedPattern:
        """The parsed text."""
        return cast("ParsedPattern", self.args["parsed"])


def pattern_select(text: str, part: Span) -> exp.Select:
    """Return SELECT * FROM XPATH (…) for a part of a text; its places are those in the text."""
    from eventide.lang.xscl.parse import parse_pattern

    parsed = parse_pattern(" " * part.start + part.of(text))
    table = exp.Table(this=identifier(parsed.pattern.stream))
    table.this.meta.update(start=parsed.stream.start, end=parsed.stream.end - 1)
    node = XPathTable(expressions=[table])
    node.set("parsed", parsed)
    node.meta.update(start=part.start, end=part.end - 1)
    select = exp.Select(expressions=[exp.Star()])
    select.set("from_", exp.From(this=node))
    return select
