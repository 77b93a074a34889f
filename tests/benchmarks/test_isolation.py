"""Reads of windows whose panes are overwritten: what was read is a window; counts are exact."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from benchmarks.sharing.isolation import isolation, pane_reads

from tests.exploring import EXPLORING
from tests.naive.sharing.panes import PaneQuery, windows_seen


@pytest.mark.parametrize("rescans", [False, True])
@pytest.mark.parametrize("youngest", [False, True])
def test_queries_commit_with_the_window_as_it_is_then(youngest: bool, rescans: bool) -> None:
    random, committed = Random(3), 0
    for _ in range(3_000 if EXPLORING else 300):
        length, share = random.randint(1, 7), random.random()
        updates = [random.random() < share for _ in range(40)]
        query = PaneQuery(length, max if youngest else min, rescans, newest=length)
        query.run(updates)
        every = np.array(updates)[:, np.newaxis]
        found = pane_reads(every, length, youngest=youngest, rescans=rescans)
        assert found.committed.tolist() == [query.committed is not None]
        assert found.aborted.tolist() == [query.aborted]
        assert found.taken_back.tolist() == [query.taken_back]
        if query.committed is not None:
            # It stands in a serial order, and there is no update between it and the last one.
            assert windows_seen(query.committed, length, query.newest) == [query.newest]
            committed += 1
    assert committed


def test_youngest_first_begins_again_only_if_more_came_than_are_left() -> None:
    random = Random(5)
    for _ in range(3_000 if EXPLORING else 300):
        length, share = random.randint(1, 7), random.random()
        query = PaneQuery(length, max, rescans=False, newest=length)
        began = length
        for _ in range(60):
            if query.committed is not None:
                break
            if random.random() < share:
                came = {each for each in query.window if each > began} - query.read
                read, before = len(query.read), query.aborted
                query.update()
                assert (query.aborted > before) == (read > 0 and len(came) + 1 > length - read)
            else:
                began = query.newest if not query.read else began
                query.step()


def test_no_query_begins_again_with_at_most_one_update_between_two_reads() -> None:
    found = isolation(1_000_000 if EXPLORING else 2_000)
    assert found.aborted_slowly == 0
    assert found.aborted_any > 2 * found.aborted_youngest > 0
    assert found.taken_back > 0


def test_a_window_that_nobody_overwrites_is_read_once() -> None:
    found = pane_reads(np.zeros((4, 1), np.bool_), 4, youngest=True, rescans=False)
    assert found.committed.all()
    assert not found.aborted.any()
