"""The contract of an operator of a standing query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

import pyarrow as pa

from eventide.operators.standing.changes import Changes

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class Size:
    """The size of an operator's state: living tuples, and bytes of all its arrays and rows."""

    tuples: int
    bytes: int


class StandingOperator(Protocol[State]):
    """A frozen configuration whose state is a value that any engine can keep, dump and load.

    A state is large and changed in place: it belongs to the step it is given to, which returns the
    state to go on with. To come back to a state later, dump it.
    """

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of the output."""
        ...

    def initial_state(self) -> State:
        """Return the state before the first instant."""
        ...

    def step(
        self, state: State, inputs: tuple[Changes, ...], until_us: int
    ) -> tuple[State, Changes]:
        """Take the changes of all inputs at instants before `until_us`.

        All of them: later steps only bring changes at `until_us` or later. The output is in order
        of `at`, all of it before `until_us`, whether a change or an expiry caused it. How instants
        are divided among steps changes nothing.
        """
        ...

    def write(self, state: State) -> bytes:
        """Write the state out, as a part of something larger."""
        ...

    def read(self, written: bytes) -> State:
        """Read back what `write` wrote; an error if the bytes are anything else."""
        ...

    def dump(self, state: State) -> bytes:
        """Write the state out, with a version, a checksum, and its owner."""
        ...

    def load(self, dumped: bytes) -> State:
        """Read back what `dump` wrote; `StateError` if the bytes are anything else."""
        ...

    def size(self, state: State) -> Size:
        """Return the size of the state."""
        ...
