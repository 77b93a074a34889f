"""Everything of a database that runs live."""

from __future__ import annotations

from eventide.api.live.dead_letters import DeadLetters
from eventide.api.live.delivery import Delivery
from eventide.api.live.queries import LiveQueries
from eventide.api.live.stored.queries import StoredQueries
from eventide.api.named import NamedQueries
from eventide.api.stream import Publish
from eventide.store import Store


class LiveSide:
    """Live queries, stored derived streams, and how events reach them."""

    def __init__(
        self,
        store: Store,
        named: NamedQueries,
        publish: Publish,
        most_state_bytes: int | None = None,
    ) -> None:
        self.delivery = Delivery(store, most_state_bytes)
        letters = DeadLetters(store, publish)
        self.queries = LiveQueries(store, named, self.delivery, letters)
        self.stored = StoredQueries(named, self.delivery)
