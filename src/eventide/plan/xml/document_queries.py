"""A query of XSCL: which documents, and what is written of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from eventide.plan.xml.document_joins import DocumentJoin
from eventide.plan.xml.patterns import TreePattern

Side = Literal[0, 1]


@dataclass(frozen=True, slots=True)
class OutputNode:
    """A bound node of the left or of the right document: as XML, or its string value."""

    side: Side
    variable: str
    as_text: bool = False


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column with the string value of a node."""

    name: str
    node: OutputNode


@dataclass(frozen=True, slots=True)
class OutputDocument:
    """A document that is put together: pieces of XML as they are, and nodes between them."""

    pieces: tuple[str | OutputNode, ...]


@dataclass(frozen=True, slots=True)
class DocumentQuery:
    """A pattern, or a join of two, and what is written of each row."""

    source: TreePattern | DocumentJoin
    output: OutputDocument | tuple[OutputColumn, ...]
    published: str | None = None

    @property
    def nodes(self) -> tuple[OutputNode, ...]:
        """The nodes that are written, in the order of the output."""
        if isinstance(self.output, OutputDocument):
            return tuple(each for each in self.output.pieces if isinstance(each, OutputNode))
        return tuple(column.node for column in self.output)
