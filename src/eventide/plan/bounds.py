"""Whether the state of a live query is bounded: how long a match may wait, what every key keeps.

A temporal pattern has WITHIN, and at most one situation of each kind is open for a key. Without GAP
a situation that is open when its key falls silent stays open, as `explain` says.
"""

from __future__ import annotations

from collections.abc import Iterator

from eventide.plan.algebra.nodes import Follows
from eventide.plan.expressions import At, MatchNumber, RowsFrame, walk
from eventide.plan.nodes import scans_of
from eventide.plan.patterns.automaton import DONE, PatternAutomaton, automaton_of
from eventide.plan.patterns.looking_back import looks_back
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.patterns.tree import Repeat, render_pattern, walk_pattern
from eventide.plan.situations.nodes import TemporalPattern
from eventide.plan.standing.edges import Circumstances, UpdatePattern
from eventide.plan.standing.joins import Existence, OuterJoin, WindowJoin
from eventide.plan.standing.nodes import Difference, Standing, Top
from eventide.plan.standing.update_patterns import nodes_of, pattern_of, windows_of
from eventide.plan.standing.windows import Windowed
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import CountWindow, SlidingAggregate, WindowAggregate

_WAITS = (
    "an event that nothing follows waits for ever, so a live query keeps it: bound how long "
    "a result may be, as in NEXT{… AND DUR <= 10 min}"
)
_CURE = "so a live query keeps its rows: add WITHIN INTERVAL '…'"


def unbounded_reasons(plan: Plan) -> Iterator[str]:
    """Yield why a live query may need more and more memory, each with what would help."""
    if isinstance(plan, MatchRecognize):
        reason = unbounded_reason(plan)
        if reason is not None:
            yield reason
    if isinstance(plan, Follows) and plan.within_us is None:
        yield _WAITS
    kept = list(kept_of_every_key(plan))
    for what, cure in kept:
        yield f"of every key that ever came {what}, so a live query grows with the keys: {cure}"
    match plan:
        case Standing():
            reason = kept_for_ever(plan)
            if reason is not None:
                yield reason
        case _:
            for source in plan.children:
                yield from unbounded_reasons(source)


def kept_for_ever(plan: Standing) -> str | None:
    """Return why the state of a live run may grow for ever, or None; the text names the cure."""
    for node in nodes_of(plan):
        match node:
            case WindowJoin() | OuterJoin() | Difference() | Existence() | Top():
                kept, cure = node.children, ""
            case Standing(report="current" | "rstream", output_window=None, source=source):
                kept, cure = (source,), ", or ISTREAM (…) for results without an answer to keep"
            case _:
                continue
        for source in kept:
            edge = pattern_of(source, Circumstances.of(plan))
            if edge.pattern == UpdatePattern.MONOTONIC and windows_of(source):
                names = ", ".join(_stream_of(leaf) for leaf in windows_of(source))
                return (
                    f"what comes from {names} never goes, and is remembered for ever; "
                    f"write [RANGE 1 HOUR]{cure}"
                )
    return None


def _stream_of(leaf: Windowed) -> str:
    return ", ".join(scan.stream for scan in scans_of(leaf))


def kept_of_every_key(node: Plan) -> Iterator[tuple[str, str]]:
    """Yield what a node keeps for every key, even if no more events come, and what would help."""
    match node:
        case WindowAggregate(keys=[_, *_], window=CountWindow(size=size, slide=slide)):
            # A window of one event is never open between two events.
            if size > 1 or slide > 1:
                yield (
                    "a counter and the partial results of its open windows are kept",
                    "a window of time, TUMBLE(ts, INTERVAL '…'), is over some time",
                )
        case SlidingAggregate(keys=[_, *_], frame=RowsFrame(preceding=preceding)) if preceding:
            yield (
                f"the last {_rows(preceding)} kept",
                "RANGE BETWEEN INTERVAL '…' PRECEDING forgets what is older",
            )
        case TemporalPattern(keys=[_, *_], limit=int()):
            yield (
                "the number of its matches is kept, for LIMIT",
                "leave LIMIT out, and count in what takes the rows",
            )
        case MatchRecognize(keys=[_, *_]):
            yield from _kept_by_pattern(node)


def _kept_by_pattern(node: MatchRecognize) -> Iterator[tuple[str, str]]:
    automaton = automaton_of(node.pattern, all_matches=node.strategy == "skip_till_any")
    items = (*node.defines, *node.measures)
    parts = [part for item in items for part in walk(item.expression)]
    steps = [step for each in automaton.nodes for step in each.steps]
    back = looks_back(node, automaton)
    if back:
        yield (
            f"the last {_rows(back)} kept, which PREV looks at from the first row of a match",
            "begin with a variable whose condition has no PREV, as in PATTERN (A B+) with PREV in "
            "the condition of B alone",
        )
    ahead = max([0, *(part.shift for part in parts if isinstance(part, At))])
    if ahead:
        yield (
            f"the last {_rows(ahead)} kept until NEXT can look further",
            "let a later variable test the next row, with PREV for this one",
        )
    if any(isinstance(part, MatchNumber) for part in parts):
        yield (
            "the number of its matches is kept, for MATCH_NUMBER()",
            "leave it out, and tell matches apart by key and FIRST(ts)",
        )
    if any(step.at_start for step in steps):
        yield "it is kept that its first row is over, for ^", "leave ^ out"
    if any(step.at_end for step in steps):
        yield "the last rows are kept until finish(), for $", "leave $ out"


def _rows(count: int) -> str:
    return "row is" if count == 1 else f"{count:,} rows are"


def unbounded_reason(node: MatchRecognize) -> str | None:
    """Return why a live query of the pattern may need more and more memory, or None.

    >>> from eventide.plan.expressions import ALWAYS, Named
    >>> from eventide.plan.nodes import Scan
    >>> from eventide.plan.patterns.tree import Variable
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


def _has_loop(automaton: PatternAutomaton) -> bool:
    """Whether a match can return to a node, and so be of any length."""
    done: set[int] = set()
    path: set[int] = set()
    # A node is on the stack twice: to go on from it, and to leave it.
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
