"""A live query that runs with others of its template as one, as long as it keeps up with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pyarrow as pa

from eventide.api.live.query import Step
from eventide.api.live.subscription import Subscription
from eventide.api.result import Result
from eventide.api.stream import Time
from eventide.arrays import no_rows
from eventide.engines.live.engine import LiveEngine, LiveState, Reported
from eventide.engines.live.sharing.tree.states import TemplateRows
from eventide.errors import StateLimitError
from eventide.operators.operator import Size
from eventide.plan.sharing.template import Template
from eventide.schema import row_schema

if TYPE_CHECKING:
    from eventide.api.live.delivery import Delivery
    from eventide.api.live.shared.shared_live import SharedLive


class SharedQuery(Subscription):
    """A query that shares its work. What only it does, such as `pause`, it does by itself.

    While it shares, it has no state of its own: the others' has a part for its number.
    """

    def __init__(
        self,
        engine: LiveEngine,
        template: Template,
        shared: SharedLive,
        delivery: Delivery,
        *,
        text: str,
    ) -> None:
        self.template = template
        self.seconds_before = 0.0
        """Its share of the time of steps with others that is counted already."""
        super().__init__(engine, delivery, text=text)
        self.shared = shared
        self.number = -1
        self.stays_apart = False
        """Whether it is doing something by itself, and does not join the others meanwhile."""
        self.late_before: dict[str, int] = {}
        """How many late events there were before it began."""

    @property
    def shares(self) -> bool:
        """Whether it runs with others."""
        return self.shared.members.get(self.number) is self

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of what is reported."""
        row = self.template.plan.row
        return row_schema({name: row[name] for name in self.template.columns})

    def take_rows(self, rows: pa.RecordBatch) -> None:
        """Take rows that the others' step gave for it."""
        self.counters.steps += 1
        try:
            self.hand_on(pa.Table.from_batches([rows]))
        except StateLimitError as full:
            self.fail(full)

    def fail(self, why: BaseException) -> None:
        """End the query: it cannot go on, but the others can."""
        super().fail(why)
        self.shared.drop(self)

    def stepped(self, step: Step) -> Result:
        """Take a step by itself."""

        def own() -> tuple[LiveState, Reported]:
            state, reported = step()
            found: tuple[TemplateRows, ...] = cast("tuple[TemplateRows, ...]", reported.rows)
            rows = no_rows(self.output_schema)
            for each in found:
                rows = each.rows.select(self.template.columns)
            return state, Reported(rows, reported.late, reported.watermark_us)

        return super().stepped(own)

    def joins(self) -> bool:
        """Share again, if it keeps up and is as far as the others; whether it does."""
        with self.stepping:
            if self.held or self.finished or self.stays_apart:
                return False
            return self.shared.join(self)

    def part(self) -> None:
        """Go on by itself, in the group of those that keep up."""
        if self.shares:
            self.delivery.part(self)

    def pause(self) -> None:
        """Take no events until `resume`; they wait in the store."""
        # First it is held: else it might join the others again at once.
        super().pause()
        self.part()

    def advance(self, to: Time, stream: str | None = None) -> Result:
        """Declare that no event before a time will come, of one stream or of all."""
        self.stays_apart = True
        try:
            self.part()
            return super().advance(to, stream)
        finally:
            self.stays_apart = False

    def finish(self) -> Result:
        """Complete all that is open, as if the streams had ended."""
        self.stays_apart = True
        self.delivery.bring(self)
        self.part()
        return super().finish()

    def ended(self) -> None:
        """Tell others that the query is over."""
        self.shared.drop(self)
        super().ended()
        if not len(self.shared):
            self.delivery.forget(self.shared)

    @property
    def step_seconds(self) -> float:
        """How long its steps took: by itself, and its share of those with others."""
        own = self.counters.step_seconds
        if not self.shares:
            return own
        return own + self.shared.seconds_of(self) - self.seconds_before

    @property
    def late_count(self) -> int:
        """How many events came too late, of all streams."""
        return sum(self.late_counts.values())

    @property
    def late_counts(self) -> dict[str, int]:
        """How many events of each stream came too late."""
        own = {stream: late.count for stream, late in self.lates.items()}
        if self.shares:
            for stream, late in self.shared.lates.items():
                if stream in own:
                    own[stream] += late.count - self.late_before.get(stream, 0)
        return own

    def sizes(self) -> tuple[tuple[str, Size], ...]:
        """Return the size of its part of the state."""
        if not self.shares:
            return super().sizes()
        return self.shared.sizes_of(self)
