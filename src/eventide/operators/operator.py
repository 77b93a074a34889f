"""The contract of an operator."""

from __future__ import annotations

from typing import Protocol, TypeVar

import pyarrow as pa

from eventide.batch import Batch

State = TypeVar("State")


class Operator(Protocol[State]):
    """A frozen configuration whose state is a value that any engine can keep, dump and load.

    One state holds many keys, so that one call covers a whole batch. `step` never changes the
    state it is given: an engine may keep the old one and retry. Results do not depend on how
    the events were divided into batches.
    """

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of the results."""
        ...

    def initial_state(self) -> State:
        """Return the state before the first batch."""
        ...

    def step(self, state: State, batch: Batch) -> tuple[State, Batch]:
        """Take a batch; return the state after it and the results that it completes.

        The watermark of the results promises to the next operator what the batch's watermark
        promised to this one.
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
