"""Secondary indexes: from the value of an attribute to the events that have it.

index.py    write runs, look values up in them
merging.py  when to merge runs, and their entries in one order
run.py      the bytes of one run
keys.py     entries ordered, hashed and searched
"""

from __future__ import annotations

from eventide.store.index.secondary.index import Extent, SecondaryReader, encode_run, merge_runs
from eventide.store.index.secondary.merging import runs_to_merge
from eventide.store.index.secondary.run import DamagedRunError

__all__ = [
    "DamagedRunError",
    "Extent",
    "SecondaryReader",
    "encode_run",
    "merge_runs",
    "runs_to_merge",
]
