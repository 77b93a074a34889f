"""Queries that the index can help with, streams for them, and all ways to answer them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path

import pyarrow as pa
from hypothesis import reject
from hypothesis import strategies as st

from eventide.engines.history.patterns.conditions import Condition
from eventide.engines.history.patterns.pattern_map import kept_units
from eventide.engines.history.patterns.question import PatternQuestion
from eventide.engines.history.patterns.ways import IntervalAccess
from eventide.errors import BindError
from eventide.plan.patterns.automaton import automaton_of
from eventide.plan.patterns.tree import (
    Concat,
    Strategy,
    Variable,
    can_be_empty,
    render_pattern,
    variables_of,
    walk_pattern,
)
from eventide.store import Snapshot, Store, StoredStream
from eventide.store.options import StreamOptions
from tests.naive.patterns.texts import (
    SCHEMA,
    SKIP_WAYS,
    Row,
    in_time,
    members,
    patterns,
    surely_first,
)

# What an index can be asked, and what it cannot
ASKED = (
    "x >= 3",
    "label = 'a'",
    "x BETWEEN 1 AND 2",
    "label IN ('a', 'c')",
    "(x > 3 OR label = 'b')",
    "x = 2 AND y < 1.0",
    "y >= 0.5",
    "x < 2",
    "x > 3 AND label = 'a'",
    "2 <= x",
    "x = 4",
)
NOT_ASKED = (
    "x > PREV(x)",
    "x >= FIRST(x)",
    "NEXT(x) > 1",
    "y IS NULL",
    "x <> 1",
    "COUNT(*) < 4",
    "PREV(label, 2) = 'a'",
)

# {} is x by its name there
SOURCES = {
    "s": "x",
    "(SELECT ts, k, x AS z, y, label FROM s)": "z",
    "(SELECT ts, k, x + 1 AS x, y, label FROM s)": "x",
    "(SELECT * FROM s WHERE y > 0.0)": "x",
    "(SELECT ts, k, x AS z, y, label FROM s WHERE label <> 'c' AND x IS NOT NULL)": "z",
    "(SELECT * FROM s WHERE ts >= TIMESTAMP '1970-01-01 00:00:08')": "x",
    "(SELECT * FROM s WHERE ts BETWEEN TIMESTAMP '1970-01-01 00:00:05' "
    "AND TIMESTAMP '1970-01-01 00:00:25')": "x",
}
AROUND = ", PREV(FIRST(x)) AS p, NEXT(LAST(x), 2) AS q"


@st.composite
def indexed_queries(draw: st.DrawFn, *strategies: Strategy) -> str:
    """Draw queries for which periods of the stream are enough."""
    strategy = draw(st.sampled_from(strategies))
    every = strategy == "skip_till_any"
    names = "ABC"[: draw(st.integers(1, 2 if every else 3))]
    pattern = draw(patterns(names, anchors=False, absences=strategy != "contiguous"))
    # Mostly with a row that every match has, or else there is nothing to ask.
    if can_be_empty(pattern) or draw(st.integers(0, 2)):
        pattern = Concat((Variable(names[0]), pattern))
    try:
        automaton_of(pattern, all_matches=every)
    except BindError:
        reject()
    taken = sorted({part.name for part in walk_pattern(pattern) if isinstance(part, Variable)})
    subset = draw(st.booleans())
    defines = [
        f"{name} AS {draw(conditions(taken[0] if name != taken[0] else None))}"
        for name in variables_of(pattern)
        if name == taken[0] or draw(st.integers(0, 5))
    ]
    skips = ["PAST LAST ROW", "TO NEXT ROW"]
    skips += [
        f"TO {way}{name}"
        for way in SKIP_WAYS
        for name in [*taken, *["U"] * subset]
        if not surely_first(pattern, name, way)
    ]
    skip = "TO NEXT ROW" if every else draw(st.sampled_from(skips))
    source = draw(st.sampled_from(["s", "s", *SOURCES]))
    around = draw(st.sampled_from(["", AROUND]))
    clauses = [
        draw(st.sampled_from(["", "", "PARTITION BY k", "PARTITION BY k, label"])),
        f"MEASURES FIRST(ts) AS a, LAST(ts) AS b, COUNT(*) AS n, SUM(x) AS s{around}",
        draw(st.sampled_from(["ONE ROW PER MATCH", "ALL ROWS PER MATCH"])),
        f"AFTER MATCH SKIP {skip}",
        f"STRATEGY {strategy}",
        f"PATTERN ({render_pattern(pattern)})",
        f"WITHIN INTERVAL '{draw(st.integers(1, 8))}' SECOND",
        f"SUBSET U = ({', '.join(draw(members(taken)))})" if subset else "",
        f"DEFINE {', '.join(defines)}" if defines else "",
    ]
    body = " ".join(filter(None, clauses))
    if SOURCES[source] == "z":
        body = body.replace("(x", "(z").replace(" x", " z")
    return f"SELECT * FROM {source} MATCH_RECOGNIZE ({body})"


@st.composite
def conditions(draw: st.DrawFn, other: str | None) -> str:
    """Draw the condition of a variable; it may look at another one."""
    parts = [draw(st.sampled_from(ASKED))]
    more = draw(st.sampled_from(["", "", "", "around", "other"]))
    if more == "around":
        parts.append(draw(st.sampled_from(NOT_ASKED)))
    if more == "other" and other is not None:
        parts.append(f"label = {other}.label")
    return " AND ".join(parts)


@st.composite
def gapped_queries(draw: st.DrawFn) -> str:
    """Draw queries of rows with gaps between them: other rows do not matter, if nobody asks."""
    names = draw(st.lists(st.sampled_from("ABC"), min_size=1, max_size=3))
    gaps = [draw(st.sampled_from(["T*", "T*?", "U*"])) for _ in names[1:]]
    pattern = " ".join(
        part for pair in zip(names, [*gaps, ""], strict=True) for part in pair if part
    )
    taken = sorted(set(names))
    defines = [f"{taken[0]} AS {draw(conditions(None))}"]
    defines += [f"{name} AS {draw(conditions(taken[0]))}" for name in taken[1:]]
    skips = ["PAST LAST ROW", "TO NEXT ROW"] + ["TO LAST " + names[-1]] * (len(taken) > 1)
    skip = draw(st.sampled_from(skips if names[0] != names[-1] else skips[:2]))
    source = draw(st.sampled_from([name for name, x in SOURCES.items() if x == "x"]))
    asked = draw(st.sampled_from(["", "", f", SUM({names[-1]}.x) AS s", ", COUNT(*) AS n"]))
    clauses = [
        draw(st.sampled_from(["", "", "PARTITION BY k"])),
        f"MEASURES FIRST(ts) AS a, LAST(x) AS b, {names[0]}.label AS c{asked}",
        f"AFTER MATCH SKIP {skip} PATTERN ({pattern})",
        f"WITHIN INTERVAL '{draw(st.integers(1, 8))}' SECOND DEFINE {', '.join(defines)}",
    ]
    return f"SELECT * FROM {source} MATCH_RECOGNIZE ({' '.join(filter(None, clauses))})"


# Every rewrite, strategy, skip and output


COVERED = "MEASURES FIRST(_seq) AS f, LAST(_seq) AS l, COUNT(*) AS n"
COVERED_AROUND = f"{COVERED}, PREV(FIRST(x), 2) AS p, NEXT(LAST(x), 3) AS q"
ENDS = "MEASURES FIRST(_seq) AS f, LAST(_seq) AS l, C.y AS y"
AB = "WITHIN INTERVAL '3' SECOND DEFINE A AS x = 1, B AS x > 1"
ABC = f"{AB}, C AS label = 'c'"
AC = "WITHIN INTERVAL '6' SECOND DEFINE A AS x = 1, C AS label = 'c'"
NEXT_ROW = "AFTER MATCH SKIP TO NEXT ROW"

QUERIES = {
    "fixed": f"{COVERED} PATTERN (A B C) {ABC}",
    "gap": f"{COVERED} PATTERN (A B* C) {ABC}",
    "plus": f"{COVERED} PATTERN (A B+ C) {ABC}",
    "starts with a gap": f"{COVERED} PATTERN (B* A C) {ABC}",
    "ends with a gap": f"{COVERED} PATTERN (A C B*) {ABC}",
    "gaps at both ends": f"{COVERED} PATTERN (D? A B* C D*) {ABC}",
    "reluctant": f"{COVERED} PATTERN (A B+? C??) {ABC}",
    "counted": f"{COVERED} PATTERN (A B{{1,2}} C?) {ABC}",
    "options": f"{COVERED} PATTERN ((A | C) B) {ABC}",
    "options of several lengths": f"{COVERED} PATTERN (A (B | C B) C?) {ABC}",
    "any order": f"{COVERED} PATTERN (PERMUTE(A, B, C)) {ABC}",
    "exclusion": f"{COVERED} ALL ROWS PER MATCH PATTERN (A {{- B+ -}} C) {ABC}",
    "to next row": f"{COVERED} {NEXT_ROW} PATTERN (A B*) {AB}",
    "to a variable": f"{COVERED} AFTER MATCH SKIP TO LAST B PATTERN (A B+ C?) {ABC}",
    "to a subset": f"{COVERED} AFTER MATCH SKIP TO FIRST U PATTERN (A (B | C)+) "
    "WITHIN INTERVAL '3' SECOND SUBSET U = (B, C) DEFINE A AS x = 1, B AS x > 1, C AS label = 'c'",
    "all rows": f"{COVERED} ALL ROWS PER MATCH OMIT EMPTY MATCHES PATTERN (A B+ C?) {ABC}",
    "rows around": f"{COVERED_AROUND} PATTERN (A B+ C?) {ABC}",
    "rows around in conditions": f"{COVERED_AROUND} {NEXT_ROW} PATTERN (A B) "
    "WITHIN INTERVAL '3' SECOND "
    "DEFINE A AS x < 3 AND x > PREV(x, 2), B AS label = 'a' AND NEXT(x, 2) >= 1",
    "match state": f"{COVERED} PATTERN (A+ B) WITHIN INTERVAL '3' SECOND "
    "DEFINE A AS x < 3, B AS x > FIRST(A.x) AND label IN ('a', 'b')",
    "constants": f"{COVERED} {NEXT_ROW} PATTERN (A D* B) WITHIN INTERVAL '3' SECOND "
    "DEFINE A AS label = 'a' AND x < 3, B AS label = A.label",
    "skipping": f"{COVERED} STRATEGY skip_till_next PATTERN (A B C) {ABC}",
    "absence": f"{COVERED} STRATEGY skip_till_next PATTERN (A NOT C B) {ABC}",
    "trailing absence": f"{COVERED} STRATEGY skip_till_next PATTERN (A B NOT C) {ABC}",
    "every way": f"{COVERED} {NEXT_ROW} STRATEGY skip_till_any PATTERN (A B) {AB}",
    "every way around": f"{COVERED_AROUND} {NEXT_ROW} STRATEGY skip_till_any PATTERN (A B+) {AB}",
    "only gaps": f"{ENDS} PATTERN (A T* B T*? C) {ABC}",
    "only gaps, to next row": f"{ENDS} {NEXT_ROW} PATTERN (A T* C T* C) {AC}",
    "only gaps, keys": f"PARTITION BY k {ENDS} PATTERN (A T* C) {AC}",
    "only gaps, one condition": f"{ENDS} PATTERN (A T* C) WITHIN INTERVAL '3' SECOND "
    "DEFINE A AS x = 3, C AS x = A.x AND label = 'c'",
    "keys": f"PARTITION BY k {COVERED} PATTERN (A B* C) {ABC}",
    "keys, fixed": f"PARTITION BY k {COVERED} {NEXT_ROW} PATTERN (A D B) {AB}",
    "keys, around": f"PARTITION BY k, y {COVERED_AROUND} PATTERN (A B+) {AB}",
    "computed key": f"PARTITION BY COALESCE(x, 0) > 2 AS big {COVERED} PATTERN (A C?) "
    "WITHIN INTERVAL '9' SECOND DEFINE A AS label = 'a', C AS label = 'b'",
}
FROM = {
    "filter": (
        "(SELECT ts, _seq, k, x, y, label FROM s WHERE y > 0.5)",
        f"{COVERED} PATTERN (A B* C) {ABC}",
    ),
    "filter, around": (
        "(SELECT ts, _seq, k, x, y, label FROM s WHERE y > 0.5)",
        f"{COVERED_AROUND} PATTERN (A B*) {AB}",
    ),
    "filter, keys": (
        "(SELECT ts, _seq, k, x, y, label FROM s WHERE label <> 'b')",
        f"PARTITION BY k {COVERED_AROUND} PATTERN (A B*) {AB}",
    ),
    "filter, only gaps": (
        "(SELECT ts, _seq, k, x, y, label FROM s WHERE y > 0.5)",
        f"{ENDS} PATTERN (A T* C) {AC}",
    ),
    "names": (
        "(SELECT ts, _seq, x AS y, y AS x, label FROM s)",
        f"{COVERED_AROUND} PATTERN (A B*) WITHIN INTERVAL '3' SECOND "
        "DEFINE A AS y = 1, B AS x > 1.0",
    ),
    "computed, around": (
        "(SELECT ts, _seq, x + 1 AS x, label FROM s)",
        f"{COVERED_AROUND} {NEXT_ROW} PATTERN (A B*) WITHIN INTERVAL '3' SECOND "
        "DEFINE A AS label = 'a', B AS x > PREV(x)",
    ),
    "from a time on": (
        "(SELECT ts, _seq, k, x, y, label FROM s WHERE ts >= TIMESTAMP '1970-01-01 00:01:00')",
        f"{COVERED_AROUND} PATTERN (A B*) {AB}",
    ),
    "between times": (
        "(SELECT ts, _seq, k, x, y, label FROM s WHERE ts >= TIMESTAMP '1970-01-01 00:00:30' "
        "AND ts < TIMESTAMP '1970-01-01 00:01:00')",
        f"PARTITION BY k {COVERED_AROUND} PATTERN (A B*) {AB}",
    ),
    "no time": (
        "(SELECT ts, _seq, k, x, y, label FROM s WHERE ts > TIMESTAMP '2000-01-01 00:00:00')",
        f"{COVERED} PATTERN (A B*) {AB}",
    ),
}
TEXTS = {
    **{name: f"SELECT * FROM s MATCH_RECOGNIZE ({body})" for name, body in QUERIES.items()},
    **{
        name: f"SELECT * FROM {source} MATCH_RECOGNIZE ({body})"
        for name, (source, body) in FROM.items()
    },
    "above": f"SELECT n + 1 AS m, f FROM s MATCH_RECOGNIZE ({COVERED} PATTERN (A B* C) {ABC}) "
    "WHERE n > 2",
}


# Streams


@dataclass(frozen=True, slots=True)
class Past:
    """How rows came into a stream, and where they are."""

    order: tuple[int, ...]
    cut: int
    flushes: tuple[bool, bool]
    indexes: tuple[str, ...]

    def stream(self, folder: Path, rows: Sequence[Row]) -> StoredStream:
        """Make a stream of rows, some of them late, some of them in the log only."""
        options = StreamOptions(indexes=self.indexes)
        stream = Store.open(folder / "db").create_stream("s", SCHEMA, options)
        events = as_events([rows[place] for place in self.order])
        parts = (events.slice(0, self.cut), events.slice(self.cut))
        for part, flush in zip(parts, self.flushes, strict=True):
            if part.num_rows:
                stream.append(part)
            if flush:
                stream.flush()
        return stream


@st.composite
def pasts(draw: st.DrawFn, count: int) -> Past:
    """Draw how so many rows came: in order, some of them a little late, or anyhow."""
    order = list(range(count))
    match draw(st.sampled_from(["in order", "in order", "a little late", "anyhow"])):
        case "a little late":
            for place in draw(st.lists(st.integers(0, count - 2), max_size=3)):
                order[place], order[place + 1] = order[place + 1], order[place]
        case "anyhow":
            order = draw(st.permutations(order))
    return Past(
        tuple(order),
        draw(st.integers(0, count)),
        (draw(st.booleans()), draw(st.booleans())),
        draw(st.sampled_from([(), ("x",), ("x", "y", "label"), ("label",)])),
    )


def as_events(rows: Sequence[Row]) -> pa.Table:
    plain = [{name: value for name, value in row.items() if name != "_seq"} for row in rows]
    return pa.Table.from_pylist(plain, schema=SCHEMA.arrow.remove(1))


def many_rows(count: int, seed: int = 7) -> list[Row]:
    """Return rows with ties and gaps in time, and nulls."""
    choose = random.Random(seed)
    return in_time(
        [
            {
                "ts": choose.choice([1, 0, 1, 1, 2, 4]),
                "k": choose.choice(["p", "q", None]),
                "x": choose.choice([0, 1, 2, 3, 4, None]),
                "y": choose.choice([0.25, 1.5, None]),
                "label": choose.choice(["a", "b", "c", None]),
            }
            for _ in range(count)
        ]
    )


# All ways to answer

Bag = list[str]


def shown(batches: Sequence[pa.RecordBatch]) -> Bag:
    return sorted(str(sorted(row.items())) for batch in batches for row in batch.to_pylist())


def modes_of(question: PatternQuestion) -> Iterator[PatternQuestion]:
    """Yield a question as it may be asked: of all rows, and of the rows of each key."""
    if question.is_plain or not question.looks_around:
        yield question
    if not question.is_plain:
        yield replace(question, by_key=True, found={})


def choices_of(question: PatternQuestion, most: int = 3) -> Iterator[tuple[Condition, ...]]:
    """Yield every choice of conditions; of more than `most`, the small ones and the whole."""
    every = question.shape.conditions
    sizes = range(len(every) + 1) if len(every) <= most else (0, 1, len(every))
    for size in sizes:
        for chosen in combinations(every, size):
            # There is no map of the rows of a key.
            if chosen or not question.by_key:
                yield chosen


Map = Callable[[PatternQuestion], None]


def coarse_map(coarse: int) -> Map:
    """Have a question look at so many units at once."""

    def use(question: PatternQuestion) -> None:
        question.__dict__["kept"] = kept_units(
            question.units, question.shape, question.within_us, question.time_range, coarse
        )

    return use


def answers(
    question: PatternQuestion, use_map: Map | None = None
) -> Iterator[tuple[str, Callable[[], Bag]]]:
    """Yield every way to answer, by what it does."""
    for mode in modes_of(question):
        if use_map is not None:
            use_map(mode)
        for chosen in choices_of(mode):
            access = IntervalAccess(mode, chosen)
            asked = [mode.named(each) for each in chosen]
            yield f"by key: {mode.by_key}, asked: {asked}", partial(answer_of, access)


def answer_of(access: IntervalAccess) -> Bag:
    return shown(access.run()[0])


def snapshot_of(folder: Path, rows: Sequence[Row], **past: object) -> Snapshot:
    """Return a stream of rows that came in order, in several runs and with some in the log."""
    options = StreamOptions(indexes=("x", "label"))
    stream = Store.open(folder / "db").create_stream("s", SCHEMA, options)
    events = as_events(rows)
    if past.get("late"):
        order = list(range(len(rows)))
        choose = random.Random(3)
        for _ in range(len(rows) // 20):
            place = choose.randrange(len(rows) - 9)
            order.insert(place + choose.randrange(1, 9), order.pop(place))
        events = events.take(order)
    whole = len(rows) - 10
    for start in range(0, whole, 60):
        stream.append(events.slice(start, min(60, whole - start)))
        stream.flush()
    stream.append(events.slice(whole))
    return stream.snapshot()
