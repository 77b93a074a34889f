"""The condition of a rule as one in SQL, with true and false but no null.

AND and OR of conditions hold where they do with null as false. Only NOT would keep a null, so null
becomes false below it; everything else is left as it is, for indexes to recognise.
"""

from __future__ import annotations

from typing import Any

from sigma.conditions import (
    ConditionAND,
    ConditionFieldEqualsValueExpression,
    ConditionIdentifier,
    ConditionNOT,
    ConditionOR,
    ConditionValueExpression,
)
from sigma.rule import SigmaRule

from eventide.errors import RuleError
from eventide.rules.columns import FieldColumns
from eventide.rules.sigma.atoms import field_condition, keyword_condition
from eventide.rules.texts import Condition, all_of, any_of, none_of


def rule_condition(rule: SigmaRule, columns: FieldColumns) -> str:
    """Return the condition of a rule; one with several conditions holds if one of them does."""
    parsed = [each.parsed for each in rule.detection.parsed_condition]
    return str(any_of(condition_of(each, columns) for each in parsed))


def condition_of(node: Any, columns: FieldColumns) -> Condition:  # noqa: ANN401
    """Return the condition that a tree of pySigma stands for."""
    if isinstance(node, ConditionAND):
        return all_of(condition_of(each, columns) for each in node.args)
    if isinstance(node, ConditionOR):
        return any_of(condition_of(each, columns) for each in node.args)
    if isinstance(node, ConditionNOT):
        return none_of(condition_of(node.args[0], columns))
    try:
        if isinstance(node, ConditionFieldEqualsValueExpression):
            return field_condition(node.field, node.value, columns)
        if isinstance(node, ConditionValueExpression):
            return keyword_condition(node.value, columns)
    except RuleError as error:
        raise error.inside(where=place_of(node)) from None
    message = "the condition selects nothing"
    raise RuleError(message, hint="name a selection that has values")


def place_of(node: Any) -> str:  # noqa: ANN401
    """Return the selection and the field that a part of a condition comes from, as text."""
    field = getattr(node, "field", None) or "a value without a field"
    above = node
    while above is not None and not isinstance(above, ConditionIdentifier):
        above = above.parent
    return field if above is None else f"{above.identifier}, {field}"
