"""A set of event numbers in little memory: the numbers of a stream have few holes."""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Bools, Int64s

PAGE_BITS = 16
NONE: Bools = np.zeros(1 << PAGE_BITS, np.bool_)


class SeqSet:
    """Numbers that were seen: a byte for each number of a page, nothing once a page is full.

    >>> seen = SeqSet()
    >>> seen.add(np.array([4, 5, 5])).tolist(), seen.add(np.array([6, 4])).tolist()
    ([True, True, False], [True, False])
    """

    def __init__(self) -> None:
        self.pages: dict[int, Bools | None] = {}

    def add(self, seqs: Int64s) -> Bools:
        """Add numbers; return which of them were not there before."""
        numbers, places = np.unique(seqs, return_index=True)
        pages = numbers >> PAGE_BITS
        fresh: Bools = np.zeros(len(seqs), np.bool_)
        for page in np.unique(pages).tolist():
            start, end = np.searchsorted(pages, [page, page + 1])
            within = numbers[start:end] & ((1 << PAGE_BITS) - 1)
            fresh[places[start:end]] = self.add_to_page(page, within)
        return fresh

    def add_to_page(self, page: int, within: Int64s) -> Bools:
        """Add different numbers of one page; return which were not there before."""
        held = self.pages.setdefault(page, np.zeros(1 << PAGE_BITS, np.bool_))
        if held is None:
            return np.zeros(len(within), np.bool_)
        fresh: Bools = ~held[within]
        held[within] = True
        if held.all():
            self.pages[page] = None
        return fresh

    def has(self, seqs: Int64s) -> Bools:
        """Return which numbers are there."""
        found: Bools = np.zeros(len(seqs), np.bool_)
        pages = seqs >> PAGE_BITS
        for page in np.unique(pages).tolist():
            held, of_page = self.pages.get(page, NONE), pages == page
            within = seqs[of_page] & ((1 << PAGE_BITS) - 1)
            found[of_page] = True if held is None else held[within]
        return found
