"""How far periods stretch: as far as they have to, for all alike, and back again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eventide.engines.live.sharing.pace import MOST, PeriodPace

SECOND = 1_000_000


def paced(
    pace: PeriodPace, steps: int, events: float, refreshes: float, faster: float = 1.0
) -> PeriodPace:
    """Return the pace after steps of a second of events each, which take shares of a second.

    Refreshes take less as periods stretch; a step that takes longer holds up the next one.
    """
    for _ in range(steps):
        took_us = int(refreshes / pace.stretch * SECOND)
        passed_us = max(int(SECOND / faster), int(events * SECOND) + took_us)
        pace = pace.after(SECOND, passed_us, int(events * SECOND), took_us)
    return pace


def test_a_machine_that_keeps_up_does_as_it_was_asked() -> None:
    assert paced(PeriodPace(), 100, 0.2, 0.7).stretch == 1


def test_periods_stretch_until_the_machine_keeps_up_and_shrink_again() -> None:
    pace = paced(PeriodPace(), 100, 0.2, 2.0)
    assert pace.stretch == 4
    assert pace.load(4) <= 0.8
    assert paced(pace, 200, 0.2, 0.4).stretch == 1


def test_where_events_alone_are_too_much_periods_stretch_no_further_than_that() -> None:
    assert paced(PeriodPace(), 100, 1.5, 1.0).stretch == 8
    assert paced(PeriodPace(), 100, 1.5, 0.1).stretch == 1


def test_history_is_read_as_fast_as_it_can_be() -> None:
    assert paced(PeriodPace(), 100, 0.01, 0.3, faster=100).stretch == 1


def test_one_slow_step_changes_nothing() -> None:
    pace = paced(PeriodPace(), 1, 0.0, 5.0)
    assert paced(pace, 60, 0.1, 0.1).stretch == 1


@given(st.floats(0, 3), st.floats(0, 200))
def test_the_factor_is_the_least_that_is_enough(events: float, refreshes: float) -> None:
    pace = paced(PeriodPace(), 400, events, refreshes)
    most = max(0.8, 1.1 * events)
    enough = [each for each in (1, 2, 4, 8, 16, 32) if events + refreshes / each <= most]
    least = min(enough, default=MOST)
    if events + refreshes <= 1.0:
        assert pace.stretch == 1
    else:
        # Just at the border, what was measured decides.
        assert pace.stretch in (least, 2 * least, least // 2)
        assert pace.stretch in (least, 64) or abs(events + refreshes / pace.stretch - most) < 0.01
