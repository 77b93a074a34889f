"""A stored derived stream, as users hold it: its query writes it, and nobody else."""

from __future__ import annotations

from eventide.api.stream import Stream
from eventide.errors import StoreError
from eventide.schema import DataType
from eventide.store import Appended
from eventide.store.store import not_by_hand
from eventide.store.writing.feed import Feed


class StoredDerivedStream(Stream):
    """A stream that stores the rows of a query; nothing else is appended to it."""

    def append(
        self,
        data: object,  # noqa: ARG002 - refused, whatever it is
        *,
        producer: str | None = None,  # noqa: ARG002
        sequence: int | None = None,  # noqa: ARG002
    ) -> Appended:
        """Refuse events by hand."""
        raise not_by_hand(self.name)

    def feed(self, capacity_rows: int = 1_000_000) -> Feed:  # type: ignore[override] # noqa: ARG002
        """Refuse events by hand."""
        raise not_by_hand(self.name)

    def add_attribute(self, name: str, kind: str | DataType) -> None:  # noqa: ARG002
        """Refuse another column: the query has none."""
        raise self.fixed()

    def drop_attribute(self, name: str) -> None:  # noqa: ARG002
        """Refuse to lose a column that the query has."""
        raise self.fixed()

    def fixed(self) -> StoreError:
        """Return the error for other columns."""
        message = f"the columns of {self.name} are those of its query"
        return StoreError(message, hint="drop it, and create it with another query")
