"""CEL as a source in FROM, with the streams that it reads as tables below it.

So names of queries and CTEs are found there as anywhere in SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

from sqlglot import exp

from eventide.errors import Span

if TYPE_CHECKING:
    from eventide.lang.cel.tree import Stream


@dataclass(frozen=True, slots=True)
class CelClause:
    """A CEL text, where it stands, and the values of its parameters by their places."""

    stream: Stream
    span: Span
    values: Mapping[int, object]


class CelTable(exp.Expression, exp.Func):
    """CEL in FROM; `expressions` are the tables of the streams that it reads, left to right."""

    _sql_names: ClassVar[list[str]] = ["CEL"]
    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}

    @property
    def clause(self) -> CelClause:
        """The parsed text."""
        return cast("CelClause", self.args["clause"])
