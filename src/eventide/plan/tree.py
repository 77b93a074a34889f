"""What all nodes of a plan have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from eventide.schema import DataType

Row = Mapping[str, DataType]
"""The columns of a node's output, in order."""


class Plan(ABC):
    """A node of a plan, with everything below it: a frozen value.

    `plan/nodes.py` lists all nodes. Those of a room are in its own `nodes.py`.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def row(self) -> Row:
        """The columns of the output."""
