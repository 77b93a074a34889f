"""Keys of changes, without those that are null."""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import frozen
from eventide.operators.changes import Changes
from eventide.operators.fingerprints import Fingerprints


def without_null(changes: Changes, keys: Fingerprints) -> tuple[Changes, Fingerprints]:
    """Return changes, and their keys, without those that have a null among their key values."""
    if not keys.null.any():
        return changes, keys
    places = np.flatnonzero(~keys.null)
    first, second = frozen(keys.first[places]), frozen(keys.second[places])
    return changes.take(places), Fingerprints(first, second, keys.null[places])
