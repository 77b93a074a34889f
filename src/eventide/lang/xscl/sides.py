"""The variables of the patterns of a query: which document each is of."""

from __future__ import annotations

from collections.abc import Sequence

from eventide.errors import ParseError, Span
from eventide.plan.xml.document_queries import Side
from eventide.plan.xml.patterns import TreePattern


class PatternSides:
    """One pattern, or the left and the right one of a join. Case does not matter in variables."""

    def __init__(self, patterns: Sequence[TreePattern]) -> None:
        self.patterns = patterns
        self._names = [{name.lower(): name for name in each.variables} for each in patterns]

    def has(self, side: int, name: str) -> bool:
        """Whether a pattern binds a variable."""
        return name.lower() in self._names[side]

    def name(self, side: int, name: str) -> str:
        """Return a variable as its pattern spells it."""
        return self._names[side][name.lower()]

    def side_of(self, name: str, span: Span) -> Side:
        """Return which pattern binds a variable that only one of them may bind."""
        found = [side for side in range(len(self.patterns)) if self.has(side, name)]
        if len(found) > 1:
            message = f"both patterns bind {name}"
            hint = "give one of the two another name"
            raise ParseError(message, span=span, hint=hint)
        if not found:
            known = [name for each in self.patterns for name in each.variables if name != "."]
            message = f"no pattern binds {name}"
            hint = f"variables are {', '.join(known)}" if known else "bind one: step->name"
            raise ParseError(message, span=span, hint=hint)
        return 0 if found[0] == 0 else 1
