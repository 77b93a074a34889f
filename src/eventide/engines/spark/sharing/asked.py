"""The queries of one DataFrame: those that share, those that do not, and the columns of all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from eventide.api.live.shared.asked import AskedQueries
from eventide.api.live.shared.sets import planned_queries
from eventide.api.many.history import divided
from eventide.api.many.result import with_query
from eventide.engines.live.sharing.distribution import QueryShare, shares_of
from eventide.engines.live.sharing.many import ManyRows
from eventide.engines.live.sharing.planned import ManyPlanner, PlanText
from eventide.engines.spark.spread import Batches
from eventide.engines.spark.types import carried, from_the_border, mapped, type_of
from eventide.engines.spark.zones import zoneless_columns
from eventide.errors import SchemaError
from eventide.operators.stateful import columns_text
from eventide.plan.sharing.portion import Portion
from eventide.plan.sharing.rules import WITHOUT_PARTS
from eventide.schema import row_schema

Alone = Callable[[str, Mapping[str, object] | None], DataFrame]
"""Runs a text with the values of its parameters by itself."""


@dataclass(frozen=True)
class ManyAsked:
    """Queries whose rows come in one DataFrame, with a first column `query`."""

    wanted: AskedQueries
    portions: tuple[Portion, ...]
    alone: tuple[int, ...]
    """The numbers of those that run by themselves."""

    @classmethod
    def of(cls, wanted: AskedQueries, plan: PlanText, streams: Collection[str]) -> ManyAsked:
        """Plan queries; they share over these streams."""
        planned = planned_queries(ManyPlanner(plan, WITHOUT_PARTS), wanted)
        portions, alone = divided(planned.portions, frozenset(streams))
        return cls(wanted, tuple(portions), tuple(sorted(alone | planned.lone.keys())))

    @property
    def streams(self) -> list[str]:
        """The streams of those that share."""
        return sorted(frozenset().union(*(each.template.streams for each in self.portions)))

    @cached_property
    def shares(self) -> list[QueryShare]:
        """The queries that share, by how they are distributed."""
        return shares_of(self.portions)

    @cached_property
    def schema(self) -> pa.Schema | None:
        """The columns of the queries that share, without `query`; None if there are none."""
        found: pa.Schema | None = None
        for portion in self.portions:
            row = portion.template.plan.row
            own = row_schema({name: row[name] for name in portion.template.columns})
            if found is not None and own != found:
                raise self.differs(int(portion.numbers[0]), own, found)
            found = own
        return found

    def differs(self, number: int, own: pa.Schema, others: pa.Schema) -> SchemaError:
        """Return the error for a query that has other columns than the rest."""
        message = (
            f"the query {self.wanted.keys[number]!r} has the columns {columns_text(own)}; "
            f"others have {columns_text(others)}"
        )
        hint = "a DataFrame has one set of columns: ask for those queries apart"
        return SchemaError(message, hint=hint)

    @property
    def explained(self) -> str:
        """How the queries are distributed, for people."""
        lines = [f"spark: {each.line}" for each in self.shares]
        if self.alone:
            count = len(self.alone)
            each = "1 query by itself" if count == 1 else f"{count:,} queries by themselves"
            lines.append(f"spark: {each}")
        return "\n".join(lines)

    def zoneless(self, streams: Mapping[str, Collection[str]]) -> Collection[str]:
        """Return the columns without a time zone: those that have none in any query."""
        plans = [each.template.whole for each in self.portions]
        found = [zoneless_columns(plan, streams) for plan in plans]
        return frozenset.intersection(*found) if found else frozenset()

    def rows(self, found: list[ManyRows], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield rows with the column that says which query each is of."""
        for each in found:
            table = with_query(self.wanted.keys, each.numbers, each.rows.cast(schema))
            yield from table.to_batches()

    def schema_of(self, schema: pa.Schema) -> pa.Schema:
        """Return columns behind that of the query."""
        return with_query(self.wanted.keys, np.empty(0, np.int64), schema.empty_table()).schema

    def together(
        self, shared: DataFrame | None, zoneless: Collection[str], alone: Alone
    ) -> DataFrame:
        """Return the rows of all queries: those that share, and each that runs by itself."""
        frames = [] if shared is None else [shared]
        schema = self.schema
        for number in self.alone:
            frame = alone(*self.wanted.query(number))
            own = frame_schema(frame)
            schema = own if schema is None else schema
            if own != schema:
                raise self.differs(number, own, schema)
            frames.append(self.labelled(frame, number, schema, zoneless))
        if not frames:
            message = "there is no query"
            raise SchemaError(message, hint="a DataFrame needs columns: give one text at least")
        return reduce(DataFrame.unionAll, frames)

    def labelled(
        self, frame: DataFrame, number: int, schema: pa.Schema, zoneless: Collection[str]
    ) -> DataFrame:
        """Return the rows of a query that ran by itself as those of the others."""

        def run(batches: Batches) -> Batches:
            for rows in batches:
                numbers = np.full(rows.num_rows, number, np.int64)
                yield from self.rows([ManyRows(numbers, from_the_border(rows, schema))], schema)

        return mapped(carried(frame, schema.names), run, self.schema_of(schema), zoneless)


def frame_schema(frame: DataFrame) -> pa.Schema:
    """Return the columns of a DataFrame in our types."""
    fields = frame.schema.fields
    return pa.schema([(each.name, type_of(each.dataType, each.name).arrow) for each in fields])
