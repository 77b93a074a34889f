"""Patterns and views as arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from eventide.kernels.compiled import Int32s, Int64s, frozen
from eventide.kernels.xml.arrays import PatternSteps, PatternViews
from eventide.operators.xml.asked import AskedPattern, KeptSteps, steps_above
from eventide.operators.xml.trie import PathTrie
from eventide.plan.xml.patterns import steps_of


@dataclass(frozen=True, slots=True)
class AskedTables:
    """All that is asked, as the kernels read it: patterns and views have numbers in order."""

    trie: PathTrie
    steps: PatternSteps
    views: PatternViews
    widths: Int64s
    """How many nodes a tuple of each view has."""
    repeats: tuple[bool, ...]
    """Whether the tuples of each view have to be made distinct."""
    most_steps: int


def tables_of(asked: Sequence[AskedPattern]) -> AskedTables:
    """Return what is asked as arrays."""
    trie = PathTrie()
    states = [trie.add(each.root) for each in asked]
    above = [steps_above(each.root) for each in asked]
    leaves = [_leaves(*both) for both in zip(states, above, strict=True)]
    kept = [
        [KeptSteps.of(over, view) for view in each.views]
        for each, over in zip(asked, above, strict=True)
    ]
    views = [view for each in kept for view in each]
    tests = [step.test for each in asked for step in steps_of(each.root)]
    texts = list(dict.fromkeys(test for test in tests if test is not None))
    numbers = {text: number for number, text in enumerate(texts)}
    written = [text.encode() for text in texts]
    tried = _tried(leaves, len(trie))
    plain = [_is_plain(*both) for both in zip(asked, kept, strict=True)]
    for own, is_plain in zip(states, plain, strict=True):
        trie.searched.update(own[-1:] if is_plain else own)
    steps = PatternSteps(
        _ends(states),
        _ints(step for each in above for step in each),
        frozen(np.array([s.axis == "child" for b in asked for s in steps_of(b.root)], np.bool_)),
        _ints(state for each in states for state in each),
        _ints(-1 if test is None else numbers[test] for test in tests),
        frozen(np.array([0, *accumulate(map(len, written))], np.int64)),
        frozen(np.frombuffer(b"".join(written) or b"\0", np.uint8)),
        _ends(leaves),
        _ints(state for each in leaves for state in each),
        _ends(tried),
        _ints(pattern for each in tried for pattern in each),
        frozen(np.array(plain, np.bool_)),
    )
    found = PatternViews(
        _ends(kept),
        _ends([view.steps for view in views]),
        _ints(step for view in views for step in view.steps),
        _ints(up for view in views for up in view.up),
        frozen(np.array([wanted for view in views for wanted in view.wanted], np.bool_)),
    )
    widths = np.array([sum(view.wanted) for view in views], np.int64)
    repeats = tuple(view.repeats for view in views)
    return AskedTables(trie, steps, found, widths, repeats, max(map(len, states), default=0))


def _is_plain(asked: AskedPattern, views: Sequence[KeptSteps]) -> bool:
    """Whether a pattern is a path without tests, of which only the last step is wanted.

    All nodes in its state have nodes above them for the other steps.
    """
    steps = list(steps_of(asked.root))
    is_path = all(len(step.below) < 2 and step.test is None for step in steps)
    return is_path and all({*view.steps} <= {len(steps) - 1} for view in views)


def _leaves(states: Sequence[int], above: Sequence[int]) -> list[int]:
    """Return the states of the steps with nothing below, each once."""
    inner = {*above}
    return sorted({state for step, state in enumerate(states) if step not in inner})


def _tried(leaves: Sequence[Sequence[int]], states: int) -> list[list[int]]:
    """Return the patterns that are tried for each state: each for the rarest of its leaves."""
    uses = Counter(state for each in leaves for state in each)
    tried: list[list[int]] = [[] for _ in range(states)]
    for pattern, each in enumerate(leaves):
        tried[min(each, key=lambda state: (uses[state], -state))].append(pattern)
    return tried


def _ints(numbers: Iterable[int]) -> Int32s:
    return frozen(np.array(list(numbers), np.int32))


def _ends(lists: Sequence[Sequence[object]]) -> Int32s:
    """Return where each list begins if they are one behind the other, and where the last ends."""
    return frozen(np.array([0, *accumulate(map(len, lists))], np.int32))
