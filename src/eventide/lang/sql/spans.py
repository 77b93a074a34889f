"""Where in the query text a part of the syntax stands."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlglot import ErrorLevel, exp

from eventide.errors import Span

# A closing bracket, perhaps behind a word that sqlglot does not mark: the unit of an interval,
# or the type of a cast.
_CLOSING = re.compile(r"\s*(?:(?:AS\s+)?[A-Za-z]+\s*)?\)", re.IGNORECASE)

_MIN_MAX = re.compile(r"\b(?:min|max)\s*\(\s*(?:distinct\s+)?$", re.IGNORECASE)


def span_of(node: exp.Expr) -> Span | None:
    """Return the smallest span that holds all marked parts of a node.

    sqlglot marks names, literals and the names of functions; the span covers what lies between
    them.
    """
    return union(_marked(part) for part in node.walk())


class KnownSpans:
    """The spans of nodes that do not change, each found once: parents take those of children."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[exp.Expr, Span | None]] = {}

    def of(self, node: exp.Expr) -> Span | None:
        """Return the span of a node, as `span_of` does."""
        found = self.known.get(id(node))
        if found is None:
            parts = [_marked(node), *map(self.of, node.iter_expressions())]
            # The node is kept, so that no other one gets its identity.
            found = self.known[id(node)] = (node, union(parts))
        return found[1]


def written(node: exp.Expr) -> str:
    """Return a node as SQL, to be shown; whether DuckDB can run it does not matter."""
    return node.sql(dialect="duckdb", unsupported_level=ErrorLevel.IGNORE)


def open_call(span: Span, node: exp.Expr, text: str) -> Span:
    """Extend the span of MIN(…) or MAX(…) over its name, which sqlglot does not mark."""
    if not isinstance(node, exp.Min | exp.Max):
        return span
    before = _MIN_MAX.search(text[: span.start])
    return span if before is None else Span(before.start(), span.end)


def _marked(node: exp.Expr) -> Span | None:
    start, end = node.meta.get("start"), node.meta.get("end")
    return Span(start, end + 1) if isinstance(start, int) and isinstance(end, int) else None


def union(spans: Iterable[Span | None]) -> Span | None:
    """Return the span from the first start to the last end."""
    known = [span for span in spans if span is not None]
    if not known:
        return None
    return Span(min(span.start for span in known), max(span.end for span in known))


def close_brackets(span: Span, text: str) -> Span:
    """Extend a span over the closing brackets that belong to it.

    >>> close_brackets(Span(0, 9), "avg(speed) > 3").of("avg(speed) > 3")
    'avg(speed)'
    """
    end = span.end
    missing = span.of(text).count("(") - span.of(text).count(")")
    for _ in range(missing):
        closing = _CLOSING.match(text, end)
        if closing is None:
            break
        end = closing.end()
    return Span(span.start, end)
