"""Random texts in CEL, and what each means by the twin of the event algebra.

A part of a text is made together with what it means, so a name that stands for something else in
the language than in the algebra shows. Attributes whose names begin with k are texts, others are
numbers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from hypothesis import strategies as st

from tests.naive.algebra.events import (
    Bag,
    Row,
    TooMuch,
    Value,
    at_instants,
    introduce,
    length,
    mu,
    project,
    rename,
    select,
    seq,
    union,
)
from tests.naive.algebra.plans import Streams, streams
from tests.naive.algebra.trees import events

ATTRIBUTES = ("k", "n", "w")
"""Of both streams: w is a text as well, and is left out as soon as attributes are chosen."""
Meaning = Callable[[Mapping[str, Bag]], Bag]


@dataclass(frozen=True)
class Part:
    """The text of a part, its attributes, and its events."""

    text: str
    names: tuple[str, ...]
    meaning: Meaning
    is_query: bool = False

    @property
    def bracketed(self) -> str:
        return f"({self.text})"

    @property
    def behind_from(self) -> str:
        return self.bracketed if self.is_query else self.text


Said = tuple[str, Value]
"""The text of a value or condition, and what it is of a row."""


def of(names: Sequence[str], *, texts: bool) -> list[str]:
    return [name for name in names if name.split(".")[-1].startswith(("k", "w")) == texts]


def compared(operator: str, one: Said, other: Said) -> Said:
    def holds(row: Row) -> bool | None:
        left, right = one[1](row), other[1](row)
        if left is None or right is None:
            return None
        results: dict[str, bool] = {
            "<": left < right,
            "=": left == right,
            ">=": left >= right,
            "<>": left != right,
        }
        return results[operator]

    return f"{one[0]} {operator} {other[0]}", holds


def both(one: Said, other: Said) -> Said:
    def holds(row: Row) -> bool | None:
        found = one[1](row), other[1](row)
        return False if False in found else None if None in found else True

    return f"{one[0]} AND {other[0]}", holds


def either(one: Said, other: Said) -> Said:
    def holds(row: Row) -> bool | None:
        found = one[1](row), other[1](row)
        return True if True in found else None if None in found else False

    return f"({one[0]} OR {other[0]})", holds


def denied(one: Said) -> Said:
    return f"NOT ({one[0]})", lambda row: None if one[1](row) is None else not one[1](row)


def added(one: Said, other: Said) -> Said:
    def total(row: Row) -> int | None:
        values = one[1](row), other[1](row)
        return None if None in values else values[0] + values[1]

    return f"({one[0]} + {other[0]})", total


@dataclass
class Writer:
    """Writes parts at random."""

    choose: random.Random
    used: int = 0

    def fresh(self, name: str) -> str:
        self.used += 1
        return f"{name[0]}{self.used}"

    def number(self, known: Mapping[str, str]) -> Said:
        """A number of a row: names in a text stand for names in the row."""
        names = of([*known], texts=False)
        if not names or self.choose.random() < 0.2:
            constant = self.choose.choice([0, 1, 2, 3])
            return str(constant), lambda _: constant
        said = self.choose.choice(names)
        value: Said = (said, lambda row: row[known[said]])
        return added(value, self.number(known)) if self.choose.random() < 0.2 else value

    def condition(self, known: Mapping[str, str], parts: int = 2) -> Said:
        texts = of([*known], texts=True)
        match self.choose.choice(["number", "number", "text", "length", "or", "not", "known"]):
            case "text" if texts:
                one, other = (self.choose.choice(texts) for _ in range(2))
                pair = [(each, lambda row, each=each: row[known[each]]) for each in (one, other)]
                found = compared(self.choose.choice(["=", "=", "<>"]), *pair)
            case "length":
                most = self.choose.choice([2, 4, 8, 15])
                found = (f"DUR <= {most} us", lambda row: length(row) <= most)
            case "or":
                found = either(self.condition(known, 1), self.condition(known, 1))
            case "not":
                found = denied(self.condition(known, 1))
            case "known":
                name = self.choose.choice([*known])
                found = (f"{name} IS NOT NULL", lambda row: row[known[name]] is not None)
            case _:
                operator = self.choose.choice(["<", "<", "=", ">=", "<>"])
                found = compared(operator, self.number(known), self.number(known))
        if parts > 1 and self.choose.random() < 0.4:
            return both(found, self.condition(known, parts - 1))
        return found

    def leaf(self) -> Part:
        stream = self.choose.choice("st")
        kept = Part(stream, ATTRIBUTES, lambda given: project(ATTRIBUTES, given[stream]))
        return self.changed(kept) if self.choose.random() < 0.6 else kept

    def changed(self, part: Part) -> Part:
        """Events that are chosen, or that have other attributes."""
        own = {name: name for name in part.names}
        if self.choose.random() < 0.4:
            said, holds = self.condition(own)
            text = f"FILTER{{{said}}} {part.bracketed}"
            return Part(text, part.names, lambda given: select(holds, part.meaning(given)))
        names = self.choose.sample(part.names, self.choose.randint(1, len(part.names)))
        called = {name: self.fresh(name) if self.choose.random() < 0.3 else name for name in names}
        items = [name if name == new else f"{name} AS {new}" for name, new in called.items()]
        said, value = self.number(own)
        total = self.fresh("n")
        items.append(f"{said} AS {total}")

        def meaning(given: Mapping[str, Bag]) -> Bag:
            found = introduce({total: value}, part.meaning(given))
            return rename(called, project([*called, total], found))

        text = f"SELECT {', '.join(items)} FROM {part.behind_from}"
        return Part(text, (*called.values(), total), meaning, is_query=True)

    def next(self, left: Part, right: Part) -> Part | None:
        after = {name: name for name in left.names}
        if {*left.names} & {*right.names}:
            after = {name: f"{name}_1" for name in left.names}
        names = (*after.values(), *right.names)
        if len({*names}) < len(names):
            return None
        known = {f"$1.{name}": new for name, new in after.items()}
        known |= {f"$2.{name}": name for name in right.names}
        said, holds = self.condition(known)
        text = f"{left.bracketed} NEXT{{{said}}} {right.bracketed}"
        return Part(
            text,
            names,
            lambda given: seq(rename(after, left.meaning(given)), right.meaning(given), holds),
        )

    def fold(self, left: Part, right: Part) -> Part | None:
        common = [name for name in left.names if name in right.names]
        alone = [name for name in left.names if name not in right.names]
        carried = [name for name in of(alone, texts=False) if self.choose.random() < 0.6]
        after = {f"{name}.first": f"{name}_1" for name in common}
        names = (*after.values(), *alone, *common)
        if not common or len({*names}) < len(names):
            return None
        if len(common) < len(right.names):
            others = right
            text = f"SELECT {', '.join(common)} FROM {others.behind_from}"
            right = Part(
                text, tuple(common), lambda given: project(common, others.meaning(given)), True
            )
        known = {f"$1.{name}": f"{name}.first" for name in common}
        known |= {f"$.{name}": f"{name}.last" for name in common}
        known |= {f"$2.{name}": name for name in common}
        known |= {f"$1.{name}": name for name in alone if name not in carried}
        known |= {f"$.{name}": name for name in carried}
        (said, asked), (also, goes_on) = self.condition(known), self.condition(known, 1)
        values = {name: self.number(known) for name in carried}
        nexts = {name: value for name, (_, value) in values.items()}
        slots = [said, also, ", ".join(f"{each[0]} AS {name}" for name, each in values.items())]
        text = f"{left.bracketed} FOLD{{{', '.join(slots)}}} {right.bracketed}"

        def meaning(given: Mapping[str, Bag]) -> Bag:
            def chain(found: Bag) -> Bag:
                return introduce(nexts, select(goes_on, found))

            found = mu(left.meaning(given), right.meaning(given), asked, chain)
            return rename(after, project([*after, *alone, *common], found))

        return Part(text, names, meaning)

    def united(self, one: Part, other: Part) -> Part | None:
        names = [name for name in one.names if name in other.names]
        if not names:
            return None
        arms = [f"(SELECT {', '.join(names)} FROM {each.behind_from})" for each in (one, other)]
        return Part(
            " UNION ".join(arms),
            tuple(names),
            lambda given: union(*(project(names, each.meaning(given)) for each in (one, other))),
        )

    def at_instant(self, part: Part) -> Part:
        count, least = self.fresh("n"), self.fresh("n")
        numbers = of(part.names, texts=False)
        items = [f"COUNT(*) AS {count}", *(f"MIN({each}) AS {least}" for each in numbers[:1])]

        def total(rows: list[Row]) -> Row:
            known = [row[name] for row in rows for name in numbers[:1] if row[name] is not None]
            smallest = {least: min(known, default=None)} if numbers else {}
            return {count: len(rows), **smallest}

        names = (count, least) if numbers else (count,)
        text = f"AT INSTANT{{{', '.join(items)}}} {part.bracketed}"
        return Part(text, names, lambda given: at_instants(total, part.meaning(given)))

    def part(self, depth: int) -> Part:
        if depth == 0:
            return self.leaf()
        while True:
            left, right = (self.part(self.choose.randrange(depth)) for _ in range(2))
            match self.choose.choice(["next", "next", "fold", "fold", "union", "instant"]):
                case "next":
                    found = self.next(left, right)
                case "fold":
                    found = self.fold(left, right)
                case "union":
                    found = self.united(left, right)
                case _:
                    found = self.at_instant(left)
            if found is not None:
                return self.changed(found) if self.choose.random() < 0.4 else found


@dataclass(frozen=True)
class Written:
    """A text, events, and the results of the twin."""

    text: str
    streams: Streams
    found: Bag
    meaning: Meaning

    def answer(self, streams: Mapping[str, Sequence[Row]]) -> Bag:
        """The results of the twin for other events."""
        return self.meaning(bags_of(streams))


def written(seed: int, depth: int) -> Written:
    """The first text and events from a seed that give results."""
    choose = random.Random(seed)
    while True:
        part, given = Writer(choose).part(depth), streams(choose, 10)
        with suppress(TooMuch):
            found = part.meaning(bags_of(given))
            if found:
                text = part.text if part.is_query or choose.random() < 0.5 else f"FROM {part.text}"
                return Written(text, given, found, part.meaning)


def bags_of(streams: Mapping[str, Sequence[Row]]) -> dict[str, Bag]:
    """Rows as the twin has them: as events without a number."""
    return {name: events([without_seq(row) for row in rows]) for name, rows in streams.items()}


def without_seq(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "_seq"}


WRITTEN = st.builds(written, st.integers(0, 2**32), st.integers(1, 3))
