"""The operator of a node of many windows: whoever makes such nodes imports this to build them."""

from __future__ import annotations

from typing import Any

from eventide.engines.build import Building, operators_of
from eventide.operators.operator import Operator
from eventide.operators.sharing.windows import AggregateManyWindows
from eventide.plan.sharing.windows import ManyWindows
from eventide.schema import row_schema


@operators_of.register
def many_windows(node: ManyWindows, how: Building) -> tuple[Operator[Any], ...]:  # noqa: ARG001
    """Return the operator."""
    return (AggregateManyWindows(node, row_schema(node.row)),)
