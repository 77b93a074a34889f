"""Whether a row pattern can be cut in time: its matches found slice by slice."""

from __future__ import annotations

from eventide.plan.expressions import At, MatchNumber, walk
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.patterns.tree import PartitionEnd, PartitionStart, walk_pattern


def why_whole(node: MatchRecognize) -> str | None:
    """Return why the matches of a node cannot be found slice by slice, or None."""
    anchored = any(
        isinstance(part, PartitionStart | PartitionEnd) for part in walk_pattern(node.pattern)
    )
    expressions = [item.expression for item in (*node.defines, *node.measures)]
    parts = [part for expression in expressions for part in walk(expression)]
    reasons = {
        "each key has its own": bool(node.keys),
        "rows are in an order of their own": bool(node.order),
        "a match can last any time without WITHIN": node.within_us is None,
        "^ and $ ask for the ends of the partition": anchored,
        "matches are numbered": any(isinstance(part, MatchNumber) for part in parts),
        "NEXT looks ahead": any(isinstance(part, At) and part.shift > 0 for part in parts),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)
