"""Which expressions may fail for some values, so that they must not be computed needlessly."""

from __future__ import annotations

from eventide.plan.expressions import Call, Cast, Expression, children
from eventide.plan.functions import FUNCTIONS
from eventide.plan.types import cast_can_fail


def can_fail(expression: Expression) -> bool:
    """Whether an expression has no result for some values of the right types."""
    if any(map(can_fail, children(expression))):
        return True
    match expression:
        case Call(user=user) if user is not None:
            return True
        case Call(function=name, type=data_type):
            return FUNCTIONS[name].can_fail and data_type.kind != "float64"
        case Cast(argument=argument, type=data_type, or_null=or_null):
            return not or_null and cast_can_fail(argument.type, data_type)
    return False
