"""The contract of an operator, and what travels between operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

import pyarrow as pa

from eventide.operators.changes import Changes
from eventide.operators.dividing import Wanted

State = TypeVar("State")
Edge = pa.RecordBatch | Changes
"""What travels on an edge in one step.

Rows of an append-only edge are just rows, in order of their column `ts` if they have one. Rows that
expire, or can be taken back, are `Changes`: each has an instant `at`, an expiry, a sign and an id.
"""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of an operator's state: its rows, and the bytes of all it keeps."""

    tuples: int
    bytes: int


class Operator(Protocol[State]):
    """A frozen configuration whose state is a value that any engine can keep, dump and load.

    One state holds many keys, so that one call covers a whole batch. A state belongs to the step
    that it is given to, which returns the state to go on with: to come back to a state later, dump
    it. Results do not depend on how the events were divided into steps.
    """

    reads_blocks: ClassVar[bool]
    """Whether it takes less time for a few large batches than for many small ones."""

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of the output."""
        ...

    def initial_state(self) -> State:
        """Return the state before the first step."""
        ...

    def step(self, state: State, inputs: tuple[Any, ...], until_us: int) -> tuple[State, Any]:
        """Take the edges of all inputs at instants before `until_us`; return the output's.

        All of them: later steps only bring rows at `until_us` or later.
        """
        ...

    def reached(self, state: State, until_us: int) -> int:
        """Return the instant before which the output is complete after such a step.

        Mostly that of the step. A window that ends at `until_us` is complete as well, and a row
        pattern may still find matches that end before it.
        """
        ...

    def of_keys(self, state: State, wanted: Wanted) -> State:
        """Return the state of only those keys whose number of a query is wanted; see dividing.py.

        The state stays as it is, and both may go on. An error if it is not by such a key.
        """
        ...

    def united(self, state: State, other: State) -> State:
        """Return the state of the keys of two states, which have no key in common.

        Both stand at the same instant. Together they give the rows that each alone would have
        given.
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
