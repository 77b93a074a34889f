from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import StateError
from eventide.operators.changes import NEVER, Changes
from eventide.operators.standing.answer.keeping import KeptByHandle, Structure
from eventide.operators.standing.answer.view import View, structure_for
from eventide.plan.standing.edges import Edge, UpdatePattern

SCHEMA = pa.schema([("number", pa.int64())])
Life = tuple[int, int, int]
"""When a row is born, when it dies, when it would expire."""


def changes_of(lives: list[Life], announced: bool) -> Changes:
    """Return the changes of rows, whose ids are 7, 8, …; if `announced`, with those of expiry."""
    events = [(born, 1, 1, number) for number, (born, _, _) in enumerate(lives)]
    for number, (born, died, exp) in enumerate(lives):
        if died < exp or (announced and exp != NEVER):
            events.append((died, 2 if died == born else 0, -1, number))
    events.sort()
    numbers = [number for *_, number in events]
    return Changes(
        pa.RecordBatch.from_pydict({"number": numbers}, schema=SCHEMA),
        np.array([at for at, *_ in events], np.int64),
        np.array([lives[number][2] for number in numbers], np.int64),
        np.array([sign for _, _, sign, _ in events], np.int8),
        np.array(numbers, np.int64) + 7,
    )


def check(view: View, lives: list[Life], cuts: list[int], *, reload: bool) -> None:
    """Compare the living rows after each step, and the deaths of all, with what was drawn."""
    changes = changes_of(lives, announced=view.structure == "ids")
    state = view.initial_state()
    for since, until in zip([-(10**9), *cuts], cuts, strict=False):
        inside = np.flatnonzero((changes.at >= since) & (changes.at < until))
        state, deaths = view.step(state, changes.take(inside), until)
        deaths = deaths.in_order()
        died = sorted((died, number) for number, (_, died, _) in enumerate(lives))
        gone = state.log.take(deaths.numbers)["number"].to_pylist()
        expected = [(at, number) for at, number in died if since <= at < until]
        assert list(zip(deaths.at.tolist(), gone, strict=True)) == expected
        living = [number for number, (born, died, _) in enumerate(lives) if born < until <= died]
        state = view.tidied(state)
        assert view.current(state)["number"].to_pylist() == living
        assert view.size(state).tuples == len(living)
        if reload:
            state = view.load(view.dump(state))


@st.composite
def lives_of(draw: st.DrawFn, structure: Structure) -> list[Life]:
    """Rows in the order in which they come; the spans grow in the midst of it."""
    found = []
    for born in sorted(draw(st.lists(st.integers(-50, 300), max_size=60))):
        longest = draw(st.sampled_from([3, 30, 200 if born > 100 else 40]))
        match structure:
            case "append":
                exp = NEVER
            case "ring":
                exp = born + 25
            case "calendar":
                exp = born + draw(st.integers(1, longest))
            case _:
                exp = draw(st.sampled_from([NEVER, born + draw(st.integers(1, longest))]))
        died = exp
        if structure in ("calendar and ids", "ids", "list") and draw(st.booleans()):
            died = min(exp, born + draw(st.integers(0, longest)))
        found.append((born, died, exp))
    return found


STRUCTURES: tuple[Structure, ...] = (
    "append",
    "ring",
    "calendar",
    "calendar and ids",
    "ids",
    "list",
)


@pytest.mark.parametrize("structure", STRUCTURES)
@given(
    data=st.data(),
    cuts=st.lists(st.integers(-60, 400), max_size=6),
    partitions=st.sampled_from([None, 1, 10, 1000]),
    reload=st.booleans(),
)
@settings(deadline=None, max_examples=30)
def test_rows_live_until_they_die(
    structure: Structure,
    data: st.DataObject,
    cuts: list[int],
    partitions: int | None,
    reload: bool,
) -> None:
    lives = data.draw(lives_of(structure))
    check(View(SCHEMA, structure, partitions), lives, [*sorted(cuts), 600], reload=reload)


@pytest.mark.parametrize("structure", [each for each in STRUCTURES if each != "append"])
def test_values_of_the_dead_are_forgotten(structure: Structure) -> None:
    """Twenty thousand rows pass by, a hundred of which live at a time."""
    rows, lasts = 1000, 100
    view = View(SCHEMA, structure)
    state, held = view.initial_state(), []
    for first in range(0, 20 * rows, rows):
        born = np.arange(first, first + rows)
        lives = [(at, at + lasts, at + lasts) for at in born.tolist()]
        changes = changes_of(lives, announced=False)
        changes = Changes(changes.rows, changes.at, changes.exp, changes.sign, born)
        if structure == "ids":
            gone = born - lasts
            gone = gone[gone >= 0]
            values = pa.RecordBatch.from_arrays([pa.array(gone)], schema=SCHEMA)
            minus = np.full(len(gone), -1, np.int8)
            ends = Changes(values, gone + lasts, gone + lasts, minus, gone)
            both = Changes.concat([ends, changes], SCHEMA)
            changes = both.take(np.argsort(both.at, kind="stable"))
        state, deaths = view.step(state, changes, first + rows)
        assert len(deaths) == (rows if first else rows - lasts)
        state = view.tidied(state)
        held.append(state.log.size)
        assert view.size(state).tuples == lasts
    assert max(held) < 4000


def test_an_id_may_be_used_again() -> None:
    lives = [(0, 5, 5), (5, 9, 20), (9, 12, 12)]
    changes = changes_of(lives, announced=False)
    again = Changes(
        changes.rows, changes.at, changes.exp, changes.sign, np.full(len(changes), 3, np.int64)
    )
    view = View(SCHEMA, "calendar and ids")
    state, deaths = view.step(view.initial_state(), again, 30)
    assert deaths.in_order().at.tolist() == [5, 9, 12]
    assert view.size(state).tuples == 0


def test_slots_of_a_calendar_become_more_when_rows_do() -> None:
    handles = View(SCHEMA, "calendar").initial_state().keeping
    assert isinstance(handles, KeptByHandle)
    few = len(handles.calendar.heads)
    lives = [(0, 1 + at, 1 + at) for at in range(20_000)]
    view = View(SCHEMA, "calendar")
    state, _ = view.step(view.initial_state(), changes_of(lives, announced=False), 1)
    assert isinstance(state.keeping, KeptByHandle)
    assert few == 17
    assert len(state.keeping.calendar.heads) == 1025


def test_the_pattern_of_an_edge_says_how_to_keep_it() -> None:
    weakest = Edge(UpdatePattern.WEAKEST, 5, in_order=True)
    weak = Edge(UpdatePattern.WEAK, 5)
    assert structure_for(Edge(UpdatePattern.MONOTONIC, None), "aware") == "append"
    assert structure_for(weakest, "aware") == "ring"
    assert structure_for(weak, "aware") == "calendar"
    assert structure_for(Edge(UpdatePattern.STRICT, None), "aware") == "calendar and ids"
    assert structure_for(weak, "negative") == "ids"
    assert structure_for(weak, "direct") == "list"


def test_a_damaged_state_is_refused() -> None:
    view = View(SCHEMA, "ring")
    dumped = view.dump(view.initial_state())
    with pytest.raises(StateError):
        view.load(dumped[:-8])
    with pytest.raises(StateError, match="columns"):
        View(pa.schema([("car", pa.string())]), "ring").load(dumped)
