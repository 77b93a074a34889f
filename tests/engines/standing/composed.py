"""Standing queries put together at random: every operator over every other."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.naive.standing.answers import Question
from tests.naive.standing.windows import Window

WINDOWS = (
    "RANGE 4 SECONDS", "RANGE 3 SECONDS", "RANGE 6 SECONDS", "RANGE 5 SECONDS JUMP 3 SECONDS",
    "TUMBLE 4 SECONDS", "RANGE UNBOUNDED", "ROWS 3", "PARTITION BY k ROWS 2", "LATEST BY k",
    "SESSION 2 SECONDS", "PARTITION BY k SESSION 3 SECONDS", "NOW",
)  # fmt: skip
RANK = "CASE WHEN {0} = 'p' THEN 1 WHEN {0} = 'q' THEN 2 WHEN {0} = 's' THEN 3 ELSE 4 END"
"""A number for each key, for orders of rows are by numbers."""


@dataclass
class Composer:
    """Writes queries with the columns k and v; a letter of its own for each name in them."""

    choose: random.Random
    names: int = 0
    windows: dict[str, Window] = field(default_factory=dict)

    def name(self) -> str:
        self.names += 1
        return f"n{self.names}"

    def window(self) -> str:
        name = self.name()
        self.windows[name] = Window(self.choose.choice("abcd"), self.choose.choice(WINDOWS))
        return name

    def query(self, depth: int) -> str:
        if not depth:
            return self.leaf()
        kinds = [self.join, self.union, self.distinct, self.negation, self.existence]
        kinds += [self.group, self.filter, self.join_windows, self.top, self.outer_join]
        return self.choose.choice(kinds)(depth - 1)

    def leaf(self) -> str:
        name = self.window()
        where = self.choose.choice(("", f" WHERE {name}.v > 0", f" WHERE {name}.g = 1"))
        return f"SELECT {name}.k, {name}.v FROM {{{name}}}{where}"

    def join(self, depth: int) -> str:
        p, q = self.name(), self.name()
        more = self.choose.choice(("", f" AND {p}.v <= {q}.v"))
        left, right = self.query(depth), self.query(depth)
        return f"SELECT {p}.k, {q}.v FROM ({left}) {p} JOIN ({right}) {q} ON {p}.k = {q}.k{more}"

    def outer_join(self, depth: int) -> str:
        p, q = self.name(), self.name()
        side = self.choose.choice(("LEFT", "LEFT", "RIGHT", "FULL"))
        more = self.choose.choice(("", "", f" AND {p}.v <= {q}.v", f" AND {p}.v > 0"))
        value = self.choose.choice((f"{q}.v", f"{p}.v"))
        left, right = self.query(depth), self.query(depth)
        joined = f"({left}) {p} {side} JOIN ({right}) {q} ON {p}.k = {q}.k{more}"
        return f"SELECT {p}.k, {value} FROM {joined}"

    def join_windows(self, depth: int) -> str:
        names = [self.window() for _ in range(2 + depth % 2)]
        first, *others, last = names
        between = "".join(f" JOIN {{{name}}} ON {name}.k = {first}.k" for name in others)
        end = f" JOIN {{{last}}} ON {last}.{'gk'[depth % 2]} = {first}.{'gk'[depth % 2]}"
        return f"SELECT {first}.k, {last}.v FROM {{{first}}}{between}{end}"

    def union(self, depth: int) -> str:
        return self.nested(f"{self.query(depth)} UNION ALL {self.query(depth)}")

    def nested(self, query: str) -> str:
        p = self.name()
        return f"SELECT {p}.k, {p}.v FROM ({query}) {p}"

    def distinct(self, depth: int) -> str:
        p = self.name()
        return f"SELECT DISTINCT {p}.k, {p}.v FROM ({self.query(depth)}) {p}"

    def negation(self, depth: int) -> str:
        word = self.choose.choice(("EXCEPT ALL", "EXCEPT", "INTERSECT ALL", "INTERSECT"))
        return self.nested(f"{self.query(depth)} {word} {self.query(depth)}")

    def existence(self, depth: int) -> str:
        p, q = self.name(), self.name()
        word = self.choose.choice(("NOT EXISTS", "EXISTS"))
        inner = f"SELECT 1 FROM ({self.query(depth)}) {q} WHERE {q}.k = {p}.k"
        return f"SELECT {p}.k, {p}.v FROM ({self.query(depth)}) {p} WHERE {word} ({inner})"

    def group(self, depth: int) -> str:
        p = self.name()
        value = self.choose.choice(("COUNT(*)", "SUM({})", "MAX({})", "COUNT(DISTINCT {})"))
        value = value.format(f"{p}.v")
        return f"SELECT {p}.k, {value} AS v FROM ({self.query(depth)}) {p} GROUP BY {p}.k"

    def filter(self, depth: int) -> str:
        p = self.name()
        return f"SELECT {p}.k, {p}.v + 1 AS v FROM ({self.query(depth)}) {p} WHERE {p}.v < 3"

    def top(self, depth: int) -> str:
        p = self.name()
        order = f"ORDER BY {p}.v DESC NULLS LAST, {RANK.format(f'{p}.k')} LIMIT 3"
        return self.nested(f"SELECT {p}.k, {p}.v FROM ({self.query(depth)}) {p} {order}")


def composed(seed: int) -> Question:
    """A query of two or three operators above windows; some are refreshed every two seconds."""
    composer = Composer(random.Random(seed))
    select = composer.query(composer.choose.choice((1, 2, 2, 3)))
    question = Question(f"composed_{seed}", select, composer.windows)
    if composer.choose.random() < 0.25 and "[NOW]" not in question.text:
        slid = question.sliding(2)
        return slid if "RANGE 4" in next(iter(slid.windows.values())).text else question
    return question
