"""ROW_NUMBER and LEAD in order of time: a row pattern in which every row is a match of its own.

    ROW_NUMBER() OVER (PARTITION BY car ORDER BY ts)    MATCH_NUMBER()
    LEAD(speed, 2) OVER (PARTITION BY car ORDER BY ts)  NEXT(speed, 2)

So a row is numbered when it comes, and has its LEAD when that row has come.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eventide.errors import UnsupportedError
from eventide.lang.sql.names.columns import fresh
from eventide.plan.expressions import ALWAYS, At, Column, Expression, MatchNumber, Named, Over
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.patterns.tree import Variable
from eventide.plan.tree import Plan

ROW_NUMBER, LEAD = "row_number", "lead"
NUMBERING = frozenset({ROW_NUMBER, LEAD})
"""What stands where an aggregate does before OVER, and looks at no frame."""
_ROW = "A"


def numbered_rows(source: Plan, found: Sequence[tuple[Over, str]], taken: Iterable[str]) -> Plan:
    """Return the rows of a source with columns for calls of ROW_NUMBER and LEAD."""
    first = found[0][0]
    names, keys = [*taken], list[Named]()
    for over, _ in found:
        if over.keys != first.keys:
            message = "ROW_NUMBER and LEAD of different keys in one SELECT"
            hint = "live, put one of them in a SELECT around the other"
            raise UnsupportedError(message, span=over.span, hint=hint)
    for key in first.keys:
        name = key.name if isinstance(key, Column) else fresh("over_key", names)
        names.append(name)
        keys.append(Named(name, key))
    measures = tuple(Named(name, _measure(over)) for over, name in found)
    condition = (Named(_ROW, ALWAYS),)
    return MatchRecognize(
        source, tuple(keys), (), Variable(_ROW), condition, measures, output="show empty"
    )


def _measure(over: Over) -> Expression:
    call = over.aggregate
    if call.function == ROW_NUMBER:
        return MatchNumber()
    assert call.argument is not None
    assert isinstance(call.parameter, int)
    return At(call.argument, shift=call.parameter, span=over.span)
