"""EXISTS and NOT EXISTS: left rows whose key the right side has, or does not have.

A null key equals nothing: such right rows are ignored, and such left rows never have a partner.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from eventide.kernels.lifetimes.value_chains import ABSENT, PRESENT
from eventide.operators.changes import Changes
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.fingerprints import Fingerprints, fingerprints
from eventide.operators.standing.keys import without_null
from eventide.operators.standing.sets.sides import PLAIN, FollowsSides, Sides, SidesState
from eventide.plan.expressions import Expression
from eventide.plan.standing.edges import Edge
from eventide.plan.standing.execution import Execution


@dataclass(frozen=True)
class ExistenceOperator(FollowsSides):
    """Left rows with a right row of equal keys, or without one if `negated`.

    `schema` has the columns of the left side; each key is an expression over the columns of its
    side.
    """

    schema: pa.Schema
    left_keys: tuple[Expression, ...]
    right_keys: tuple[Expression, ...]
    negated: bool
    execution: Execution = "aware"
    left: Edge = PLAIN
    right: Edge = PLAIN

    @property
    def sides(self) -> Sides:
        """The rule for the two sides."""
        rule = ABSENT if self.negated else PRESENT
        name = "NOT EXISTS" if self.negated else "EXISTS"
        return Sides(name, self.schema, rule, self.execution, self.left, self.right)

    def step(
        self, state: SidesState, inputs: tuple[Changes, ...], until_us: int
    ) -> tuple[SidesState, Changes]:
        """Take in the changes of both sides at instants before `until_us`."""
        left, right = inputs
        left_words = _keys(self.left_keys, left)
        if not self.negated:
            left, left_words = without_null(left, left_words)
        right, right_words = without_null(right, _keys(self.right_keys, right))
        return self.sides.step(state, (left, right), (left_words, right_words), until_us)


def _keys(keys: tuple[Expression, ...], changes: Changes) -> Fingerprints:
    return fingerprints([evaluate(key, changes.rows) for key in keys], len(changes))
