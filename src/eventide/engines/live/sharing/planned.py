"""Plan many queries: those that differ only in constants once, as columns of constants."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.lang.shapes import (
    Blank,
    KnownShapes,
    Shaped,
    TextConstant,
    TextShape,
    TextShapes,
    shape_of,
)
from eventide.plan.expressions import Literal, Scalar
from eventide.plan.sharing.choose_parts import FEWEST, with_shared_parts
from eventide.plan.sharing.part_rows import PartNumbers
from eventide.plan.sharing.portion import Portion, portions_of
from eventide.plan.sharing.rules import ALL_RULES, SharingRules
from eventide.plan.sharing.share_parts import DividedPlan
from eventide.plan.sharing.template import TemplateQuery, member_of
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import Window
from eventide.schema import DataType

PlanText = Callable[[str, Mapping[str, object] | None], Plan]
"""Plans a text with the values of its parameters."""
RowKind = tuple[str, bool, tuple[DataType, ...]]
"""A text, whether there are many rows, and the types of its parameters where they stand."""
PARAMETER = re.compile(r"\$([^\W\d]\w*)")
"""A parameter in a text."""
COMMON = 8
"""From so many queries that wait for the same events on, these are part of the template."""


@dataclass
class PlannedQueries:
    """Queries that can run as one, and the plans of the others by number."""

    portions: list[Portion] = field(default_factory=list)
    lone: dict[int, Plan] = field(default_factory=dict)


class ManyPlanner:
    """Plans texts; it remembers the shapes of those that it has planned."""

    def __init__(
        self,
        plan: PlanText,
        rules: SharingRules = ALL_RULES,
        part_numbers: Iterator[int] | None = None,
    ) -> None:
        self.plan = plan
        self.rules = rules
        self.part_numbers = PartNumbers() if part_numbers is None else part_numbers
        """The numbers of parts to come: none is given twice to queries that may meet."""
        self.shapes = TextShapes(lambda text: plan(text, None), rules)
        self.common = TextShapes(lambda text: plan(text, None), rules, common=True)
        self.rows = KnownShapes()
        """The shapes of texts with rows of parameters."""
        self.at = 0
        """The number of the query that is planned now."""

    def texts(self, texts: Sequence[str], first: int) -> PlannedQueries:
        """Plan texts; their queries are numbered from `first` on."""
        found = PlannedQueries()
        members: dict[int, TemplateQuery] = {}
        groups: dict[int, ShapeGroup] = {}
        for number, text in enumerate(texts, first):
            self.at = number
            self.sort_out(number, self.shapes.find(text), found, members, groups)
        for group in [each for each in groups.values() if each.runs_alone]:
            del groups[id(group.shape)]
            found.lone |= {each: self.plan(texts[each - first], None) for each in group.numbers}
        alike = [each for each in groups.values() if each.waits_for_the_same]
        for group in alike if self.rules.share_followers else ():
            del groups[id(group.shape)]
            for number in group.numbers:
                self.sort_out(
                    number, self.common.find(texts[number - first]), found, members, groups
                )
        offered = [(group.portion(), group.shape.cuts) for group in groups.values()]
        found.portions += with_shared_parts(offered, self.part_numbers)
        found.portions += numbered(members)
        return found

    def sort_out(
        self,
        number: int,
        query: Shaped | TemplateQuery | Plan,
        found: PlannedQueries,
        members: dict[int, TemplateQuery],
        groups: dict[int, ShapeGroup],
    ) -> None:
        """Put a query where it belongs."""
        match query:
            case Shaped(shape, values):
                groups.setdefault(id(shape), ShapeGroup(shape)).add(number, values)
            case TemplateQuery():
                members[number] = query
            case _:
                found.lone[number] = query

    def table(self, text: str, table: pa.Table, first: int) -> PlannedQueries:
        """Plan one text with a row of parameters for each query."""
        found = PlannedQueries()
        members: dict[int, TemplateQuery] = {}
        offered: list[tuple[Portion, Sequence[DividedPlan]]] = []
        left = np.arange(table.num_rows)
        complete = np.ones(table.num_rows, np.bool_)
        for name in table.column_names:
            complete &= ~np.asarray(table.column(name).is_null())
        for place in left[~complete].tolist():
            self.single(text, row_of(table, place), first + place, found, members)
        left = left[complete]
        while len(left):
            self.at = first + int(left[0])
            row = row_of(table, int(left[0]))
            places = occurrences(text, row)
            shape = self.shape_of_row(text, row, places, many=len(left) >= COMMON)
            if shape is None:
                self.single(text, row, first + int(left[0]), found, members)
                left = left[1:]
                continue
            same = left[alike(table, left, shape, places, row)]
            portion = portion_of_rows(shape, table.take(pa.array(same)), places, first + same)
            if portion is None:
                for place in same.tolist():
                    self.single(text, row_of(table, place), first + place, found, members)
            else:
                offered.append((portion, shape.cuts))
            left = left[~np.isin(left, same)]
        found.portions += with_shared_parts(offered, self.part_numbers)
        found.portions += numbered(members)
        return found

    def shape_of_row(
        self,
        text: str,
        row: Mapping[str, object],
        places: Sequence[TextConstant],
        *,
        many: bool,
    ) -> TextShape | None:
        """Return the shape of a text with a row of parameters; None if it runs alone."""
        kind: RowKind = (text, many, tuple(each.literal.type for each in places))
        known = next(self.rows.fitting(kind, places), None)
        if known is not None:
            return known
        plan = self.plan(text, row)
        member = member_of(plan, rules=self.rules)
        if member is None:
            return None
        shape = shape_of(text, places, plan, member, rules=self.rules)
        if many and self.rules.share_followers and waits_for_the_same(shape, places):
            other = member_of(plan, common=True, rules=self.rules)
            assert other is not None
            shape = shape_of(text, places, plan, other, common=True, rules=self.rules)
        self.rows.add(kind, shape)
        return shape

    def single(
        self,
        text: str,
        row: Mapping[str, object],
        number: int,
        found: PlannedQueries,
        members: dict[int, TemplateQuery],
    ) -> None:
        """Plan one query with its parameters."""
        self.at = number
        plan = self.plan(text, row)
        member = member_of(plan, rules=self.rules)
        if member is None:
            found.lone[number] = plan
        else:
            members[number] = member


@dataclass
class ShapeGroup:
    """Queries of one shape."""

    shape: TextShape
    numbers: list[int] = field(default_factory=list)
    values: list[list[Scalar]] = field(default_factory=list)

    def add(self, number: int, values: list[Scalar]) -> None:
        """Add a query."""
        self.numbers.append(number)
        self.values.append(values)

    @property
    def runs_alone(self) -> bool:
        """Whether it does not pay that they run as one: a standing query with no other like it."""
        template = self.shape.member.template
        return template.plan.standing is not None and len(self.numbers) < FEWEST

    @property
    def waits_for_the_same(self) -> bool:
        """Whether there are many, and all of them wait for the same events to follow."""
        if len(self.numbers) < COMMON or len(self.shape.member.conditions) < 2:
            return False
        places = [int(name.strip("$'")) - 1 for name in self.shape.follower_columns]
        return all(len({values[place] for values in self.values}) == 1 for place in places)

    def portion(self) -> Portion:
        """Return the queries with their constants as columns."""
        columns: dict[str, pa.Array] = {"$": pa.nulls(len(self.numbers))}
        for place, literal in enumerate(self.shape.member.constants):
            values = [each[place] for each in self.values]
            columns[f"${place + 1}"] = pa.array(values, literal.type.arrow)
        return Portion(
            self.shape.member.template,
            np.array(self.numbers, np.int64),
            pa.RecordBatch.from_pydict(columns),
            self.shape.member.conditions,
            windows_of(self.shape, len(self.numbers)),
        )


def windows_of(shape: TextShape, count: int) -> tuple[Window, ...]:
    """Return the window of each of so many queries of a shape, if they have shared ones."""
    window = shape.member.window
    return () if window is None else (window,) * count


def numbered(members: Mapping[int, TemplateQuery]) -> list[Portion]:
    """Return queries by template, with the numbers that they have, which ascend."""
    ascending = sorted(members)
    numbers = np.array(ascending, np.int64)
    found = portions_of([members[number] for number in ascending], 0)
    return [each.renumbered(numbers[each.numbers]) for each in found]


def row_of(table: pa.Table, place: int) -> dict[str, object]:
    """Return the parameters of one query."""
    return {name: table.column(name)[place].as_py() for name in table.column_names}


def occurrences(text: str, row: Mapping[str, object]) -> list[TextConstant]:
    """Return the places of parameters in a text, with their values."""
    found = []
    for match in PARAMETER.finditer(text):
        if match[1] in row:
            value = row[match[1]]
            found.append(TextConstant(*match.span(), match[1], value))  # type: ignore[arg-type]
    return found


def waits_for_the_same(shape: TextShape, places: Sequence[TextConstant]) -> bool:
    """Whether no parameter is in a condition on what may follow."""
    own = {int(name.strip("$'")) - 1 for name in shape.follower_columns}
    varying = any(isinstance(shape.sources[place], Blank) for place in own)
    return len(shape.member.conditions) > 1 and bool(places) and not varying


def alike(
    table: pa.Table,
    rows: np.ndarray[tuple[int], np.dtype[np.int64]],
    shape: TextShape,
    places: Sequence[TextConstant],
    row: Mapping[str, object],
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which rows have the parameters of one row wherever these are part of the shape."""
    same = np.ones(len(rows), np.bool_)
    for place, _ in shape.fixed:
        name = places[place].kind
        column = table.column(name).take(pa.array(rows))
        value = row[name]
        if isinstance(value, float):
            given = np.asarray(column)
            # NaN is not equal to itself, and -0 is not the same as 0.
            equal = (given == value) & (np.signbit(given) == np.signbit(value))
            same &= np.isnan(given) if np.isnan(value) else equal
        else:
            same &= np.asarray(pc.equal(column, pa.scalar(value, column.type)))
    return same


def portion_of_rows(
    shape: TextShape,
    table: pa.Table,
    places: Sequence[TextConstant],
    numbers: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> Portion | None:
    """Return a query for each row of parameters; None if they are not of the types of the plan."""
    columns: dict[str, pa.Array] = {"$": pa.nulls(len(numbers))}
    for place, (source, literal) in enumerate(
        zip(shape.sources, shape.member.constants, strict=True), 1
    ):
        kind = literal.type.arrow
        if isinstance(source, Literal):
            columns[f"${place}"] = pa.array([literal.value] * len(numbers), kind)
            continue
        given = table.column(places[source.blank].kind).combine_chunks()
        if isinstance(given, pa.ChunkedArray):
            given = given.chunk(0)
        exact = given.type == kind or (pa.types.is_integer(given.type) and kind == pa.float64())
        if not exact or source.negative:
            return None
        try:
            columns[f"${place}"] = given.cast(kind)
        except pa.ArrowInvalid:  # integers that no double is equal to
            return None
    constants = pa.RecordBatch.from_pydict(columns)
    member, windows = shape.member, windows_of(shape, len(numbers))
    own = numbers.astype(np.int64)
    return Portion(member.template, own, constants, member.conditions, windows)
