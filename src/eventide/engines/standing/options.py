"""How a standing query is executed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from eventide.plan.standing.execution import Execution
from eventide.plan.standing.nodes import Standing
from eventide.plan.standing.structures import keeps_answer


@dataclass(frozen=True, slots=True)
class StandingOptions:
    """How a standing query is executed, and whether its answer is kept beside its reports.

    `partitions` is the number of slots in the calendar of the answer; by default it fits its size.
    An answer `if it goes` is kept unless it would only grow.
    """

    execution: Execution = "aware"
    keeps: Literal["always", "if it goes", "never"] = "always"
    partitions: int | None = None

    def keep(self, plan: Standing) -> bool:
        """Whether the answer of a query is kept."""
        return self.keeps == "always" or (self.keeps == "if it goes" and keeps_answer(plan))


DEFAULT = StandingOptions()
