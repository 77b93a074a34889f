"""The operator that merges windows from panes, found in a tree, and those above it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import pyarrow as pa

from eventide.engines.build import build_tree
from eventide.instants import END_OF_TIME_US, START_OF_TIME_US
from eventide.operators.tree import OperatorTree
from eventide.operators.windows.by_count import AggregateCountWindows
from eventide.operators.windows.by_time import AggregateWindows
from eventide.plan.tree import Plan

Windows = TypeVar("Windows", AggregateWindows, AggregateCountWindows)


@dataclass(frozen=True, slots=True)
class AboveWindows(Generic[Windows]):
    """The lowest operator for windows of a plan, and the tree above it."""

    operator: Windows
    above: OperatorTree

    @classmethod
    def of(cls, plan: Plan, kind: type[Windows]) -> AboveWindows[Windows]:
        """Find the windows of a plan that has some."""
        tree = build_tree(plan)
        place, operator = next(
            (place, each) for place, each in enumerate(tree.operators) if isinstance(each, kind)
        )
        return AboveWindows(operator, tree.above(place + 1))

    def run(self, windows: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the output of the operators above the windows."""
        states = self.above.initial_state()
        for number, rows in enumerate(windows):
            is_last = number == len(windows) - 1
            watermark_us = END_OF_TIME_US if is_last else START_OF_TIME_US
            states, results = self.above.step(states, (rows,), watermark_us)
            if results.num_rows:
                yield results
