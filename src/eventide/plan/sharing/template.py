"""What a live query has in common with others: its template, and in what it may differ.

    SELECT * FROM cars WHERE lane = 3 …        leaf condition  lane = 3
      MATCH_RECOGNIZE (PARTITION BY car        template        the rest, with `$query` as one more
        DEFINE B AS speed > 70 …)                              key and `$1` instead of 70

A template runs once for all its queries. It reads rows (event, `$query`, `$1`, …): an event and the
number of a query whose leaf condition is true on it, with the constants of that query. So all rows
of a query have the same `$query`, and every node keeps them apart from those of other queries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

from eventide.plan.expressions import ALWAYS, Expression, Literal, substituted
from eventide.plan.failing import can_fail
from eventide.plan.meaning import digest_of
from eventide.plan.nodes import Filter, Project, Scan, scans_of
from eventide.plan.passes.merge_filters import merge_filters
from eventide.plan.passes.prune_columns import prune_columns
from eventide.plan.sharing.followers import followed_by_value, followed_for
from eventide.plan.sharing.literals import TakenConstants, lifted, lifted_item
from eventide.plan.sharing.part_rows import is_part, reads_parts
from eventide.plan.sharing.refreshes import as_refreshes
from eventide.plan.sharing.rules import ALL_RULES, SharingRules
from eventide.plan.sharing.share_channels import has_channels
from eventide.plan.sharing.share_windows import WINDOWS, SharedWindows, shared_windows
from eventide.plan.sharing.windows import ManyWindows
from eventide.plan.tree import Plan, Row, Use, named_columns
from eventide.plan.windows.nodes import Window
from eventide.schema import INT64, QUERY_NUMBER

QUERY = QUERY_NUMBER
"""The column with the number of the query that a row is for."""
MOST_LEAVES = 16


@dataclass(frozen=True)
class Template:
    """The part of a plan that queries have in common; its scans read `$query` and constants."""

    plan: Plan
    columns: tuple[str, ...]
    """The columns of a query's rows, without `$query`."""
    windows: ManyWindows | None = None
    """The windows whose rows the plan reads as those of `$windows`."""
    parts: tuple[Template, ...] = ()
    """The templates of the parts whose rows the plan reads."""
    channels: bool = False
    """Whether a row that several queries take goes through it once."""

    @cached_property
    def digest(self) -> str:
        """A short name of what it means."""
        return digest_of(self.plan, self.columns, self.windows)

    @cached_property
    def leaves(self) -> tuple[Scan, ...]:
        """Its scans, left to right."""
        return scans_of(self.plan)

    @cached_property
    def whole(self) -> Plan:
        """The plan over streams alone: with the shared windows where it reads their rows."""
        return self.plan if self.windows is None else with_windows(self.plan, self.windows)

    @cached_property
    def numbered(self) -> tuple[Scan, ...]:
        """The scans whose rows are numbered, each with the queries' own conditions.

        Those of `$windows` are conditions on the events that windows count.
        """
        return tuple(filter(reads_numbers, self.leaves))

    def stream_of(self, leaf: Scan) -> str:
        """Return the stream whose events a condition of a leaf is about."""
        if leaf.stream == WINDOWS and self.windows is not None:
            return scans_of(self.windows)[0].stream
        return leaf.stream

    @cached_property
    def common(self) -> tuple[Plan, ...]:
        """Its largest parts that are the same for all queries: what reads no numbers."""
        return tuple(_common(self.plan))

    @cached_property
    def streams(self) -> frozenset[str]:
        """The streams that it reads, also for its parts."""
        own = frozenset(leaf.stream for leaf in scans_of(self.whole) if not is_part(leaf))
        return own.union(*(part.streams for part in self.parts))


@dataclass(frozen=True, slots=True)
class TemplateQuery:
    """A query of a template: its condition on the events of each leaf, and its constants."""

    template: Template
    conditions: tuple[Expression, ...]
    constants: tuple[Literal, ...]
    window: Window | None = None
    """Its window, where those of the template are shared."""

    def opened(self) -> TemplateQuery:
        """Return the same with columns instead of constants also in its conditions."""
        constants = TakenConstants(list(self.constants))
        conditions = tuple(lifted(each, constants, "", over_rows=False) for each in self.conditions)
        return replace(self, conditions=conditions, constants=tuple(constants.values))


def member_of(
    plan: Plan, *, common: bool = False, rules: SharingRules = ALL_RULES
) -> TemplateQuery | None:
    """Return the template of a live query's plan, and what is its own; None if it runs alone.

    With `common`, what may follow an event is part of the template, also its constants: good for
    many queries that wait for the same events. Otherwise it is each query's own, so that the index
    finds the queries that an event matters to.
    """
    refreshes = as_refreshes(plan) if rules.share_refreshes else None
    found = None if refreshes is None else _member_of(refreshes, common=common, rules=rules)
    if found is not None or (plan.standing is not None and not can_stand(plan, rules)):
        return found
    return _member_of(plan, common=common, rules=rules)


def _member_of(plan: Plan, *, common: bool, rules: SharingRules) -> TemplateQuery | None:
    numbering = _Numbering(common and rules.share_followers, rules)
    try:
        whole = numbering.numbered(merge_filters(sunk(plan)), next(numbering.names), {})
    except _Alone:
        return None
    if len(numbering.conditions) > MOST_LEAVES:
        return None
    shown = tuple(plan.row)
    if tuple(whole.row) != (*shown, QUERY):
        row = whole.row
        whole = Project(whole, named_columns({name: row[name] for name in (*shown, QUERY)}))
    windows = numbering.windows
    below: ManyWindows | None = None
    if windows is not None:
        narrow = prune_columns(windows.plan)
        assert isinstance(narrow, ManyWindows)
        below = narrow
    narrow_whole = prune_columns(whole)
    channels = rules.share_channels and has_channels(narrow_whole)
    return TemplateQuery(
        Template(narrow_whole, shown, below, channels=channels),
        tuple(numbering.conditions),
        tuple(numbering.constants.values),
        None if windows is None else windows.window,
    )


class _Alone(Exception):  # noqa: N818 - control flow, never seen outside
    """Rows of different queries would meet in a node of the plan, or one could fail for all."""


class _Numbering:
    """A walk through a plan that gives its rows the numbers of queries, and takes constants out."""

    def __init__(self, common: bool, rules: SharingRules) -> None:
        self.common = common
        self.rules = rules
        self.constants = TakenConstants()
        self.conditions: list[Expression] = []
        """The conditions of the scans whose events are numbered, left to right."""
        self.windows: SharedWindows | None = None
        self.names = (QUERY + "'" * number for number in count())

    def numbered(self, plan: Plan, key: str, above: Row) -> Plan:
        """Return a plan whose rows have the number `key` of a query, and the constants `above`."""
        match plan:
            case Filter(source=Scan() as scan, condition=condition) if self.rules.index_conditions:
                return self.leaf(scan, condition, key, above)
            case Scan():
                return self.leaf(plan, ALWAYS, key, above)
        windows = self.windows_of(plan)
        if windows is not None:
            self.windows = windows
            self.conditions.append(windows.condition)
            columns = {**plan.row, key: INT64, **above}
            return Scan(WINDOWS, tuple(columns.items()))
        before = len(self.constants.values)
        suffix = key.removeprefix(QUERY)
        node = self.by_value(self.without_constants(plan, suffix), suffix)
        node = self.by_length(node, suffix)
        own = {
            f"${place}{key.removeprefix(QUERY)}": literal.type
            for place, literal in enumerate(self.constants.values[before:], before + 1)
        }
        keys: list[str] = []
        children: list[Plan] = []
        for place, child in enumerate(node.children):
            beside = node.beside and place > 0
            alike = self.common and not reads_parts(child)
            if beside and self.rules.share_followers and (alike or is_same_for_all(child)):
                keys.append("")
                children.append(child)
                continue
            keys.append(next(self.names) if beside else key)
            children.append(self.numbered(child, keys[-1], {} if beside else {**above, **own}))
        given = iter(children)
        keyed = node.with_children(lambda _: next(given)).keyed(tuple(keys), above)
        if keyed is None:
            raise _Alone
        return keyed

    def windows_of(self, plan: Plan) -> SharedWindows | None:
        """Return windows that queries can share, the first of the plan."""
        if not self.rules.share_windows or self.windows is not None or self.may_fail(plan):
            return None
        found = shared_windows(plan)
        if found is None or (found.condition != ALWAYS and not found.plan.refreshes):
            return None
        return found

    def may_fail(self, node: Plan) -> bool:
        """Whether an expression of a node may have no value, for another reason than its size."""
        return any(can_fail(each, overflows=False) for each, _ in node.expressions)

    def leaf(self, scan: Scan, condition: Expression, key: str, above: Row) -> Scan:
        """Return a scan of numbered events; its condition is the query's own."""
        if scan.written is not None or any(name.startswith("$") for name in scan.row):
            raise _Alone
        self.conditions.append(condition)
        return replace(scan, columns=(*scan.columns, (key, INT64), *above.items()))

    def by_value(self, node: Plan, suffix: str) -> Plan:
        """Return a node with a key instead of what queries demand of what follows."""
        if self.common or not (self.rules.share_followers and self.rules.lift_constants):
            return node
        return followed_by_value(node, lambda value: self.constants.name(value) + suffix)

    def by_length(self, node: Plan, suffix: str) -> Plan:
        """Return a node with a column instead of the most that its results may last.

        Queries that differ in no constant may take rows together, which this would keep them from.
        """
        alike = self.rules.share_channels and not self.constants.values
        if alike or not self.rules.lift_lengths:
            return node
        return followed_for(node, lambda length: self.constants.name(length) + suffix)

    def without_constants(self, node: Plan, suffix: str) -> Plan:
        """Return a node with columns instead of constants."""
        if self.may_fail(node):
            raise _Alone
        if not self.rules.lift_constants:
            return node

        def changed(expression: Expression, use: Use) -> Expression:
            if use.role != "condition":
                return expression
            return lifted(expression, self.constants, suffix, over_rows=not use.local)

        node = node.with_expressions(changed)
        if isinstance(node, Project):
            items = tuple(lifted_item(each, self.constants, suffix) for each in node.items)
            return replace(node, items=items)
        return node


def can_stand(plan: Plan, rules: SharingRules) -> bool:
    """Whether a standing query may share: no query reads its answer, and windows read events."""
    return rules.share_standing and rules.index_conditions and plan.standing is plan


def is_same_for_all(plan: Plan) -> bool:
    """Whether a plan has nothing in which queries might differ: no condition on its events."""
    if isinstance(plan, Filter) or (isinstance(plan, Scan) and is_part(plan)):
        return False
    constants = TakenConstants()
    for expression, use in plan.expressions:
        if use.role == "condition":
            lifted(expression, constants, "", over_rows=False)
    return not constants.values and all(map(is_same_for_all, plan.children))


def sunk(plan: Plan) -> Plan:
    """Filter(p, Project(items, x)) -> Project(items, Filter(p', x)), all the way down."""
    plan = plan.with_children(sunk)
    if isinstance(plan, Filter) and not can_fail(plan.condition):
        below = plan.source.filtered(plan.condition)
        if below is not None:
            return below
    if isinstance(plan, Filter) and isinstance(plan.source, Project):
        project = plan.source
        meaning = {each.name: each.expression for each in project.items}
        condition = substituted(plan.condition, meaning)
        if not can_fail(condition):
            return replace(project, source=sunk(Filter(project.source, condition)))
    return plan


def with_windows(plan: Plan, windows: ManyWindows) -> Plan:
    """Scan of `$windows` -> the windows."""
    if isinstance(plan, Scan):
        return windows if plan.stream == WINDOWS else plan
    return plan.with_children(lambda child: with_windows(child, windows))


def reads_numbers(scan: Scan) -> bool:
    """Whether the events of a scan have the numbers of queries."""
    return any(name.startswith(QUERY) for name in scan.row)


def _common(plan: Plan) -> Iterator[Plan]:
    if not any(map(reads_numbers, scans_of(plan))):
        yield plan
        return
    for child in plan.children:
        yield from _common(child)
