"""Whether a live query over a row pattern can forget: how long a match may wait and grow.

A temporal pattern always can, of each key: it has WITHIN, and at most one situation of a kind is
open. What is left for every key that ever came, `explain` says.
"""

from __future__ import annotations

from eventide.plan.automaton import DONE, Automaton, automaton_of
from eventide.plan.nodes import MatchRecognize
from eventide.plan.patterns import Repeat, render_pattern, walk_pattern

_CURE = "so a live query keeps its rows: add WITHIN INTERVAL '…'"


def unbounded_reason(node: MatchRecognize) -> str | None:
    """Return why a live query of the pattern may need more and more memory, or None.

    >>> from eventide.plan.expressions import ALWAYS, Named
    >>> from eventide.plan.nodes import Scan
    >>> from eventide.plan.patterns import Variable
    >>> always = (Named("B", ALWAYS),)
    >>> node = MatchRecognize(Scan("s"), (), (), Repeat(Variable("B"), 1, None), always, ())
    >>> unbounded_reason(node)
    "B+ can go on for ever, so a live query keeps its rows: add WITHIN INTERVAL '…'"
    """
    if node.within_us is not None:
        return None
    if node.strategy != "contiguous":
        return f"under {node.strategy} a match can wait for its next row for ever, {_CURE}"
    if not _has_loop(automaton_of(node.pattern)):
        return None
    loops = (part for part in walk_pattern(node.pattern) if _is_loop(part))
    shown = next((render_pattern(part) for part in loops), "the pattern")
    return f"{shown} can go on for ever, {_CURE}"


def _is_loop(part: object) -> bool:
    return isinstance(part, Repeat) and part.at_most is None


def _has_loop(automaton: Automaton) -> bool:
    """Whether a match can come back to a place it has been at, and so be of any length."""
    done: set[int] = set()
    path: set[int] = set()
    # A node comes twice: to go on from it, and to leave it.
    waiting = [(0, False)]
    while waiting:
        number, leaving = waiting.pop()
        if leaving:
            path.discard(number)
            done.add(number)
            continue
        if number in done:
            continue
        path.add(number)
        waiting.append((number, True))
        targets = {step.target for step in automaton.nodes[number].steps if step.target != DONE}
        if targets & path:
            return True
        waiting += [(target, False) for target in targets - done]
    return False
