"""Named queries: streams and views that are defined by a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from eventide.schema import TS, Attribute, DataType, Schema

NamedKind = Literal["stream", "stored stream", "view"]


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """A query with a name that other queries read.

    The rows of a `stream` are derived events. A `stored stream` also keeps them. A `view` is its
    query in brackets; its columns are not known before it is read.
    """

    name: str
    kind: NamedKind
    text: str
    lateness_us: int = 0
    columns: tuple[tuple[str, DataType], ...] = ()
    """The columns of a stream, as `*` shows them."""

    @property
    def schema(self) -> Schema:
        """The schema of a stream."""
        attributes = (Attribute(name, kind) for name, kind in self.columns if name != TS)
        return Schema(tuple(attributes), stored=self.kind == "stored stream")
