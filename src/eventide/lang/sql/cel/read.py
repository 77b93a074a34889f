"""The CEL of a statement → sources in FROM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from eventide.errors import Span
from eventide.lang.cel.parse import parse_cel
from eventide.lang.cel.tree import CelName, Stream, names_in, parameters_in
from eventide.lang.parameters import Parameter
from eventide.lang.sql.cel.table import CelClause, CelTable
from eventide.lang.sql.names.columns import identifier


@dataclass(frozen=True, slots=True)
class CelParts:
    """The parts of a text that are CEL, left to right, and where they stand."""

    streams: tuple[Stream, ...]
    spans: tuple[Span, ...]

    @classmethod
    def of(cls, text: str, spans: tuple[Span, ...]) -> CelParts:
        """Read the parts of a text; their places are those in the text."""
        return cls(tuple(read_part(text, span) for span in spans), spans)

    @property
    def parameters(self) -> Iterator[Parameter]:
        """All parameters."""
        for stream in self.streams:
            yield from parameters_in(stream)

    def selects(self, values: Mapping[int, object]) -> list[exp.Select]:
        """Return SELECT * FROM CEL (…) for each part."""
        both = zip(self.streams, self.spans, strict=True)
        return [_select(CelClause(stream, span, values)) for stream, span in both]


def read_part(text: str, part: Span) -> Stream:
    """Return the syntax tree of a part of a text; its places are those in the text."""
    return parse_cel(" " * part.start + part.of(text))


def _select(clause: CelClause) -> exp.Select:
    node = CelTable(expressions=[_table(each.name) for each in names_in(clause.stream)])
    node.set("clause", clause)
    node.meta.update(start=clause.span.start, end=clause.span.end - 1)
    select = exp.Select(expressions=[exp.Star()])
    select.set("from_", exp.From(this=node))
    return select


def _table(name: CelName) -> exp.Table:
    table = exp.Table(this=identifier(name.text))
    table.this.meta.update(start=name.span.start, end=name.span.end - 1)
    return table
