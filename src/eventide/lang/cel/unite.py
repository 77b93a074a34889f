"""UNION: the events of several streams that have the same attributes."""

from __future__ import annotations

from eventide.errors import BindError, Span
from eventide.lang.cel.events import START, Events, attribute_types
from eventide.lang.cel.tree import Union
from eventide.plan.bind import cast_implicitly
from eventide.plan.expressions import Column, Expression, Named
from eventide.plan.nodes import DerivedStream, Project
from eventide.plan.standing.nodes import Merge
from eventide.plan.tree import Plan
from eventide.plan.types import common_type
from eventide.schema import DataType


def united_events(node: Union, operands: list[Events]) -> Events:
    """Return the events of all operands; equal ones stay as many as they are.

    Attributes go by their names, and are in the order of the first operand.
    """
    kinds = _common_types(node, operands)
    arms = tuple(_alike(each, kinds) for each in operands)
    columns: dict[str, Expression] = {name: Column(name, kind) for name, kind in kinds.items()}
    return Events(DerivedStream(Merge(arms), (), node.span), columns, START, "the events of UNION")


def _common_types(node: Union, operands: list[Events]) -> dict[str, DataType]:
    first = operands[0]
    for part, each in zip(node.sources[1:], operands[1:], strict=True):
        for one, other in ((first, each), (each, first)):
            missing = [name for name in one.attributes if other.find(name) is None]
            if missing:
                message = f"{other.called} has no {missing[0]}, and {one.called} has one"
                hint = "give both sides of UNION the same attributes: (SELECT … FROM …)"
                raise BindError(message, span=part.span, hint=hint)
    return {name: _common(name, operands, node.span) for name in first.attributes}


def _common(name: str, operands: list[Events], span: Span) -> DataType:
    kinds = [attribute_types(each)[_own(name, each)] for each in operands]
    found = common_type(kinds)
    if found is None:
        shown = " and ".join(map(str, dict.fromkeys(kinds)))
        message = f"{name} is {shown} in UNION"
        raise BindError(message, span=span, hint="cast one of them: CAST(… AS …)")
    return found


def _own(name: str, events: Events) -> str:
    found = events.find(name)
    assert found is not None
    return found


def _alike(events: Events, kinds: dict[str, DataType]) -> Plan:
    """Return the rows of an operand with the names, types and order of the first one."""
    times = events.rows().items[:2]
    items = [
        Named(name, cast_implicitly(events.attributes[_own(name, events)], kind))
        for name, kind in kinds.items()
    ]
    return Project(events.plan, (*times, *items))
