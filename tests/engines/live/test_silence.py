"""Silent streams are moved by a wall clock, to instants that follow from what was heard."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.engines.live.silence import Silence
from eventide.errors import PlanError
from eventide.instants import START_OF_TIME_US
from eventide.schema import MAX_TS_US

NONE = START_OF_TIME_US


def starting(idle: int, now: int = 0, **marks: int) -> Silence:
    return Silence.starting(idle, marks, now)


def test_one_stream_goes_on_with_the_wall_clock() -> None:
    #  wall      0    4    5    7        idle 5, watermark 100 when the last event came
    #  moved to       -   105  107
    silence = starting(5, a=100)
    assert silence.at(4).moves({"a": 100}) == {}
    assert silence.at(5).moves({"a": 100}) == {"a": 105}
    assert silence.at(5).at(7).moves({"a": 105}) == {"a": 107}
    assert silence.at(7).moves({"a": 200}) == {}  # moved further by hand


def test_a_silent_stream_is_moved_to_where_the_others_are() -> None:
    #  b is heard of at wall time 4, c at 6; a has been silent since 0
    silence = starting(5, a=100, b=100, c=100).at(4).heard(["b"], {"a": 100, "b": 900, "c": 100})
    silence = silence.heard(["c"], {"a": 100, "b": 900, "c": 700}).at(6)
    assert silence.silent == {"a"}
    assert silence.moves({"a": 100, "b": 900, "c": 700}) == {"a": 700}
    assert silence.moves({"a": 800, "b": 900, "c": 700}) == {}
    assert silence.look_again_us == 9


def test_if_all_are_silent_none_holds_the_furthest_back() -> None:
    silence = starting(5, a=100, b=900, never=NONE).at(3).heard(["a"], {"a": 300}).at(8)
    assert silence.moves({"a": 300, "b": 900, "never": NONE}) == dict.fromkeys(
        ["a", "b", "never"], 908
    )


def test_a_stream_that_never_had_an_event_is_waited_for_as_long_as_any_other() -> None:
    silence = starting(5, a=100, never=NONE).at(4).heard(["a"], {"a": 200, "never": NONE})
    assert silence.moves({"a": 200, "never": NONE}) == {}
    assert silence.at(5).moves({"a": 200, "never": NONE}) == {"never": 200}


def test_without_any_event_there_is_no_time_to_go_on_from() -> None:
    silence = starting(5, a=NONE, b=NONE).at(50)
    assert silence.moves({"a": NONE, "b": NONE}) == {}
    assert silence.look_again_us is None


def test_a_clock_that_is_set_back_stands_still() -> None:
    silence = starting(5, now=1000, a=100).at(1004).at(10)
    assert silence.moves({"a": 100}) == {}
    assert silence.at(11).moves({"a": 100}) == {"a": 105}


def test_after_a_restart_silence_begins_anew_from_where_time_was() -> None:
    silence = starting(5, a=100).at(60)
    assert silence.moves({"a": 100}) == {"a": 160}
    again = starting(5, now=7_000, a=160)
    assert again.at(7_004).moves({"a": 160}) == {}
    assert again.at(7_006).moves({"a": 160}) == {"a": 166}


def test_time_ends_behind_the_last_event_there_can_be() -> None:
    silence = starting(5, a=MAX_TS_US - 2).at(60)
    assert silence.moves({"a": MAX_TS_US - 2}) == {"a": MAX_TS_US + 1}
    assert silence.moves({"a": MAX_TS_US + 1}) == {}


@pytest.mark.parametrize(
    ("idle", "look"), [(5_000_000, 500_000), (10_000, 10_000), (60_000_000, 1_000_000)]
)
def test_silent_streams_are_looked_at_often_enough(idle: int, look: int) -> None:
    silence = starting(idle, now=7, a=100)
    assert silence.look_again_us == 7 + idle
    assert silence.at(7 + idle).look_again_us == 7 + idle + look


def test_no_time_is_no_silence() -> None:
    with pytest.raises(PlanError, match="idle has to be longer than 0 s"):
        starting(0, a=1)


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abc"), st.integers(0, 50)), max_size=30),
    st.integers(1, 12),
    st.lists(st.integers(0, 200), max_size=12),
)
def test_how_often_one_looks_does_not_matter(
    events: list[tuple[int, str, int]], idle: int, looks: list[int]
) -> None:
    """Where streams end up depends on the events and on the wall time, not on the looks."""
    ends = []
    for looked in (looks, []):
        marks, now = dict.fromkeys("abc", NONE), 0
        silence = starting(idle, **marks)
        # What is heard says nothing of the looks between: they come at wall times of their own.
        for passed, stream, ts in events:
            for look in sorted(each for each in looked if now < each <= now + passed):
                silence = silence.at(look)
                marks |= silence.moves(marks)
            now += passed
            silence = silence.at(now)
            marks |= silence.moves(marks)
            marks[stream] = max(marks[stream], ts)
            silence = silence.heard([stream], marks)
            marks |= silence.moves(marks)
        silence = silence.at(now + 20)
        ends.append(marks | silence.moves(marks))
    assert ends[0] == ends[1]


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from("ab")), max_size=30),
    st.integers(1, 12),
    st.integers(-1000, 1000),
)
def test_events_that_come_in_time_are_never_late(
    events: list[tuple[int, str]], idle: int, ahead: int
) -> None:
    """Event time that goes with the wall clock, however far from it, is not overtaken."""
    marks, now = {"a": NONE, "b": NONE}, 0
    silence = starting(idle, **marks)
    for passed, stream in events:
        now += passed
        silence = silence.at(now)
        marks |= silence.moves(marks)
        ts = now + ahead
        assert min(marks.values()) <= ts
        marks[stream] = max(marks[stream], ts)
        silence = silence.heard([stream], marks)
        marks |= silence.moves(marks)
