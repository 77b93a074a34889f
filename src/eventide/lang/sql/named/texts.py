"""A query and the definitions that it may read, as one text.

The definitions stand behind the query, one after the other. So everything that is planned has its
own place in one text, and an error in a definition is shown there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from eventide.errors import EventideError, Span
from eventide.plan.named import NamedQuery


@dataclass(frozen=True, slots=True)
class NamedTexts:
    """The text of a query, and the place of each definition behind it, by name in lower case."""

    query: str
    named: Mapping[str, NamedQuery]
    starts: Mapping[str, int]
    whole: str

    @classmethod
    def of(cls, query: str, named: Mapping[str, NamedQuery]) -> NamedTexts:
        """Put definitions behind a query."""
        starts: dict[str, int] = {}
        parts, end = [query], len(query)
        for name, each in sorted(named.items()):
            starts[name] = end + 1
            parts.append(each.text)
            end += 1 + len(each.text)
        return cls(query, named, starts, "\n".join(parts))

    def placed(self, name: str) -> str:
        """Return the text of a definition behind as many blanks as stand before it here."""
        return " " * self.starts[name] + self.named[name].text

    def locate(self, error: EventideError) -> None:
        """Let an error point into the query, or into the definition that it is about."""
        if error.text is not None:
            return
        if error.span is None or error.span.start < len(self.query):
            if error.span is not None and error.span.end > len(self.query):
                # Part of it is in a definition: the rest is what can be shown.
                error.span = Span(error.span.start, len(self.query.rstrip()))
            error.located_in(self.query)
            return
        found = [name for name, start in self.starts.items() if start <= error.span.start]
        name = max(found, key=lambda each: self.starts[each])
        each, start = self.named[name], self.starts[name]
        error.span = Span(error.span.start - start, min(error.span.end - start, len(each.text)))
        error.message = f"in the definition of {each.name}: {error.message}"
        error.located_in(each.text)

    @contextmanager
    def pointing(self) -> Iterator[None]:
        """Let errors that are raised inside point to their place."""
        try:
            yield
        except EventideError as error:
            self.locate(error)
            raise
