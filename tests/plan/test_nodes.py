"""The nodes of plans: the closed union has all of them."""

from __future__ import annotations

from typing import get_args

from eventide.plan.nodes import Node
from eventide.plan.tree import OverOne, OverSeveral, OverTwo, Plan


def test_the_union_of_nodes_has_every_kind_of_plan() -> None:
    """`node_of` relies on it: what is in no union is missed where all kinds are told apart."""
    # By name: what a class was before it had slots is a subclass, too.
    shapes = (Plan, OverOne, OverTwo, OverSeveral)
    kinds = {each.__name__ for shape in shapes for each in shape.__subclasses__()}
    kinds -= {shape.__name__ for shape in shapes}
    assert {each.__name__ for each in get_args(Node)} == kinds
