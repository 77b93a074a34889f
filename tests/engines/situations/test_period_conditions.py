"""Relations of periods anywhere in a SELECT: written out for DuckDB, they give the right rows."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import duckdb
import pyarrow as pa
import pytest

import eventide as ev
from eventide.plan.situations import allen

SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us")),
        ("k", pa.string()),
        ("v", pa.int64()),
        ("start_ts", pa.timestamp("us")),
        ("end_ts", pa.timestamp("us")),
    ]
)
WRITTEN = {
    "before": "A.end_ts < B.start_ts",
    "after": "B.end_ts < A.start_ts",
    "meets": "A.end_ts = B.start_ts",
    "met by": "B.end_ts = A.start_ts",
    "overlaps": "A.start_ts < B.start_ts AND B.start_ts < A.end_ts AND A.end_ts < B.end_ts",
    "overlapped by": "B.start_ts < A.start_ts AND A.start_ts < B.end_ts AND B.end_ts < A.end_ts",
    "starts": "A.start_ts = B.start_ts AND A.end_ts < B.end_ts",
    "started by": "A.start_ts = B.start_ts AND B.end_ts < A.end_ts",
    "during": "B.start_ts < A.start_ts AND A.end_ts < B.end_ts",
    "contains": "A.start_ts < B.start_ts AND B.end_ts < A.end_ts",
    "finishes": "B.start_ts < A.start_ts AND A.end_ts = B.end_ts",
    "finished by": "A.start_ts < B.start_ts AND A.end_ts = B.end_ts",
    "equals": "A.start_ts = B.start_ts AND A.end_ts = B.end_ts",
}
LASTING = "A.start_ts < A.end_ts AND B.start_ts < B.end_ts"

Said = tuple[str, str]
"""A condition as we have it, and as DuckDB does."""


@dataclass
class Drawn:
    """Draws conditions, and queries of them."""

    random: Random

    def likely(self, chance: float) -> bool:
        return self.random.random() < chance

    def relation(self, a: str, b: str) -> Said:
        if self.likely(0.5):
            a, b = b, a
        words = self.random.sample(allen.WORDS, self.random.choice([1, 1, 2]))
        mask = 0
        for word in words:
            mask |= allen.mask_named(word) or 0
        ours = f"{a} {' OR '.join(words)} {b}"
        if self.likely(0.2) and mask != allen.ANY:
            ours, mask = f"NOT {ours}", allen.ANY & ~mask
        either = " OR ".join(f"({WRITTEN[name]})" for name in allen.names_of(mask))
        return ours, f"({LASTING} AND ({either}))".replace("A.", f"{a}.").replace("B.", f"{b}.")

    def others(self, a: str, b: str) -> list[Said]:
        """Draw conditions besides the relation; some are keys, some filter."""
        found = [f"{a}.k = {b}.k"] if self.likely(0.6) else []
        return [(each, each) for each in found]

    def filters(self, *names: str) -> list[Said]:
        sign, other = self.random.choice(["<", ">", "<>"]), self.random.randrange(4)
        found = [f"{names[-1]}.v {sign} {other}"] if self.likely(0.4) else []
        if len(names) > 1 and self.likely(0.3):
            found.append(f"{names[0]}.v < {names[1]}.v")
        return [(each, each) for each in found]

    def joined(self, parts: list[Said]) -> Said:
        self.random.shuffle(parts)
        ours, theirs = (" AND ".join(part[side] for part in parts) for side in (0, 1))
        return ours, theirs

    def exists(self, name: str) -> Said:
        parts = [self.relation(name, "e"), *self.others(name, "e"), *self.filters("e")]
        word = self.random.choice(["", "NOT "])
        ours, theirs = (f"{word}EXISTS (SELECT 1 FROM s e WHERE {each})"
                        for each in self.joined(parts))  # fmt: skip
        return ours, theirs

    def query(self) -> Said:
        names = "abc"[: self.random.choice([1, 2, 2, 3, 3])]
        first = self.random.choice(["s a", "(SELECT * FROM s WHERE v < 4) a"])
        texts, where = ([f"FROM {first}"], [f"FROM {first}"]), list[Said]()
        for place, name in enumerate(names[1:], 1):
            before = self.random.choice(names[:place])
            kind = self.random.choice(["JOIN", "JOIN", ",", "LEFT JOIN"])
            parts = [self.relation(before, name), *self.others(before, name)]
            if kind != "LEFT JOIN":
                parts += self.filters(before, name)
                for other in names[:place]:
                    if other != before and self.likely(0.4):
                        parts.append(self.relation(other, name))
            moved = parts if kind == "," else [each for each in parts[1:] if self.likely(0.3)]
            if kind == "LEFT JOIN":
                moved = []
            kept = [each for each in parts if each not in moved]
            where += moved
            on = self.joined(kept)
            for text, said in zip(texts, on, strict=True):
                text.append(f"{kind} s {name}{f' ON {said}' if kept else ''}")
        if len(names) == 1 or self.likely(0.6):
            where.append(self.exists(self.random.choice(names)))
        where += self.filters(self.random.choice(names))
        shown = ", ".join(f"{name}.ts AS {name}_ts" for name in names)
        for text, said in zip(texts, self.joined(where), strict=True):
            text.append(f"WHERE {said}" if where else "")
        ours, theirs = (f"SELECT {shown} {' '.join(text)}" for text in texts)
        return ours, theirs

    def table(self) -> pa.Table:
        rows = []
        for place in range(self.random.choice([4, 12, 25])):
            start = self.random.choice([None, *range(12), *range(12)])
            end = None if start is None else start + self.random.randrange(-1, 7)
            rows.append(
                {
                    "ts": place,
                    "k": self.random.choice(["x", "y", None]),
                    "v": self.random.randrange(5),
                    "start_ts": start,
                    "end_ts": None if self.likely(0.1) else end,
                }
            )
        return pa.Table.from_pylist(rows, schema=SCHEMA)


@pytest.mark.parametrize("seed", range(120))
def test_a_relation_means_the_same_wherever_it_stands(seed: int) -> None:
    drawn = Drawn(Random(seed))
    table = drawn.table()
    ours, theirs = drawn.query()
    found = ev.sql(ours, s=table).to_arrow()
    with duckdb.connect() as connection:
        connection.execute("PRAGMA disable_optimizer")
        connection.register("s", table)
        expected = connection.sql(theirs).fetchall()
    rows = zip(*(column.to_pylist() for column in found.columns), strict=True)
    assert sorted(map(repr, rows)) == sorted(map(repr, expected)), ours


def test_the_queries_are_of_all_kinds() -> None:
    texts = [Drawn(Random(seed)) for seed in range(120)]
    queries = [(each.table(), each.query())[1][0] for each in texts]
    for word in ("LEFT JOIN", ", s b", "NOT EXISTS", " EXISTS", "NOT a", " OR ", "(SELECT *"):
        assert sum(word in query for query in queries) > 5, word
