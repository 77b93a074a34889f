"""The nodes of a batch of documents, as arrays in document order.

    <item id="7"><title>A <b>b</b></title></item>

    node  name    parent  end  string value
    0     item    -1      4    A b
    1     @id      0      2    7
    2     title    0      4    A b
    3     b        2      4    b

An element stands in front of all that is inside it, its attributes first. `end` is the node behind
its subtree, so whether one node is inside another is two comparisons. String values are parts of
one text: that of an element holds those of all elements inside.
"""

from __future__ import annotations

from dataclasses import dataclass

from eventide.kernels.compiled import Int32s, Int64s


@dataclass(frozen=True, slots=True)
class Nodes:
    """All nodes of some documents, one document behind the other."""

    firsts: Int64s
    """The first node of each document, and behind the last one how many nodes there are."""
    names: tuple[str, ...]
    """The names that occur: `title`, `{uri}title`, and with an @ in front those of attributes."""
    name: Int32s
    """The place of each node's name."""
    parent: Int32s
    """The node that each is right inside of; -1 for the root element of a document."""
    end: Int32s
    """The node behind all that is inside of each."""
    text_starts: Int64s
    text_ends: Int64s
    text: bytes
    """What string values are parts of, in UTF-8."""

    def __len__(self) -> int:
        return len(self.name)

    @property
    def document_count(self) -> int:
        """How many documents there are."""
        return len(self.firsts) - 1

    def name_of(self, node: int) -> str:
        """Return the name of a node."""
        return self.names[int(self.name[node])]

    def value_of(self, node: int) -> str:
        """Return the string value of a node, as XPath defines it."""
        start, end = int(self.text_starts[node]), int(self.text_ends[node])
        return self.text[start:end].decode()
