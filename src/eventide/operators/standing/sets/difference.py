"""EXCEPT ALL: a row that is m times left and n times right is m - n times in the answer.

Among left tuples with equal values, those that expire first are in the answer: when the right side
grows, the one that would stay longest is taken back, and the others expire unannounced.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from eventide.kernels.lifetimes.value_chains import DIFFERENCE
from eventide.operators.changes import Changes
from eventide.operators.fingerprints import fingerprints
from eventide.operators.standing.sets.sides import PLAIN, FollowsSides, Sides, SidesState
from eventide.plan.standing.edges import Edge
from eventide.plan.standing.execution import Execution


@dataclass(frozen=True)
class DifferenceOperator(FollowsSides):
    """Left rows less right ones, by value; the sides have the same columns, by place."""

    schema: pa.Schema
    execution: Execution = "aware"
    left: Edge = PLAIN
    right: Edge = PLAIN

    @property
    def sides(self) -> Sides:
        """The rule for the two sides."""
        name = "EXCEPT ALL"
        return Sides(name, self.schema, DIFFERENCE, self.execution, self.left, self.right)

    def step(
        self, state: SidesState, inputs: tuple[Changes, ...], until_us: int
    ) -> tuple[SidesState, Changes]:
        """Take in the changes of both sides at instants before `until_us`."""
        left, right = inputs
        kinds = self.schema.types
        alike = [
            column if column.type == kind else column.cast(kind)
            for column, kind in zip(right.rows.columns, kinds, strict=True)
        ]
        keys = (fingerprints(left.rows.columns, len(left)), fingerprints(alike, len(right)))
        return self.sides.step(state, (left, right), keys, until_us)
