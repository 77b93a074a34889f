"""Which parts of a match later conditions can read: searches that agree in them go on alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eventide.kernels.patterns import code as op
from eventide.operators.patterns.registers import Chain
from eventide.plan.patterns.automaton import PatternAutomaton


@dataclass(frozen=True, slots=True, order=True)
class ConditionRead:
    """A part of the match that a condition reads: one entry of a remembered state."""

    kind: int
    register: int
    column: int = 0
    shift: int = 0
    by: int = op.PLAIN

    @property
    def operands(self) -> tuple[int, ...]:
        """The read as a row of `Code.keys`."""
        return self.kind, self.register, self.column, self.shift, self.by


UNSEEABLE = ConditionRead(-1, -1)
"""Stands for a state that is too large to be remembered."""

_CHAINED = (op.KEY_PRESENT, op.KEY_LOAD_F, op.KEY_LOAD_I, op.KEY_NAMED, op.KEY_LABEL)

MOST_LABELS = 64
"""The variables of at most this many rows before the next one are remembered."""


def labels_before(rows: int) -> set[ConditionRead]:
    """Return the reads of the variables of this many rows before the next one."""
    if rows > MOST_LABELS:
        return {UNSEEABLE}
    return {ConditionRead(op.KEY_LABEL, op.CURRENT, shift=-each) for each in range(1, rows + 1)}


def live_at(
    automaton: PatternAutomaton, reads: Sequence[set[ConditionRead]], chains: Iterable[Chain]
) -> list[set[ConditionRead]]:
    """Return for every node what the conditions that may come after it read.

    `reads` has what the condition of each variable reads once a row is taken as it. A read that is
    new at a node is passed back to the nodes before it, once.
    """
    nodes = automaton.nodes
    live: list[set[ConditionRead]] = [set() for _ in nodes]
    if not any(reads):
        # No late condition reads anything either.
        return live
    chain_of = {chain.register + each: chain for chain in chains for each in range(chain.width)}
    into: list[set[tuple[int, int]]] = [set() for _ in nodes]
    waiting: list[tuple[int, ConditionRead]] = []

    def carry(seen: ConditionRead, variable: int, number: int) -> None:
        chain = chain_of.get(seen.register) if seen.kind in _CHAINED else None
        needed = set(_before(seen, variable, chain))
        if seen.kind == op.KEY_LABEL and chain is not None and chain.variables >> variable & 1:
            # The row taken may be the one from which the leaf starts; the variables of rows
            # before it are known.
            needed |= labels_before(-seen.shift)
        for each in needed:
            if each not in live[number]:
                live[number].add(each)
                waiting.append((number, each))

    for number, node in enumerate(nodes):
        for step in node.steps:
            tested = set(step.absent | step.later)
            if step.variable >= 0:
                into[step.target].add((number, step.variable))
                tested.add(step.variable)
            for variable in tested:
                for seen in reads[variable]:
                    carry(seen, variable, number)
    while waiting:
        number, seen = waiting.pop()
        for source, variable in into[number]:
            carry(seen, variable, source)
    for number in _behind_later(automaton):
        live[number].add(UNSEEABLE)
    return live


def _behind_later(automaton: PatternAutomaton) -> set[int]:
    """Return the nodes from which a match may still fail because of rows skipped before them."""
    nodes = automaton.nodes
    found: set[int] = set()
    waiting = [step.target for node in nodes for step in node.steps if step.later]
    while waiting:
        number = waiting.pop()
        if number >= 0 and number not in found:
            found.add(number)
            waiting += [step.target for step in nodes[number].steps]
    return found


def _before(seen: ConditionRead, variable: int, chain: Chain | None) -> tuple[ConditionRead, ...]:
    """Return the reads, before a row is taken as a variable, that decide a read after it."""
    if chain is None or not chain.variables >> variable & 1:
        return (seen,)
    is_head = seen.register == chain.register
    if chain.edge == "first":
        # The row fills the place if that is empty and the place before it is not.
        here = ConditionRead(op.KEY_PRESENT, seen.register)
        if is_head:
            return seen, here
        return seen, here, ConditionRead(op.KEY_PRESENT, seen.register - 1)
    if is_head:
        return ()
    by = seen.by if seen.by < 0 else seen.by - 1
    return (ConditionRead(seen.kind, seen.register - 1, seen.column, seen.shift, by),)
