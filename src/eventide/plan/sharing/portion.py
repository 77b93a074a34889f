"""Queries of one template that begin together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide.plan.expressions import (
    Column,
    Expression,
    Literal,
    Scalar,
    columns_of,
    substituted,
    walk,
)
from eventide.plan.sharing.part_rows import PART_NUMBER
from eventide.plan.sharing.query_windows import AskedWindow
from eventide.plan.sharing.share_windows import WINDOWS
from eventide.plan.sharing.template import Template, TemplateQuery
from eventide.plan.windows.nodes import Window

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Portion:
    """Some queries of a template, by their numbers, which ascend.

    `constants` has a row for each query. `conditions` are those of each numbered leaf: one for each
    query, or one for all of them in which a column `$1` stands for the constant of that name.
    """

    template: Template
    numbers: Int64s
    constants: pa.RecordBatch
    conditions: tuple[tuple[Expression, ...] | Expression, ...]
    windows: tuple[Window, ...] = ()
    """The window of each query, where those of the template are shared."""
    parts: tuple[Portion, ...] = ()
    """The parts that they have in common with others; the constant `$part` says which is whose."""

    def only(self, wanted: npt.NDArray[np.bool_]) -> Portion:
        """Return the queries that are wanted."""
        conditions = tuple(
            tuple(one for one, is_wanted in zip(each, wanted, strict=True) if is_wanted)
            if isinstance(each, tuple)
            else each
            for each in self.conditions
        )
        constants = self.constants.filter(pa.array(wanted))
        windows = tuple(
            one for one, is_wanted in zip(self.windows, wanted, strict=False) if is_wanted
        )
        return Portion(
            self.template, self.numbers[wanted], constants, conditions, windows, self.parts
        ).with_own_parts()

    def with_own_parts(self) -> Portion:
        """Return the same queries with no other parts than theirs."""
        if not self.parts:
            return self
        own = np.asarray(self.constants.column(PART_NUMBER))
        parts = (each.only(np.isin(each.numbers, own)) for each in self.parts)
        return replace(self, parts=tuple(each for each in parts if len(each.numbers)))

    def renumbered(self, numbers: Int64s) -> Portion:
        """Return the same queries with other numbers."""
        return replace(self, numbers=numbers)

    @cached_property
    def asked(self) -> tuple[AskedWindow, ...]:
        """What each query asks of the windows that those of the template share."""
        if not self.windows:
            return ()
        places = [leaf.stream for leaf in self.template.numbered]
        conditions = self.own_conditions(places.index(WINDOWS))
        rows = zip(self.numbers.tolist(), self.windows, conditions, strict=True)
        return tuple(AskedWindow(*each) for each in rows)

    def own_conditions(self, place: int) -> Iterable[Expression]:
        """Return the condition of each query on the events of a numbered leaf."""
        given = self.conditions[place]
        if isinstance(given, tuple):
            return given
        row = self.constants.schema
        names = sorted(columns_of(given) & set(row.names))
        columns = {each.name: each for each in walk(given) if isinstance(each, Column)}
        kinds = [columns[name].type for name in names]
        values = [plain_values(self.constants.column(name)) for name in names]
        known: dict[tuple[Scalar, ...], Expression] = {}
        found = []
        for own in zip(*values, strict=True) if names else [()] * len(self.numbers):
            if own not in known:
                meaning = map(Literal, own, kinds)
                known[own] = substituted(given, dict(zip(names, meaning, strict=True)))
            found.append(known[own])
        return found

    @cached_property
    def nbytes(self) -> int:
        """How many bytes the constants take."""
        return int(self.constants.nbytes + self.numbers.nbytes)


def with_parts(portions: Iterable[Portion]) -> Iterator[Portion]:
    """Yield portions, the parts of each before it."""
    for portion in portions:
        yield from with_parts(portion.parts)
        yield portion


def plain_values(column: pa.Array) -> list[Scalar]:
    """Return constants as a plan has them: times in microseconds."""
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int64())
    values: list[Scalar] = column.to_pylist()
    return values


def portions_of(members: Sequence[TemplateQuery], first: int) -> list[Portion]:
    """Return queries by template, numbered from `first` on in their order."""
    places: dict[str, list[int]] = {}
    for place, member in enumerate(members):
        places.setdefault(member.template.digest, []).append(place)
    found = []
    for own in places.values():
        chosen = [members[place] for place in own]
        conditions = zip(*(each.conditions for each in chosen), strict=True)
        numbers = np.array(own, np.int64) + first
        windows = tuple(each.window for each in chosen if each.window is not None)
        template, constants = chosen[0].template, constants_of(chosen)
        found.append(Portion(template, numbers, constants, tuple(conditions), windows))
    return found


def constants_of(members: Sequence[TemplateQuery]) -> pa.RecordBatch:
    """Return the constants of queries of one template, a row for each."""
    columns = {
        f"${place}": pa.array(
            [each.constants[place - 1].value for each in members], kind.type.arrow
        )
        for place, kind in enumerate(members[0].constants, 1)
    }
    # A batch without columns has no rows, so there is always one.
    columns["$"] = pa.nulls(len(members))
    return pa.RecordBatch.from_pydict(columns)
