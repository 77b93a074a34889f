"""What travels between the operators of a standing query: tuples that come and go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide.arrays import no_rows, to_arrow
from eventide.instants import END_OF_TIME_US
from eventide.kernels.compiled import Int64s

Int8s = npt.NDArray[np.int8]

NEVER = END_OF_TIME_US
"""The expiry of a tuple that never expires."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Tuples that come (sign +1) or go before they expire (sign -1), in order of `at`.

    A tuple that came at `at` lasts until `exp`; its expiry is not announced. If it has to go
    earlier, a row with sign -1 says so: it has the `id`, the `exp` and the values of the tuple, and
    `at` is the instant at which it goes. An `id` names one living tuple of an edge. Within an
    instant the order is that in which an operator has to take the changes; a tuple may come and go
    in the same instant.
    """

    rows: pa.RecordBatch
    at: Int64s
    exp: Int64s
    sign: Int8s
    id: Int64s

    @classmethod
    def nothing(cls, schema: pa.Schema) -> Changes:
        """Return an empty batch of changes with these columns."""
        none = np.zeros(0, np.int64)
        rows = no_rows(schema)
        return cls(rows, none, none, np.zeros(0, np.int8), none)

    @classmethod
    def concat(cls, parts: Sequence[Changes], schema: pa.Schema) -> Changes:
        """Return consecutive parts as one."""
        filled = [part for part in parts if len(part)]
        if len(filled) == 1:
            return filled[0]
        if not filled:
            return cls.nothing(schema)
        return cls(
            pa.concat_batches([part.rows for part in filled]),
            np.concatenate([part.at for part in filled]),
            np.concatenate([part.exp for part in filled]),
            np.concatenate([part.sign for part in filled]),
            np.concatenate([part.id for part in filled]),
        )

    def __len__(self) -> int:
        return len(self.at)

    def take(self, places: Int64s) -> Changes:
        """Return the changes at these places."""
        return Changes(
            self.rows.take(to_arrow(places)),
            self.at[places],
            self.exp[places],
            self.sign[places],
            self.id[places],
        )

    def with_rows(self, rows: pa.RecordBatch) -> Changes:
        """Return the changes with other values."""
        return Changes(rows, self.at, self.exp, self.sign, self.id)
