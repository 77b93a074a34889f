"""What joins ask of the path stage: pairs of nodes, by the numbers of edges.

    edge 3   blog//item[.//title]//author   item → author     rows (document, upper, lower)
    edge 4   blog//item[.//title]//author   author            a variable: upper and lower are one

Edges that are asked for by several queries are one. A number is never given to another edge, for
there may be rows with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from eventide.plan.xml.join_graphs import PathKey
from eventide.plan.xml.patterns import TreePattern

UPPER, LOWER = "upper", "lower"


@dataclass(frozen=True)
class AskedEdge:
    """A path, and which of its steps binds the upper node; the last one binds the lower node."""

    path: PathKey
    upper: int

    @property
    def is_variable(self) -> bool:
        """Whether it is a node whose values are compared: both nodes are one."""
        return self.upper == len(self.path.steps) - 1

    @cached_property
    def pattern(self) -> TreePattern:
        """A pattern whose witnesses are the rows: a pair of nodes, or one node of a variable."""
        marks = {self.upper: UPPER, len(self.path.steps) - 1: LOWER}
        return self.path.pattern(marks)

    def __str__(self) -> str:
        return str(self.pattern)


class AskedEdges:
    """The edges of all queries, and how often each is asked for."""

    def __init__(self) -> None:
        self._numbers: dict[AskedEdge, int] = {}
        self._uses: dict[int, int] = {}
        self._edges: dict[int, AskedEdge] = {}
        self.count = 0
        """How many numbers have been given."""

    def take(self, edge: AskedEdge) -> int:
        """Return the number of an edge, for one more query."""
        number = self._numbers.get(edge)
        if number is None:
            number = self._numbers[edge] = self.count
            self._edges[number] = edge
            self._uses[number] = 0
            self.count += 1
        self._uses[number] += 1
        return number

    def leave(self, number: int) -> bool:
        """Note that one query less asks for an edge; return whether any still does."""
        self._uses[number] -= 1
        if self._uses[number]:
            return True
        del self._numbers[self._edges.pop(number)], self._uses[number]
        return False

    @property
    def edges(self) -> Mapping[int, AskedEdge]:
        """The edges that are asked for, by number."""
        return self._edges
