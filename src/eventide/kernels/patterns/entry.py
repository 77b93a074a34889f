"""Where searches that began at different rows meet: from there on they are the same."""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Int64s, kernel


@kernel
def last_meeting(following: Int64s, begun: int, last: int) -> int:
    """Return the last row up to `last` that a search reaches from every start; -1 if none.

    From row i it goes on to row `following[i]`, which is larger. It began at one of the rows from 0
    to `begun`. Row by row: a row is marked when some search reaches it, and `ahead` counts marked
    rows further on. If a search reaches a row and none is ahead, all have reached it.
    """
    noted = np.zeros(len(following) + 2, np.bool_)
    noted[: begun + 1] = True
    ahead = begun + 1
    met = -1
    for row in range(last + 1):
        if not noted[row]:
            continue
        ahead -= 1
        if ahead == 0 and row >= begun:
            met = row
        if row < len(following) and not noted[following[row]]:
            noted[following[row]] = True
            ahead += 1
    return met
