"""Place operators in a tree, each after those that feed it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from eventide.operators.operator import Operator
from eventide.operators.tree import OperatorTree, Placed, TreeLeaf
from eventide.plan.nodes import Scan
from eventide.plan.tree import Row


@dataclass
class TreeBuilder:
    """Places operators, each after those that feed it; leaves are numbered first."""

    leaves: list[TreeLeaf] = field(default_factory=list)
    placed: list[Placed] = field(default_factory=list)

    def tree(self) -> OperatorTree:
        """Return the tree; until all are known, leaves have numbers below zero."""
        count = len(self.leaves)
        placed = tuple(
            replace(
                each,
                inputs=tuple(
                    -1 - number if number < 0 else number + count for number in each.inputs
                ),
            )
            for each in self.placed
        )
        return OperatorTree(tuple(self.leaves), placed)

    def leaf(self, scan: Scan, schema: pa.Schema, *, relation: bool = False) -> int:
        """Add a leaf; return its number."""
        self.leaves.append(TreeLeaf(scan, schema, relation))
        return -len(self.leaves)

    def place(
        self,
        operator: Operator[Any],
        line: str,
        inputs: tuple[int, ...],
        *,
        name: str = "",
        ends: bool = False,
    ) -> int:
        """Add an operator; return its number. Without a name, it has the first word of its line."""
        name = name or line.split(" ", maxsplit=1)[0].rstrip(",")
        self.placed.append(Placed(operator, name, line, inputs, ends))
        return len(self.placed) - 1


def arrow_schema(row: Row) -> pa.Schema:
    """Return the Arrow schema of a node's rows."""
    return pa.schema([(name, kind.arrow) for name, kind in row.items()])
