"""How queries go on alone, and how they become one with others again."""

from __future__ import annotations

from eventide.engines.live.sharing.parts import with_read
from eventide.engines.live.sharing.tree.states import SharedStates, carry_counts
from eventide.engines.live.sharing.tree.templates import SharedTemplates
from eventide.kernels.compiled import Int64s


def apart(tree: SharedTemplates, states: SharedStates, numbers: Int64s) -> SharedStates:
    """Return the state of some queries alone; they stay in the old one until dropped."""
    alone = tree.initial_state()
    numbers = with_read(states, numbers)
    for portion in tree.portions(states, numbers):
        old = tree.run_of(states, portion.template)
        run = tree.run_of(alone, portion.template)
        if old.windows is not None:
            run.windows = old.windows.only(numbers)
        tree.add(alone, portion)
        run.states = run.tree.tree.of_keys(old.states, tree.channels.among(numbers))
    return alone


def forget_gone(tree: SharedTemplates, states: SharedStates) -> None:
    """Free what queries that have left remember."""
    here = states.numbers.with_parts
    left = set(states.numbers.of(here)[0].tolist())
    for place, run in enumerate(states.runs):
        if run.has_gone and place not in left:
            run.states, run.has_gone = run.tree.tree.initial_state(), False
        elif run.has_gone and run.tree.can_divide:
            run.states = run.tree.tree.of_keys(run.states, tree.channels.among(here))
            run.has_gone = False


def compacted(tree: SharedTemplates, states: SharedStates) -> SharedStates:
    """Return the same queries in a state in which those that have left take no room."""
    here = states.numbers.with_parts
    fresh = tree.initial_state()
    fresh.took_more, fresh.failed = states.took_more, states.failed
    forget_gone(tree, states)
    for old in states.runs:
        own = list(old.known.among(here))
        if own:
            run = tree.run_of(fresh, old.tree.template)
            run.windows, run.states, run.done = old.windows, old.states, old.done
            run.has_gone = old.has_gone
        for portion in own:
            tree.add(fresh, portion)
    fresh.finding_seconds = states.finding_seconds
    carry_counts(states, fresh, here)
    return fresh


def can_unite(states: SharedStates, other: SharedStates) -> bool:
    """Whether nothing but what is each query's own is in templates that both have."""
    both = states.places.keys() & other.places.keys()
    trees = (states.runs[states.places[digest]].tree for digest in both)
    if not all(tree.is_idle_when_empty for tree in trees):
        return False
    return all(counts_for(states, other, digest) for digest in both)


def counts_for(states: SharedStates, other: SharedStates, digest: str) -> bool:
    """Whether the shared windows of a template have counted all that others have counted."""
    windows = states.runs[states.places[digest]].windows
    if windows is None:
        return True
    here = other.numbers.with_parts
    own = here[other.numbers.of(here)[0] == other.places[digest]]
    return not other.took_more and windows.has_all(own)


def united(tree: SharedTemplates, states: SharedStates, other: SharedStates) -> SharedStates:
    """Return the queries of both states as one."""
    # One that left may come back, and is not to meet what it once remembered here.
    forget_gone(tree, states)
    forget_gone(tree, other)
    new = {digest for digest in other.places if digest not in states.places}
    for theirs in other.runs:
        is_new = theirs.tree.template.digest not in states.places
        ours = tree.run_of(states, theirs.tree.template)
        if is_new:
            ours.windows = theirs.windows
        elif ours.windows is not None and theirs.windows is not None:
            ours.windows.go_on_from(theirs.windows)
    theirs_all = other.numbers.with_parts
    # A part is in both if one of its queries was by itself for a while: it is as far in both.
    twice = states.numbers.here(theirs_all)
    for portion in list(tree.portions(other, theirs_all[~twice])):
        tree.add(states, portion)
    states.finding_seconds += other.finding_seconds
    carry_counts(other, states, theirs_all[~twice])
    for theirs in other.runs:
        run = tree.run_of(states, theirs.tree.template)
        run.done.include(theirs.done)
        if theirs.tree.template.digest in new and not theirs.tree.can_divide:
            run.states, run.has_gone = theirs.states, theirs.has_gone
            continue
        if twice.any():
            own = tree.channels.among(theirs_all[~twice])
            theirs.states = run.tree.tree.of_keys(theirs.states, own)
        run.states = run.tree.tree.united(run.states, theirs.states)
    return states
