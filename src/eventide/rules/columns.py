"""The columns of a stream under the names that rules use for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eventide.errors import RuleError, listed
from eventide.rules.texts import quoted
from eventide.schema import STRING, DataType


@dataclass(frozen=True, slots=True)
class FieldColumn:
    """The column that a field is, as SQL, and its type."""

    text: str
    type: DataType


@dataclass(frozen=True, slots=True)
class FieldColumns:
    """The columns of a source of events, by the names of fields.

    `types` are the columns; without them every field is a text of its own name. `renamed` says
    which column a field is, or None for a field that no event has. `keywords` are the fields in
    which a value without a field is looked for.
    """

    source: str
    types: Mapping[str, DataType] | None
    renamed: Mapping[str, str | None] = field(default_factory=dict)
    keywords: tuple[str, ...] = ()

    def column(self, name: str) -> FieldColumn | None:
        """Return the column of a field, None if no event has the field."""
        wanted = self.renamed.get(name, name)
        if wanted is None:
            return None
        if self.types is None:
            return FieldColumn(quoted(wanted), STRING)
        found = {each.lower(): each for each in self.types}.get(wanted.lower())
        if found is None:
            message = f"{self.source} has no column {wanted!r}"
            known = listed(list(self.types))
            hint = f"its columns are {known}; a mapping says which of them is {name}, or null"
            raise RuleError(message, hint=hint)
        return FieldColumn(quoted(found), self.types[found])
