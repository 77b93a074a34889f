"""Small batches of documents are read once, however many live queries look at them.

Each query gets a batch by itself, with the same documents as others a moment before. To compare
the bytes of documents takes a fiftieth of the time of reading them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

from eventide.documents.nodes import Nodes
from eventide.documents.read import read_documents

MOST_BYTES = 1 << 18
"""Batches of more are not remembered: what is done with them takes longer than one query."""
MOST_BATCHES = 8

Batch = tuple[bytes | None, ...]
_LOCK = Lock()
_READ: OrderedDict[Batch, Nodes] = OrderedDict()


def nodes_of(documents: Sequence[bytes | None]) -> Nodes:
    """Return the nodes of documents; they are not to be changed."""
    if sum(len(each) for each in documents if each is not None) > MOST_BYTES:
        return read_documents(documents)
    batch = tuple(documents)
    with _LOCK:
        found = _READ.get(batch)
        if found is not None:
            _READ.move_to_end(batch)
            return found
    nodes = read_documents(documents)
    with _LOCK:
        _READ[batch] = nodes
        if len(_READ) > MOST_BATCHES:
            _READ.popitem(last=False)
    return nodes
