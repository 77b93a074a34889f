"""What a database offers to those who run queries live.

What runs live is imported and made with the first query that does: most processes have none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from eventide.api.named import NamedQueries
from eventide.errors import StoreError
from eventide.store import Store, StoredStream

if TYPE_CHECKING:
    from typing import Unpack

    from eventide.api.builder import Query
    from eventide.api.live.delivery import Delivery
    from eventide.api.live.kept.listed import KeptQuery
    from eventide.api.live.options import LiveKeywords, ManyKeywords, SubscribeKeywords
    from eventide.api.live.pulled import Pull
    from eventide.api.live.receiver import Receive
    from eventide.api.live.shared.asked import Texts
    from eventide.api.live.shared.live_set import LiveSet
    from eventide.api.live.shown.metrics import Value
    from eventide.api.live.subscription import Subscription
    from eventide.api.live_side import LiveSide
    from eventide.lang.parameters import Parameters
    from eventide.sinks.contract import Sink


class LiveCalls(ABC):
    """The calls of a database that start live queries, list them and end them."""

    def __init__(self, store: Store, most_state_bytes: int | None = None) -> None:
        self.store = store
        self.most_state_bytes = most_state_bytes
        """How much the live queries of this process may remember together."""
        self.named = NamedQueries(store)
        self.side: LiveSide | None = None
        self.making = Lock()

    @abstractmethod
    def publish(self, stream: StoredStream, events: pa.RecordBatch, first_seq: int) -> None:
        """Hand events that have been appended to live queries."""

    @property
    def runs(self) -> bool:
        """Whether anything runs live here, or has to: queries of this process, stored streams."""
        try:
            return self.side is not None or self.named.has_stored()
        except StoreError:
            return True  # what runs says why it may be out of date

    @property
    def live_side(self) -> LiveSide:
        """What runs live here, made with the first query that does."""
        from eventide.api.live_side import LiveSide

        with self.making:
            if self.side is None:
                self.side = LiveSide(self.store, self.named, self.publish, self.most_state_bytes)
            return self.side

    @property
    def delivery(self) -> Delivery:
        """How events reach the live queries of this process."""
        return self.live_side.delivery

    def subscribe(
        self,
        query: Query,
        on_result: Receive | Sink | Pull | None = None,
        *,
        params: Parameters = None,
        **options: Unpack[SubscribeKeywords],
    ) -> Subscription:
        """Run a query live over the events appended to this database from now on.

        `on_result` gets the rows of the answer once they are complete: when the watermark, the
        newest time seen less `lateness`, has passed them. Events behind the watermark are stored
        but too late for this query, which counts and keeps them. With `late="window"` they are
        taken as long as a window of time that they belong to is open.

        The rows are handed over apart from the appends, in a thread of the query. While
        `queue_rows` of them wait, the query takes no events, which wait in the store; with
        `full="fail"` it fails instead. If `on_result` raises, it is called again: `retries` times,
        first after `retry_after`, then after twice that. Rows that it does not take at all go to
        the stream `dead_letters`, and the query goes on. `wait()` of the query returns once
        everything is handed over.

        With a `name`, the query is durable: its position and state are kept in the database, and
        after a crash or a restart the same call goes on where it was. Rows that were not received
        come again with the same numbers, `first_row` of what `on_result` gets. Another query under
        an old name is refused, or takes its place with `replace`. `start` says where a query that
        is new starts: "now", at the "beginning" of what is stored, or with the events from a time
        on. One that goes on does so where it was, whatever `start` and `from_history` say.

        With `idle`, such as "5 s", a stream of which no event came for so long by the wall clock
        does not hold the others back; when all are silent, time goes on with the wall clock. So
        windows, absences and situations are decided without a further event. `clock` is the wall
        clock, that of the system or in tests an `eventide.ManualClock`. A stream that is more than
        `max_lag` of event time behind another is not waited for either.

        A query whose state needs more than `max_state_bytes`, such as "1 GB", ends with an error. A
        derived stream that the query reads by name runs once, however many queries read it, and
        with a lateness of its own; the wall clock of a reader moves it for all of them.

        Queries begin with the rows that relations have; with `from_history`, also with the stored
        events, as if they had run from the first one on. What was complete before is not reported;
        of a standing query, over windows that slide, `current()` has the answer.

        The defaults of the options are those of `eventide.api.live.options.ReceivedOptions`.
        """
        from eventide.api.live.options import ReceivedOptions

        asked = ReceivedOptions(**options)
        return self.live_side.queries.subscribe(str(query), on_result, params, asked)

    def subscribe_many(
        self,
        queries: Texts,
        parameters: Any = None,  # noqa: ANN401 - any kind of table
        on_result: Receive | Pull | None = None,
        **options: Unpack[ManyKeywords],
    ) -> LiveSet:
        """Run many queries live, with one receiver for the rows of all.

        `queries` are texts in any language that `subscribe` takes: a list, a dict of names and
        texts, or one text with `$name` in it and `parameters`, a table with a row for each query.
        Queries that differ only in constants run as one, so that an event costs what the queries
        cost that it matters to, however many there are. Each answers as if it ran alone from when
        it was added.

        Rows have a first column `query`: its name, or its number in the order of adding. Queries
        come and go while events flow: `add` and `drop` of the set that is returned. A query that
        meets a value without an answer leaves the set, and `failures` says why.

        The options are those of `subscribe` that are not about a single query. If all queries
        together remember more than `max_state_bytes`, those that remember most leave, as if they
        had failed, and the others go on.

        With a `name`, the set is durable: which queries it has is kept in the database, with their
        states and the place in the streams. After a crash or a restart the same call goes on where
        it was, with the queries that were added and without those that were dropped; so does a call
        with no queries, `[]`.

        With `overload="stretch"`, periodic queries keep up with events that come as their times
        say: refreshes with the earliest deadlines go first, and if the machine does not manage all,
        all periods stretch by the same factor. `metrics()` has it, and what was left out.
        """
        from eventide.api.live.options import ManyOptions
        from eventide.api.live.shared.asked import asked

        chosen = ManyOptions(**options)
        return self.live_side.queries.subscribe_many(asked(queries, parameters), on_result, chosen)

    def live(
        self, query: Query, *, params: Parameters = None, **options: Unpack[LiveKeywords]
    ) -> Subscription:
        """Run a query live, as `subscribe` does, and let its rows wait until they are pulled.

        `for rows in db.live(text)` waits for rows, `async for` does so without blocking the event
        loop, and `next(timeout=2.0)` waits so long at most. `results()` reads them as Arrow
        batches; `to_polars()`, `to_pandas()` and `to_arrow()` take what waits now.

        While `queue_rows` rows wait, the query takes no events; they wait in the store. The other
        options are those of `subscribe`. The query runs until `cancel()`, or the end of a `with`.
        Rows of a durable query, one with a `name`, are received once the next ones are asked for.
        """
        from eventide.api.live.options import LiveOptions
        from eventide.api.live.pulled import Pull

        asked = LiveOptions(**options)
        return self.live_side.queries.subscribe(str(query), Pull.PULL, params, asked)

    def queries(self) -> tuple[Subscription, ...]:
        """Return the live queries of this process, oldest first: those that run or have failed.

        One that has failed is listed until it is cancelled.
        """
        return () if self.side is None else tuple(self.side.delivery.listed())

    def explain_all(self) -> str:
        """Return how the live queries of this process run together, as text.

        It draws what they share: the streams, the index of conditions above each, the templates
        with the rules that made them, how many queries stand on each, and what each part has done,
        takes and keeps.
        """
        if self.side is None:
            return "no live queries"
        from eventide.api.live.shared.explained import explain_all

        return explain_all(self.side.delivery)

    def metrics(self) -> dict[str, list[dict[str, Value]]]:
        """Return the numbers of all live queries of this process: {"queries": [...]}."""
        return {"queries": [query.metrics() for query in self.queries()]}

    def metrics_text(self) -> str:
        """Return the numbers of all live queries in the text form that Prometheus scrapes."""
        from eventide.api.live.shown.metrics import metrics_text

        return metrics_text(self.metrics()["queries"])

    def wait(self, timeout: float | None = None) -> bool:
        """Return once every query that is not paused has taken what is stored, and handed it over.

        With a `timeout`, return after so many seconds at the latest; whether all is done.
        """
        until = None if timeout is None else monotonic() + timeout
        return all(
            query.wait(None if until is None else max(0.0, until - monotonic()))
            for query in self.queries()
            if not query.paused
        )

    def close(self) -> None:
        """End the live queries of this process; rows that wait are handed over first."""
        if self.side is not None:
            self.side.delivery.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def kept_queries(self) -> tuple[KeptQuery, ...]:
        """Return the durable queries that the database keeps, whether they run or not."""
        return self.live_side.queries.kept()

    def drop_query(self, name: str) -> None:
        """Forget a durable query for good: its position and its state."""
        self.live_side.queries.drop(name)
