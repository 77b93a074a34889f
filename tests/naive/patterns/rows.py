"""MATCH_RECOGNIZE over lists of dictionaries, straight from the meaning of the clause.

The ways to match are tried one after another in order of preference, by walking the pattern tree
itself; nothing is shared between them, so the time is exponential. `naive_match` is the twin of
the operator, `re_oracle` a second opinion by Python's regular expressions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice, pairwise, permutations
from typing import Any, assert_never

from eventide.errors import EvaluationError
from eventide.plan.expressions import (
    At,
    Call,
    Cast,
    Classifier,
    Column,
    Expression,
    Literal,
    MatchAggregate,
    MatchNumber,
)
from eventide.plan.patterns.nodes import TIMED_OUT, MatchRecognize
from eventide.plan.patterns.tree import (
    Absent,
    Alternate,
    Concat,
    Exclude,
    PartitionEnd,
    PartitionStart,
    Pattern,
    Permute,
    Repeat,
    Variable,
    walk_pattern,
)
from eventide.plan.tree import Plan
from eventide.schema import DataType
from tests.naive.aggregates import aggregate, distinct
from tests.naive.expressions import order, value_of
from tests.naive.windows import Event, in_order

MOST_TESTS = 20_000


class TooMuch(Exception):  # noqa: N818
    """The search would take too long. It says nothing about the answer."""


class Budget:
    """How many more things may be tried."""

    def __init__(self, most: int) -> None:
        self.left = most

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise TooMuch


@dataclass(frozen=True, slots=True)
class Taken:
    """A row of the partition, by its place, as a variable; `waiting` are NOTs that were before it.

    Those are the ones that can be told only when the match is complete.
    """

    row: int
    variable: str
    excluded: bool = False
    waiting: tuple[Absent, ...] = ()


Path = tuple[Taken, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """What was found at a start row. `number` is None if it timed out."""

    start: int
    path: Path
    number: int | None

    @property
    def timed_out(self) -> bool:
        return self.number is None


def naive_match(
    node: MatchRecognize, events: Sequence[Event], most: int = MOST_TESTS
) -> list[Event]:
    """Return the rows that come out of a bound node over the rows of its source, in any order.

    Events are dictionaries with `ts` (int microseconds), `_seq` and the columns of the source.
    Raise TooMuch when more than `most` rows and ways have been tried.
    """
    budget = Budget(most)
    return [
        row
        for rows in partitions(node, events)
        for row in output(node, rows, list(matches(node, rows, budget)))
    ]


def match_node(plan: Plan) -> MatchRecognize:
    """Return the only MATCH_RECOGNIZE of a plan."""
    found: list[MatchRecognize] = []
    waiting = [plan]
    while waiting:
        each = waiting.pop()
        found += [each] if isinstance(each, MatchRecognize) else []
        waiting += each.children
    [node] = found
    return node


def partitions(node: MatchRecognize, events: Sequence[Event]) -> list[list[Event]]:
    """Return the rows of each key, in order."""
    found: dict[tuple[Any, ...], list[Event]] = {}
    for event in in_order(events):
        found.setdefault(key_of(node, event), []).append(event)
    for rows in found.values():
        # Sorting by the least important key first leaves equal rows as they were.
        for item in reversed(node.order):

            def rank(event: Event, expression: Expression = item.expression) -> Any:  # noqa: ANN401
                value = of_row(expression, event, None)
                return order(0 if value is None else value)

            def is_null(event: Event, expression: Expression = item.expression) -> bool:
                return of_row(expression, event, None) is None

            present = [event for event in rows if not is_null(event)]
            nulls = [event for event in rows if is_null(event)]
            present.sort(key=rank, reverse=item.descending)
            rows[:] = nulls + present if item.nulls_first else present + nulls
    return list(found.values())


def key_of(node: MatchRecognize, event: Event) -> tuple[Any, ...]:
    return tuple(of_row(key.expression, event, None) for key in node.keys)


# Where matches are looked for


def matches(node: MatchRecognize, rows: list[Event], budget: Budget) -> Iterator[Match]:
    """Yield the matches of one partition, and starts that timed out if they are asked for."""
    start, found = 0, 0
    while start < len(rows):
        search = Search(node, rows, start, found + 1, budget)
        every = node.strategy == "skip_till_any"
        paths = search.all_paths() if every else search.preferred()
        for path in paths:
            found += 1
            yield Match(start, path, found)
        if node.timeout_rows and not paths and search.alive is not None:
            yield Match(start, search.alive, None)
        if every or not paths:
            start += 1
        else:
            start = next_start(node, start, paths[0])


def next_start(node: MatchRecognize, start: int, path: Path) -> int:
    match node.skip.to:
        case "next row":
            return start + 1
        case "past last row":
            return path[-1].row + 1 if path else start + 1
        case "first" | "last" as edge:
            assert node.skip.variable is not None
            members = members_of(node, node.skip.variable)
            targets = [taken.row for taken in path if taken.variable in members]
            if not targets:
                message = f"AFTER MATCH SKIP: no row of {node.skip.variable} in the match"
                raise EvaluationError(message)
            target = targets[0] if edge == "first" else targets[-1]
            if target == start:
                message = f"AFTER MATCH SKIP: {node.skip.variable} is the match's first row"
                raise EvaluationError(message)
            return target
    assert_never(node.skip.to)


@dataclass(frozen=True, slots=True)
class Step:
    """A way on: take a row as `variable` and go on with `after`; no variable means done.

    None of the rows skipped before it may be one of `absent`.
    """

    variable: str | None
    excluded: bool
    absent: tuple[Absent, ...]
    after: Callable[[], Iterator[Step]]


@dataclass
class Search:
    """The search for matches that start at one row."""

    node: MatchRecognize
    rows: list[Event]
    start: int
    number: int
    budget: Budget
    alive: Path | None = None
    """The most preferred path that had taken rows, and wanted one more when they were used up."""
    limit: int = field(init=False)
    """The place of the first row that is too late, or else the end of the partition."""

    def __post_init__(self) -> None:
        within = self.node.within_us
        self.limit = self.start
        while self.limit < len(self.rows) and (
            within is None or self.rows[self.limit]["ts"] <= self.rows[self.start]["ts"] + within
        ):
            self.limit += 1

    def preferred(self) -> list[Path]:
        """Return the preferred match, if there is one: no path, or one."""
        if self.node.strategy == "skip_till_next":
            paths = self.next_paths(self.first_steps(), ())
        else:
            found = lambda _, path: iter([path])  # noqa: E731
            paths = self.ways(self.node.pattern, self.start, (), False, found)
        return list(islice(paths, 1))

    def all_paths(self) -> list[Path]:
        """Return every match that takes a row, once."""
        first: dict[tuple[tuple[int, str], ...], Path] = {}
        for path in self.any_paths(self.first_steps(), ()):
            first.setdefault(tuple((taken.row, taken.variable) for taken in path), path)
        return [path for path in first.values() if path]

    def holds(self, variable: str, row: int, path: Path) -> bool:
        """Whether a row could follow the path as that variable."""
        self.budget.spend()
        [condition] = [item.expression for item in self.node.defines if item.name == variable]
        tried = (*path, Taken(row, variable))
        return value_in(condition, View(self.node, self.rows, tried, tried, self.number)) is True

    def note_alive(self, path: Path) -> None:
        if self.alive is None and path:
            self.alive = path

    # Rows one after another

    def ways(  # noqa: PLR0912
        self,
        pattern: Pattern,
        place: int,
        path: Path,
        excluded: bool,
        then: Callable[[int, Path], Iterator[Path]],
    ) -> Iterator[Path]:
        """Yield the matches that follow `path` with the pattern at `place`, then with `then`."""
        self.budget.spend()
        match pattern:
            case Variable(name=name):
                if place == self.limit:
                    self.note_alive(path)
                elif self.holds(name, place, path):
                    yield from then(place + 1, (*path, Taken(place, name, excluded)))
            case Concat(parts=parts) if not parts:
                yield from then(place, path)
            case Concat(parts=parts):
                rest = Concat(parts[1:])
                yield from self.ways(
                    parts[0],
                    place,
                    path,
                    excluded,
                    lambda place, path: self.ways(rest, place, path, excluded, then),
                )
            case Alternate(options=options):
                for option in options:
                    yield from self.ways(option, place, path, excluded, then)
            case Permute(parts=parts):
                for chosen in permutations(parts):
                    yield from self.ways(Concat(chosen), place, path, excluded, then)
            case Exclude(part=part):
                yield from self.ways(part, place, path, True, then)
            case PartitionStart():
                if place == 0:
                    yield from then(place, path)
            case PartitionEnd():
                if place == len(self.rows):
                    yield from then(place, path)
            case Repeat():
                yield from self.turns(pattern, 0, place, path, excluded, then)
            case Absent():
                raise AssertionError(pattern)
            case _:
                assert_never(pattern)

    def turns(
        self,
        repeat: Repeat,
        done: int,
        place: int,
        path: Path,
        excluded: bool,
        then: Callable[[int, Path], Iterator[Path]],
    ) -> Iterator[Path]:
        """Yield the ways on after `done` turns of a repeat."""

        def after_turn(new_place: int, new_path: Path) -> Iterator[Path]:
            if done < repeat.at_least or new_place > place:
                yield from self.turns(repeat, done + 1, new_place, new_path, excluded, then)

        def once_more() -> Iterator[Path]:
            if repeat.at_most is None or done < repeat.at_most:
                yield from self.ways(repeat.part, place, path, excluded, after_turn)

        if done < repeat.at_least:
            yield from once_more()
        elif repeat.greedy:
            yield from once_more()
            yield from then(place, path)
        else:
            yield from then(place, path)
            yield from once_more()

    # Rows with others between them

    def first_steps(self) -> Iterator[Step]:
        return self.steps(self.node.pattern, 0, (), False, done)

    def steps(
        self,
        pattern: Pattern,
        count: int,
        absent: tuple[Absent, ...],
        excluded: bool,
        then: Callable[[int, tuple[Absent, ...]], Iterator[Step]],
    ) -> Iterator[Step]:
        """Yield the ways on through a pattern when `count` rows are taken, the preferred first.

        `absent` has been asked for since the last row taken; `then` yields the ways on behind
        the pattern.
        """
        self.budget.spend()
        match pattern:
            case Variable(name=name):
                yield Step(name, excluded, absent, lambda: then(count + 1, ()))
            case Absent():
                yield from then(count, (*absent, pattern))
            case Concat(parts=parts) if not parts:
                yield from then(count, absent)
            case Concat(parts=parts):
                rest = Concat(parts[1:])
                yield from self.steps(
                    parts[0],
                    count,
                    absent,
                    excluded,
                    lambda count, absent: self.steps(rest, count, absent, excluded, then),
                )
            case Alternate(options=options):
                for option in options:
                    yield from self.steps(option, count, absent, excluded, then)
            case Permute(parts=parts):
                for chosen in permutations(parts):
                    yield from self.steps(Concat(chosen), count, absent, excluded, then)
            case Exclude(part=part):
                yield from self.steps(part, count, absent, True, then)
            case Repeat():
                yield from self.turn_steps(pattern, 0, count, absent, excluded, then)
            case PartitionStart() | PartitionEnd():
                raise AssertionError(pattern)
            case _:
                assert_never(pattern)

    def turn_steps(
        self,
        repeat: Repeat,
        done: int,
        count: int,
        absent: tuple[Absent, ...],
        excluded: bool,
        then: Callable[[int, tuple[Absent, ...]], Iterator[Step]],
    ) -> Iterator[Step]:
        """Yield the ways on after `done` turns of a repeat, as `turns` does."""

        def after_turn(new_count: int, new_absent: tuple[Absent, ...]) -> Iterator[Step]:
            if done < repeat.at_least or new_count > count:
                yield from self.turn_steps(repeat, done + 1, new_count, new_absent, excluded, then)

        def once_more() -> Iterator[Step]:
            if repeat.at_most is None or done < repeat.at_most:
                yield from self.steps(repeat.part, count, absent, excluded, after_turn)

        if done < repeat.at_least:
            yield from once_more()
        elif repeat.greedy:
            yield from once_more()
            yield from then(count, absent)
        else:
            yield from then(count, absent)
            yield from once_more()

    def reach(self, path: Path) -> range:
        """Return the rows that may be taken next: behind the last one, but first the start."""
        if not path:
            return range(self.start, min(self.start + 1, self.limit))
        return range(path[-1].row + 1, self.limit)

    def is_open(self, step: Step, row: int, path: Path) -> bool:
        """Whether the rows skipped from the path to the row (left out) let the step be."""
        skipped = range(path[-1].row + 1, row) if path else range(0)
        return not any(
            self.holds(part.name, each, path)
            for each in skipped
            for part in step.absent
            if not part.late
        )

    def stands(self, path: Path) -> bool:
        """Whether no row that a complete match skipped is one that it was not to skip."""
        return not any(
            self.held(part, row, path[: number + 1], path)
            for number, (before, taken) in enumerate(pairwise(path))
            for part in taken.waiting
            for row in range(before.row + 1, taken.row)
        )

    def held(self, part: Absent, row: int, so_far: Path, whole: Path) -> bool:
        """Whether a row skipped behind a part of a match was a variable, as the whole tells."""
        self.budget.spend()
        [condition] = [item.expression for item in self.node.defines if item.name == part.name]
        skipped = Taken(row, part.name)
        view = View(
            self.node,
            self.rows,
            (*so_far, skipped),
            (*whole, skipped),
            self.number,
            part.late,
            whole,
        )
        return value_in(condition, view) is True

    def takes(self, step: Step, row: int, path: Path) -> bool:
        return (
            step.variable is not None
            and self.holds(step.variable, row, path)
            and self.is_open(step, row, path)
        )

    def next_paths(self, ways_on: Iterator[Step], path: Path) -> Iterator[Path]:
        """Yield the matches that follow `path` and take the next row that can be taken."""
        waits = any(
            isinstance(each, Absent) and each.late for each in walk_pattern(self.node.pattern)
        )
        steps = list(ways_on) if waits else until_free_end(ways_on)
        accepted = next(
            (row for row in self.reach(path) if any(self.takes(step, row, path) for step in steps)),
            None,
        )
        if accepted is None and self.wants(steps, path):
            self.note_alive(path)
        for step in steps:
            if step.variable is None:
                if self.is_open(step, self.limit, path) and self.stands(path):
                    yield path
            elif accepted is not None and self.takes(step, accepted, path):
                taken = Taken(accepted, step.variable, step.excluded, waiting(step))
                yield from self.next_paths(step.after(), (*path, taken))

    def any_paths(self, ways_on: Iterator[Step], path: Path) -> Iterator[Path]:
        """Yield the matches that follow `path`, whichever rows they take."""
        steps = list(ways_on)
        for row in self.reach(path):
            for step in steps:
                if self.takes(step, row, path):
                    assert step.variable is not None
                    taken = Taken(row, step.variable, step.excluded, waiting(step))
                    yield from self.any_paths(step.after(), (*path, taken))
        if self.wants(steps, path):
            self.note_alive(path)
        for step in steps:
            done = step.variable is None and self.is_open(step, self.limit, path)
            if done and self.stands(path):
                yield path

    def wants(self, steps: list[Step], path: Path) -> bool:
        """Whether some way on could take one more row behind the last one there is."""
        return any(
            step.variable is not None and self.is_open(step, self.limit, path) for step in steps
        )


def waiting(step: Step) -> tuple[Absent, ...]:
    """Return the NOTs of a step that need the complete match."""
    return tuple(part for part in step.absent if part.late)


def done(_: int, absent: tuple[Absent, ...]) -> Iterator[Step]:
    """Yield the way on at the end of the pattern."""
    yield Step(None, False, absent, lambda: iter(()))


def until_free_end(steps: Iterator[Step]) -> list[Step]:
    """Return the steps up to one that is done in any case: what is less preferred is no way on."""
    kept: list[Step] = []
    for step in steps:
        kept.append(step)
        if step.variable is None and not step.absent:
            break
    return kept


# What comes out


def output(node: MatchRecognize, rows: list[Event], found: list[Match]) -> Iterator[Event]:
    """Yield what a partition gives for its matches."""
    for each in found:
        whole = View(node, rows, each.path, each.path, each.number)
        if node.output == "one row":
            yield shown(node, rows[0], measures(whole))
        elif not each.path:
            if node.output != "omit empty":
                yield shown(node, rows[each.start], measures(whole))
        else:
            for number, taken in enumerate(each.path, start=1):
                running = View(node, rows, each.path[:number], each.path, each.number)
                if not taken.excluded:
                    yield shown(node, rows[taken.row], measures(running))
    if node.output == "with unmatched":
        real = [each for each in found if not each.timed_out]
        in_match = {taken.row for each in real for taken in each.path}
        empty = {each.start for each in real if not each.path}
        for row, event in enumerate(rows):
            if row not in in_match | empty:
                yield shown(node, event, {})


def measures(view: View) -> Event:
    values = {item.name: value_in(item.expression, view) for item in view.node.measures}
    return {**values, TIMED_OUT: view.number is None} if view.node.timeout_rows else values


def shown(node: MatchRecognize, event: Event, measured: Event) -> Event:
    """Return a row that comes out: without `measured`, all measures are null."""
    names = [item.name for item in node.measures] + [TIMED_OUT] * node.timeout_rows
    keys = dict(zip([key.name for key in node.keys], key_of(node, event), strict=True))
    known = {**event, **dict.fromkeys(names), **measured, **keys}
    return {name: known[name] for name in node.row}


# What conditions and measures mean


@dataclass(frozen=True, slots=True)
class View:
    """A match as seen from one of its rows: the rows up to it, and the whole.

    Of the variables in `late`, all rows of `complete` are seen.
    """

    node: MatchRecognize
    rows: list[Event]
    running: Path
    whole: Path
    number: int | None
    late: frozenset[str] = frozenset()
    complete: Path = ()

    def rows_of(self, variable: str | None, *, final: bool) -> Path:
        """Return the rows that belong to a variable, a subset, or (None) to anything."""
        if variable is None:
            return self.whole if final else self.running
        members = members_of(self.node, variable)
        path = self.whole if final else self.running
        if self.late.issuperset(members):
            path = self.complete
        return tuple(taken for taken in path if taken.variable in members)


def value_in(expression: Expression, view: View) -> Any:  # noqa: ANN401
    """Return the value of a condition or a measure."""
    match expression:
        case At():
            return value_at(expression, view)
        case MatchAggregate():
            return value_of_aggregate(expression, view)
        case MatchNumber():
            return view.number
        case Column() | Classifier():
            return value_at(At(expression), view)
    return combined(expression, lambda part: value_in(part, view))


def value_at(at: At, view: View) -> Any:  # noqa: ANN401
    candidates = view.rows_of(at.variable, final=at.final)
    if at.offset >= len(candidates):
        return None
    chosen = candidates[at.offset] if at.edge == "first" else candidates[-1 - at.offset]
    row = chosen.row + at.shift
    if not 0 <= row < len(view.rows):
        return None
    # PREV and NEXT go to a row of the partition: the match maps it or not, whatever is running.
    return of_row(at.argument, view.rows[row], variable_at(row, view.whole))


def value_of_aggregate(item: MatchAggregate, view: View) -> Any:  # noqa: ANN401
    group = view.rows_of(item.variable, final=item.final)
    if item.argument is None:
        assert item.function == "count"
        return len(group)
    parts = [part for part in (item.argument, item.second) if part is not None]
    values = [
        tuple(of_row(part, view.rows[each.row], each.variable, view.number) for part in parts)
        for each in group
    ]
    if item.distinct:
        values = [(value,) for value in distinct([value for (value,) in values])]
    return aggregate(item.function, values, item.parameter)


def members_of(node: MatchRecognize, name: str) -> tuple[str, ...]:
    return dict(node.subsets).get(name, (name,))


def variable_at(row: int, path: Path) -> str | None:
    return next((taken.variable for taken in path if taken.row == row), None)


def of_row(
    expression: Expression, event: Event, variable: str | None, number: int | None = None
) -> Any:  # noqa: ANN401
    """Return the value of an expression that one row, its variable and its match suffice for."""
    match expression:
        case MatchNumber():
            return number
        case Column(name=name):
            return event[name]
        case Classifier():
            return variable
    return combined(expression, lambda part: of_row(part, event, variable, number))


def combined(expression: Expression, inner: Callable[[Expression], Any]) -> Any:  # noqa: ANN401
    """Return the value of an expression, given that of its parts."""
    match expression:
        case Literal(value=value):
            return value
        case Cast(argument=argument, type=kind):
            return cast(inner(argument), kind)
        case Call(function=function, arguments=arguments):
            values = [inner(argument) for argument in arguments]
            if function in ARITHMETIC:
                return None if None in values else ARITHMETIC[function](*values)
            literals = tuple(
                Literal(value, argument.type)
                for value, argument in zip(values, arguments, strict=True)
            )
            return value_of(Call(function, literals), {})
    raise AssertionError(expression)


def cast(value: Any, kind: DataType) -> Any:  # noqa: ANN401
    if value is None:
        return None
    match kind.kind:
        case "float64":
            return float(value)
        case "int64" if isinstance(value, int):
            return int(value)
        case "decimal" if isinstance(value, int):
            return Decimal(value)
        case "string" if isinstance(value, str):
            return value
    raise AssertionError(kind)


ARITHMETIC: Mapping[str, Callable[..., Any]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "negate": lambda value: -value,
    "abs": abs,
    "||": lambda left, right: f"{left}{right}",
}
"""On numbers, timestamps and intervals (both in microseconds): null if a part is."""


# Python's regular expressions


def re_oracle(pattern: Pattern, satisfied: Sequence[frozenset[str]]) -> list[int | None]:
    """Return where the preferred match from each row ends (behind its last row), None if none.

    `satisfied` says which variables each row could be. A row becomes a letter, a variable the
    class of the letters it accepts. Repeats of parts that may be empty are beyond this: Python
    has rules of its own for them.
    """
    variables = sorted(frozenset().union(*satisfied))
    text = "".join(letter(variables, each) for each in satisfied)
    compiled = re.compile(regex(pattern, variables), re.DOTALL)
    found = (compiled.match(text, start) for start in range(len(satisfied)))
    return [None if each is None else each.end() for each in found]


def letter(variables: Sequence[str], accepted: frozenset[str]) -> str:
    bits = sum(1 << place for place, name in enumerate(variables) if name in accepted)
    return chr(ord("一") + bits)


def regex(pattern: Pattern, variables: Sequence[str]) -> str:
    match pattern:
        case Variable(name=name):
            if name not in variables:
                return "(?!)"
            bit = 1 << variables.index(name)
            letters = (chr(ord("一") + bits) for bits in range(1 << len(variables)) if bits & bit)
            return f"[{''.join(letters)}]"
        case Concat(parts=parts):
            return "".join(regex(part, variables) for part in parts)
        case Alternate(options=options):
            return f"(?:{'|'.join(regex(option, variables) for option in options)})"
        case Permute(parts=parts):
            orders = tuple(Concat(chosen) for chosen in permutations(parts))
            return regex(Alternate(orders), variables)
        case Exclude(part=part):
            return f"(?:{regex(part, variables)})"
        case PartitionStart():
            return "(?<!.)"
        case PartitionEnd():
            return "(?!.)"
        case Repeat(part=part, at_least=least, at_most=most):
            assert not may_be_empty(part)
            times = f"{{{least},{'' if most is None else most}}}"
            return f"(?:{regex(part, variables)}){times}{'' if pattern.greedy else '?'}"
        case Absent():
            raise AssertionError(pattern)
    assert_never(pattern)


def may_be_empty(pattern: Pattern) -> bool:
    """Whether a pattern can be matched without taking a row."""
    match pattern:
        case Variable():
            return False
        case Absent() | PartitionStart() | PartitionEnd():
            return True
        case Concat(parts=parts) | Permute(parts=parts):
            return all(map(may_be_empty, parts))
        case Alternate(options=options):
            return any(map(may_be_empty, options))
        case Exclude(part=part):
            return may_be_empty(part)
        case Repeat(part=part, at_least=least):
            return least == 0 or may_be_empty(part)
    assert_never(pattern)
