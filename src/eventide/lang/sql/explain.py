"""EXPLAIN and EXPLAIN ANALYZE in front of a query."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from eventide.errors import EventideError

_BEFORE = r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
_PREFIX = re.compile(
    rf"({_BEFORE})(EXPLAIN\b(?:{_BEFORE}(?P<analyze>ANALY[ZS]E\b|\(\s*ANALY[ZS]E\s*\)))?)",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class ExplainRequest:
    """A query whose plan is wanted; `query` stands at the same place as in `text`."""

    text: str
    query: str
    analyze: bool

    @contextmanager
    def pointing(self) -> Iterator[None]:
        """Make errors show the text as it was written, with EXPLAIN."""
        try:
            yield
        except EventideError as error:
            if error.text is None or error.text == self.query:
                error.text = self.text
            raise


def explain_request(text: str) -> ExplainRequest | None:
    """Return the request of an EXPLAIN, or None for any other text.

    >>> explain_request("EXPLAIN ANALYZE SELECT 1")
    ExplainRequest(text='EXPLAIN ANALYZE SELECT 1', query='                SELECT 1', analyze=True)
    """
    found = _PREFIX.match(text)
    if found is None:
        return None
    # The length stays the same, so that places in the query are places in the text.
    blank = re.sub(r"[^\n]", " ", found[2])
    query = text[: found.start(2)] + blank + text[found.end(2) :]
    return ExplainRequest(text, query, analyze=found["analyze"] is not None)
