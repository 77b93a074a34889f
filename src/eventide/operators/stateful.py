"""Objects with a state that can be written out and read back, in the same envelope for all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import ClassVar, Generic, TypeVar

import pyarrow as pa

from eventide.errors import StateError
from eventide.operators.dividing import Wanted, undivided
from eventide.operators.envelope import QUERY, Owner, seal, unsealed_for
from eventide.plan.meaning import digest_of

State = TypeVar("State")


def columns_text(schema: pa.Schema) -> str:
    """Return columns with their types, for people.

    >>> columns_text(pa.schema([("car", pa.string()), ("speed", pa.float64())]))
    'car string, speed double'
    """
    return ", ".join(f"{field.name} {field.type}" for field in schema)


class Stateful(ABC, Generic[State]):
    """A frozen configuration whose state travels beside it.

    An object made of others, such as a tree, writes what these `write`; only the outermost one
    seals it. The fields of such a dataclass identify the owner of its state.
    """

    reads_blocks: ClassVar[bool] = False
    """Whether it takes less time for a few large batches than for many small ones."""

    @cached_property
    def owner(self) -> Owner:
        """The owner of the state: what the state depends on."""
        node, schema = getattr(self, "node", None), getattr(self, "output_schema", None)
        facts = {} if node is None else {QUERY: node.line}
        if schema is not None:
            facts["columns"] = columns_text(schema)
        return Owner(type(self).__name__, digest_of(self), facts)

    @abstractmethod
    def initial_state(self) -> State:
        """Return the state before the first step."""

    def reached(self, state: State, until_us: int) -> int:  # noqa: ARG002 - for those that lag
        """Return the instant before which the output is complete: that of the step."""
        return until_us

    def of_keys(self, state: State, wanted: Wanted) -> State:  # noqa: ARG002 - for those by key
        """Return the state of only those keys whose number of a query is wanted."""
        raise undivided(type(self).__name__, "it is not by key")

    def united(self, state: State, other: State) -> State:  # noqa: ARG002 - for those by key
        """Return the state of the keys of two states that stand at the same instant."""
        raise undivided(type(self).__name__, "it is not by key")

    @abstractmethod
    def write(self, state: State) -> bytes:
        """Write the state out, without an envelope."""

    @abstractmethod
    def read(self, written: bytes) -> State:
        """Read back what `write` wrote.

        The bytes may be anything: what kernels rely on is checked here, because they do not check
        whether an index is in range.
        """

    def dump(self, state: State) -> bytes:
        """Write the state out, with a version, a checksum, and its owner."""
        return seal(self.owner, self.write(state))

    def load(self, dumped: bytes) -> State:
        """Read back what `dump` wrote; `StateError` if the bytes are anything else."""
        written = unsealed_for(self.owner, dumped)
        try:
            return self.read(written)
        except StateError:
            raise
        except Exception as error:
            message = f"the state of {self.owner.name} is wrong inside: {error}"
            hint = "its checksum is right: it was written so, by something else than dump"
            raise StateError(message, hint=hint) from error
