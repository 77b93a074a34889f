"""Live queries over keys that come and go: what a step takes and what is remembered, over time.

There is no rival: what has to hold is that the end is like the beginning, and that a step takes as
long with many keys as with few. Milliseconds are those of the processor, as other work on the
machine would show in the clock on the wall.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from rich.console import Console

import eventide
from benchmarks.measure import collector_off
from benchmarks.pages import KEYS as PAGE
from benchmarks.pages import write_section
from benchmarks.promises import VERDICT, Figure, verdict
from benchmarks.race import at_least
from benchmarks.report import Machine, as_line, facts
from eventide.api.live.query import LiveQuery, live_query
from eventide.errors import UnboundedStateWarning
from eventide.lang.sql import plan_sql
from eventide.schema import SEQ, TS, Schema

Rows = Sequence[tuple[str, ...]]
"""The rows of a table."""

KEYS = 1_000_000
KNOWN = 100_000
STEPS = 400
FEWER_KNOWN = (1, 1_000)
KEYS_A_SECOND = 1000
BATCH = 1_000
BATCHES = 500
KEYS_IN_BATCHES = (1, 100, 10_000)
KEYS_OF_TEXTS = (1, 100, 1_000, 100_000)
PUSHED = {1: 1_000, BATCH: 300, 100_000: 10}
"""How many events are pushed at a time, and how often."""
LETTERS = "abcd"
WANTED = at_least(5)
"""Ten times what a rival is said to take of one pattern, in millions a second."""
SINGLE_EVENTS = 200
SECOND_US = 1_000_000
ATTRIBUTES = {"k": "string", "v": "float64"}
WITH_TEXTS = {**ATTRIBUTES, "e": "string"}
SCHEMA, TEXT_SCHEMA = Schema.of(ATTRIBUTES), Schema.of(WITH_TEXTS)

_PATTERN = "SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES {})"
_FRAME = (
    "SELECT k, AVG(v) OVER (PARTITION BY k ORDER BY ts {} PRECEDING AND CURRENT ROW) AS m FROM s"
)
COME_AND_GO = {
    "pattern, A B+ C with PREV": _PATTERN.format(
        "LAST(B.v) AS top PATTERN (A B+ C) WITHIN INTERVAL '30' SECOND "
        "DEFINE B AS v > PREV(v), C AS v < PREV(v)"
    ),
    "pattern, AVG of the match": _PATTERN.format(
        "LAST(B.v) AS top PATTERN (A B+ C) WITHIN INTERVAL '30' SECOND "
        "DEFINE B AS v >= AVG(B.v), C AS v < A.v"
    ),
    "pattern, skip_till_any": _PATTERN.format(
        "B.v AS top STRATEGY skip_till_any PATTERN (A B) WITHIN INTERVAL '30' SECOND "
        "DEFINE A AS v < 30, B AS v > A.v"
    ),
    "temporal pattern, GAP": """SELECT * FROM s TPSTREAM (PARTITION BY k
      DEFINE a AS v > 30, b AS v > 60 GAP 10 SECONDS
      PATTERN a contains b; a overlaps b; a starts b WITHIN 30 SECONDS RETURN MAX(a.v) AS top)""",
    "temporal pattern, durations": """SELECT * FROM s TPSTREAM (PARTITION BY k
      DEFINE a AS v > 30 AT LEAST 1 SECOND, b AS v > 60 GAP 10 SECONDS
      PATTERN a contains b; a overlaps b; a starts b WITHIN 30 SECONDS RETURN MAX(a.v) AS top)""",
    "situations, GAP": """SELECT * FROM s SITUATIONS (PARTITION BY k DEFINE a AS v > 30
      GAP 10 SECONDS RETURN MAX(v) AS top)""",
    "TUMBLE": "SELECT k, AVG(v) AS m FROM s GROUP BY k, TUMBLE(ts, INTERVAL '30' SECOND)",
    "HOP": """SELECT k, AVG(v) AS m FROM s
      GROUP BY k, HOP(ts, INTERVAL '10' SECOND, INTERVAL '30' SECOND)""",
    "OVER RANGE": _FRAME.format("RANGE BETWEEN INTERVAL '30' SECOND"),
    "[RANGE], groups": "SELECT k, AVG(v) AS m FROM s [RANGE 30 SECONDS] GROUP BY k",
    "[RANGE], DISTINCT": "SELECT DISTINCT k FROM s [RANGE 30 SECONDS]",
    "[SESSION], groups": """SELECT k, COUNT(*) AS n FROM s [PARTITION BY k SESSION 10 SECONDS]
      GROUP BY k""",
    "[RANGE], join": """SELECT a.k, b.v FROM s [RANGE 30 SECONDS] AS a
      JOIN s [RANGE 5 SECONDS] AS b ON a.k = b.k""",
}
THREE_ROWS = _PATTERN.format(
    "FIRST(A.v) AS a, LAST(C.v) AS c PATTERN (A B+ C) WITHIN INTERVAL '30' SECOND "
    "DEFINE A AS v < 30, B AS v >= 30 AND v < 70, C AS v >= 70"
)
OF_TEXTS = _PATTERN.format(
    "FIRST(A.v) AS a, LAST(C.v) AS c PATTERN (A B+ C) WITHIN INTERVAL '30' SECOND "
    "DEFINE A AS e = 'a', B AS e = 'b', C AS e = 'c'"
)
ONE_BY_ONE = {
    "OVER RANGE, COUNT(DISTINCT)": """SELECT k, COUNT(DISTINCT v) OVER (PARTITION BY k ORDER BY ts
      RANGE BETWEEN INTERVAL '30' SECOND PRECEDING AND CURRENT ROW) AS n FROM s""",
    "SESSION": "SELECT k, COUNT(*) AS n FROM s GROUP BY k, SESSION(ts, INTERVAL '10' SECOND)",
    "[RANGE], SLIDE": """SELECT k, AVG(v) AS m FROM s [RANGE 30 SECONDS SLIDE 1 SECOND]
      GROUP BY k""",
    "[RANGE], TOP_K": "SELECT k, TOP_K(v, 3) AS top FROM s [RANGE 30 SECONDS] GROUP BY k",
    "[RANGE], FREQUENT": """SELECT k, FREQUENT(v, 3) FROM s [RANGE 30 SECONDS SLIDE 1 SECOND]
      GROUP BY k""",
    "CEL, NEXT": """SELECT * FROM FILTER{v < 30} s
      NEXT{$1.k = $2.k AND $2.v > 70 AND DUR <= 30 seconds} s""",
    "CEL, FOLD": """SELECT * FROM (SELECT k, v FROM s)
      FOLD{$2.k = $.k AND DUR <= 30 seconds, $2.v > $.v} s""",
}
KEEPING = {
    "pattern, PREV at its first row": _PATTERN.format(
        "B.v AS top PATTERN (A B) WITHIN INTERVAL '30' SECOND DEFINE A AS v > PREV(v)"
    ),
    "pattern, MATCH_NUMBER()": _PATTERN.format(
        "MATCH_NUMBER() AS n PATTERN (A B) WITHIN INTERVAL '30' SECOND DEFINE B AS v > 50"
    ),
    "[ROWS 4], groups": "SELECT k, AVG(v) AS m FROM s [PARTITION BY k ROWS 4] GROUP BY k",
    "HOP(ROWS, 2, 4)": "SELECT k, AVG(v) AS m FROM s GROUP BY k, HOP(ROWS, 2, 4)",
    "TUMBLE(ROWS, 4)": "SELECT k, AVG(v) AS m FROM s GROUP BY k, TUMBLE(ROWS, 4)",
    "OVER ROWS 3": _FRAME.format("ROWS BETWEEN 3"),
}


@dataclass(frozen=True, slots=True)
class Stretch:
    """What some steps of a query took, and what was there after them."""

    step_ms: float
    slowest_ms: float
    state_kb: float
    resident_mb: float


def events_of(step: int, keys: np.ndarray, seconds: float) -> pa.RecordBatch:
    """Return two events of each key, in order of time."""
    rng = np.random.default_rng(step)
    count = 2 * len(keys)
    ts = int(step * seconds * SECOND_US) + np.sort(rng.integers(0, int(seconds * SECOND_US), count))
    names = np.char.add("key ", keys.astype(str))[rng.permutation(count) % len(keys)]
    columns = [
        pa.array(ts).view(pa.timestamp("us")),
        pa.array(np.arange(step * count, (step + 1) * count)),
        pa.array(names),
        pa.array(rng.integers(0, 100, count).astype(np.float64)),
    ]
    return pa.RecordBatch.from_arrays(columns, [TS, SEQ, "k", "v"])


def opened(text: str, schema: Schema = SCHEMA) -> LiveQuery:
    """Return a live query that is fed by hand; what it keeps of every key is known here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnboundedStateWarning)
        return live_query(plan_sql(text, {"s": schema}), {"s": schema}, None, "0 s")


def state_kb(query: LiveQuery) -> float:
    """Return how much a query remembers."""
    return sum(size.bytes for _, size in query.sizes()) / 1000


def resident_mb() -> float:
    """Return how much memory the process has now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1_000_000


def stretches(text: str, keys: int, steps: int) -> Iterator[Stretch]:
    """Yield a tenth of the steps at the beginning, in the middle and at the end.

    The beginning is where the windows are full for the first time.
    """
    each = keys // steps
    seconds = each / KEYS_A_SECOND
    tenth = steps // 10
    ends = (2 * tenth, steps // 2 + tenth // 2, steps)
    query, taken = opened(text), list[float]()
    for step in range(steps):
        batch = events_of(step, np.arange(step * each, (step + 1) * each), seconds)
        began = time.process_time()
        query.push(batch)
        taken.append(1000 * (time.process_time() - began))
        if step + 1 in ends:
            lately = taken[-tenth:]
            yield Stretch(median(lately), max(lately), state_kb(query), resident_mb())


def single_events(text: str, known: int) -> tuple[float, float]:
    """Return the milliseconds of a step with one event where so many keys are known.

    That is the median, and the slowest of twenty.
    """
    query, keys = opened(text), np.arange(known)
    for step in range(2):
        query.push(events_of(step, keys, 1.0))
    taken = []
    for place in range(SINGLE_EVENTS):
        key = keys[[(7919 * place) % known]]
        one = events_of(2, key, 0.001).slice(0, 1)
        later = pa.array([2 * SECOND_US + 100 * place]).view(pa.timestamp("us"))
        one = one.set_column(0, TS, later)
        began = time.process_time()
        query.push(one)
        taken.append(1000 * (time.process_time() - began))
    return median(taken), float(np.quantile(taken, 0.95))


def batches_of(keys: int, size: int = BATCH, batches: int | None = None) -> list[pa.RecordBatch]:
    """Return batches of events of so many keys, 10,000 events a second."""
    rng = np.random.default_rng(keys)
    count = size * (BATCHES if batches is None else batches)
    names = np.char.add("key ", np.arange(keys).astype(str))
    events = pa.RecordBatch.from_arrays(
        [
            pa.array(np.arange(count) * 100).view(pa.timestamp("us")),
            pa.array(np.arange(count)),
            pa.array(names[rng.integers(0, keys, count)]),
            pa.array(rng.integers(0, 100, count).astype(np.float64)),
            pa.array(np.array(list(LETTERS))[rng.integers(0, len(LETTERS), count)]),
        ],
        [TS, SEQ, "k", "v", "e"],
    )
    return [events.slice(start, size) for start in range(0, count, size)]


def events_a_second(
    take: Callable[[pa.RecordBatch], object], batches: Sequence[pa.RecordBatch]
) -> float:
    """Return how many million events a second of the processor are taken."""
    taken = []
    for batch in batches:
        began = time.process_time()
        take(batch)
        taken.append(time.process_time() - began)
    # Steps that merge layers or write segments count, the first ones do not.
    return float(batches[0].num_rows / np.mean(taken[len(taken) // 10 :]) / 1e6)


def appended_a_second(
    batches: Sequence[pa.RecordBatch],
    text: str | None,
    attributes: Mapping[str, str] = ATTRIBUTES,
) -> float:
    """Return how many million events a second are appended, with a live query or without."""
    unnumbered = [batch.select([TS, *attributes]) for batch in batches]
    with TemporaryDirectory() as folder:
        db = eventide.open(folder)
        stream = db.create_stream("s", attributes, durability="none")
        query = None if text is None else db.subscribe(text)
        found = events_a_second(stream.append, unnumbered)
        if query is not None:
            query.cancel()
    return found


def throughputs(keys: int) -> tuple[str, ...]:
    """Return how fast small batches are pushed, appended, and appended with a live query."""
    batches = [batch.select([TS, SEQ, "k", "v"]) for batch in batches_of(keys)]
    pushed = events_a_second(opened(THREE_ROWS).push, batches)
    appended = [appended_a_second(batches, text) for text in (None, THREE_ROWS)]
    return (f"{keys:,}", *(f"{each:.2f}" for each in (pushed, *appended)))


def pushed_of_texts(keys: int) -> list[float]:
    """Return how fast events are pushed, one by one and in batches."""
    return [
        events_a_second(opened(OF_TEXTS, TEXT_SCHEMA).push, batches_of(keys, size, batches))
        for size, batches in PUSHED.items()
    ]


def figure_of(pushed: Mapping[int, Sequence[float]]) -> Figure:
    """Return the figure that has a target."""
    found = pushed[100][list(PUSHED).index(BATCH)]
    case = f"`A B+ C` of texts pushed in batches of {BATCH:,}, 100 keys, M events/s"
    return Figure(case, "pushed", "", WANTED, found, WANTED.met_by(found))


def run_keys(screen: Console, machine: Machine, keys: int, *, write: bool) -> None:
    """Measure all queries, and report."""
    steps = min(STEPS, keys // 100)
    known = min(KNOWN, keys // 10)
    come, single = [], []
    with collector_off():
        for name, text in (COME_AND_GO | ONE_BY_ONE | KEEPING).items():
            if name in COME_AND_GO:
                found = list(stretches(text, keys, steps))
                come.append(row_of(name, found))
                screen.print(" | ".join(come[-1]))
            fewer = [single_events(text, each)[0] for each in FEWER_KNOWN]
            usual, slow = single_events(text, known)
            times = (*fewer, usual, slow)
            single.append((name, *(f"{each:.2f}" for each in times)))
            screen.print(" | ".join(single[-1]))
        fast = [throughputs(each) for each in KEYS_IN_BATCHES]
        pushed = {each: pushed_of_texts(each) for each in KEYS_OF_TEXTS}
        of_texts = [
            (f"{each:,}", *(f"{found:.3f}" for found in row)) for each, row in pushed.items()
        ]
        for row in (*fast, *of_texts):
            screen.print(" | ".join(row))
    if write:
        figure = figure_of(pushed)
        tables = (come, single, fast, of_texts, [verdict(figure)])
        details = keys_section(tables, (keys, steps, known), machine)
        screen.print(f"written to {write_section(PAGE, details, [figure])}")


def row_of(name: str, found: Sequence[Stretch]) -> tuple[str, ...]:
    """Return a query's row of the table."""
    return (
        name,
        *(f"{each.step_ms:.1f}" for each in found),
        f"{found[-1].slowest_ms:.1f}",
        *(f"{each.state_kb:,.0f}" for each in found),
        *(f"{each.resident_mb:,.0f}" for each in found),
    )


def keys_section(
    tables: tuple[Rows, Rows, Rows, Rows, Rows],
    sizes: tuple[int, int, int],
    machine: Machine,
) -> str:
    """Return the details."""
    come, single, fast, of_texts, verdicts = tables
    keys, steps, known = sizes
    about = (
        f"{keys:,} keys, {KEYS_A_SECOND:,} new ones a second of event time, two events of each, in "
        f"{steps:,} steps; windows and WITHIN are 30 s. A step's milliseconds of the processor at "
        "the beginning (once the windows are full), in the middle and at the end, and the slowest "
        "of the last tenth, in which layers are merged; kilobytes of state; megabytes of the "
        "process, which runs one query after the other."
    )
    once = (
        f"Milliseconds of a step with one event where 1, 1,000 and {known:,} keys are known: the "
        "median, and what one in twenty is slower than. The last queries keep something of every "
        "key."
    )
    many = (
        f"Million events a second of the processor, in batches of {BATCH:,}, for `A B+ C` with a "
        "condition on each row: pushed into a live query; appended to a stream of durability "
        '"none"; appended with that live query.'
    )
    texts = (
        "Million events a second of the processor, one by one and in batches, for `A B+ C` with a "
        "comparison of a text on each row, pushed into a live query."
    )
    times = ("Query", "begin ms", "middle ms", "end ms", "slowest ms")
    held = ("begin KB", "middle KB", "end KB", "begin MB", "middle MB", "end MB")
    lines = [
        *facts(machine),
        "",
        about,
        "",
        *lines_of((*times, *held), come),
        "",
        once,
        "",
        *lines_of(("Query", "1 key", "1,000 keys", f"{known:,} keys", "95 %"), single),
        "",
        many,
        "",
        *lines_of(("Keys", "pushed", "appended", "appended, live"), fast),
        "",
        texts,
        "",
        *lines_of(("Keys", *(f"{size:,}" for size in PUSHED)), of_texts),
        "",
        *lines_of(VERDICT, verdicts),
    ]
    return "\n".join(lines) + "\n"


def lines_of(headings: Sequence[str], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return a table as Markdown, its first column text and the others numbers."""
    rules = [":--", *("--:" for _ in headings[1:])]
    return [as_line(headings), as_line(rules), *map(as_line, rows)]
