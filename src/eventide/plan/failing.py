"""Which expressions may fail for some values, so that they must not be computed needlessly."""

from __future__ import annotations

from eventide.plan.expressions import Call, Cast, Expression, children
from eventide.plan.functions import FUNCTIONS
from eventide.plan.types import cast_can_fail

_OVERFLOWS = frozenset({"+", "-", "*", "negate", "abs"})


def can_fail(expression: Expression, *, overflows: bool = True) -> bool:
    """Whether an expression has no result for some values of the right types.

    Without `overflows`, other than because numbers are too large for their type.
    """
    if any(can_fail(each, overflows=overflows) for each in children(expression)):
        return True
    match expression:
        case Call(user=user) if user is not None:
            return True
        case Call(function=name, type=data_type):
            wanted = overflows or name not in _OVERFLOWS
            return wanted and FUNCTIONS[name].can_fail and data_type.kind != "float64"
        case Cast(argument=argument, type=data_type, or_null=or_null):
            return not or_null and cast_can_fail(argument.type, data_type)
    return False
