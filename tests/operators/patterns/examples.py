"""Row patterns worked by hand: query text, rows, and the expected output.

All are over the stream s(k, x, y, label). The columns of a query are those of its expected rows,
in any order of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eventide.errors import EvaluationError, EventideError
from eventide.schema import Schema

Row = dict[str, Any]

SCHEMA = Schema.of({"k": "string", "x": "int64", "y": "float64", "label": "string"})
CATALOG = {"s": SCHEMA}
SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Example:
    """A query over the stream s; exactly one of `expected` and `error` says what it gives."""

    name: str
    text: str
    rows: tuple[Row, ...]
    expected: tuple[Row, ...] = ()
    error: type[EventideError] | None = None


def events(
    labels: str = "",
    xs: Sequence[int | None] = (),
    at: Sequence[int] = (),
    keys: Sequence[str | None] = (),
    ys: Sequence[float | None] = (),
) -> tuple[Row, ...]:
    """Return one row a second: x counts from 1, the label is a letter, y is null, k is 'p'."""
    count = max(map(len, (labels, xs, at, keys, ys)))
    return tuple(
        {
            "ts": (at[number] if at else number) * SECOND,
            "_seq": number,
            "k": keys[number] if keys else "p",
            "x": xs[number] if xs else number + 1,
            "y": ys[number] if ys else None,
            "label": labels[number] if labels else None,
        }
        for number in range(count)
    )


def match(columns: str, *clauses: str) -> str:
    """Return a query text."""
    return f"SELECT {columns} FROM s MATCH_RECOGNIZE ({' '.join(clauses)})"


def table(columns: str, *rows: tuple[Any, ...]) -> tuple[Row, ...]:
    """Return rows of the columns, as `match` names them."""
    names = columns.split(", ")
    return tuple(dict(zip(names, row, strict=True)) for row in rows)


def letters(names: str) -> str:
    """Return DEFINE with a letter for each variable: A is a row labelled a."""
    return "DEFINE " + ", ".join(f"{name} AS label = '{name.lower()}'" for name in names)


SPAN = "MEASURES FIRST(x) AS f, LAST(x) AS l, COUNT(*) AS n"
"""From which row to which, of how many: x counts the rows."""
SPELT = "MEASURES CLASSIFIER() AS c ALL ROWS PER MATCH"


def spans(
    name: str, clauses: str, rows: tuple[Row, ...], *expected: tuple[int | None, int | None, int]
) -> Example:
    """Return an example that asks where its matches begin, end, and how many rows they have."""
    return Example(name, match("f, l, n", SPAN, clauses), rows, table("f, l, n", *expected))


def spelt(name: str, clauses: str, rows: tuple[Row, ...], variables: str) -> Example:
    """Return an example that asks for the variables of all rows it matches: `1A 2B`."""
    expected = [(int(each[:-1]), each[-1]) for each in variables.split()]
    return Example(name, match("x, c", SPELT, clauses), rows, table("x, c", *expected))


def failing(name: str, clauses: str, rows: tuple[Row, ...]) -> Example:
    """Return an example that is an error at run time."""
    return Example(name, match("f, l, n", SPAN, clauses), rows, error=EvaluationError)


TREND = "DEFINE DOWN AS x < PREV(x), UP AS x > PREV(x)"

TICKERS = (
    Example(
        "v shape",
        match(
            "top, bottom, back, n",
            "ORDER BY ts",
            "MEASURES A.x AS top, LAST(DOWN.x) AS bottom, LAST(UP.x) AS back, COUNT(*) AS n",
            f"ONE ROW PER MATCH PATTERN (A DOWN+ UP+) {TREND}",
        ),
        events(xs=[10, 8, 7, 9, 12, 11]),
        table("top, bottom, back, n", (10, 7, 12, 5)),
    ),
    Example(
        "v shapes share their peak",
        match(
            "top, bottom, back",
            "MEASURES A.x AS top, LAST(DOWN.x) AS bottom, LAST(UP.x) AS back",
            f"AFTER MATCH SKIP TO LAST UP PATTERN (A DOWN+ UP+) {TREND}",
        ),
        events(xs=[10, 8, 9, 6, 7, 7]),
        table("top, bottom, back", (10, 8, 9), (9, 6, 7)),
    ),
    Example(
        "v shapes of each key, null being one",
        match(
            "k, bottom",
            "PARTITION BY k ORDER BY ts MEASURES LAST(DOWN.x) AS bottom",
            f"PATTERN (A DOWN+ UP+) {TREND}",
        ),
        events(
            xs=[5, 9, 7, 3, 8, 6, 4, 1, 9],
            keys=["p", "q", None, "p", "q", None, "p", "q", None],
        ),
        table("k, bottom", ("p", 3), (None, 6)),
    ),
    Example(
        "w shape",
        match(
            "first_down, low, first_up, high, downs, ups",
            "MEASURES FIRST(DOWN.x) AS first_down, LAST(DOWN.x) AS low,",
            "FIRST(UP.x) AS first_up, LAST(UP.x) AS high,",
            "COUNT(DOWN.*) AS downs, COUNT(UP.*) AS ups",
            f"PATTERN (A DOWN+ UP+ DOWN+ UP+) {TREND}",
        ),
        events(xs=[10, 8, 9, 7, 9, 11, 5]),
        table("first_down, low, first_up, high, downs, ups", (8, 7, 9, 11, 2, 3)),
    ),
    Example(
        "sessions",
        match(
            "session, f, n",
            "MEASURES MATCH_NUMBER() AS session, FIRST(x) AS f, COUNT(*) AS n",
            "PATTERN (E MORE*) DEFINE MORE AS ts - PREV(ts) <= INTERVAL '10' SECOND",
        ),
        events(at=[0, 5, 15, 30, 35, 60]),
        table("session, f, n", (1, 1, 3), (2, 4, 2), (3, 6, 1)),
    ),
)

PREFERENCE = (
    spelt("the first alternative that fits", "PATTERN (A | B)", events("aa"), "1A 2A"),
    spelt("the other way round", "PATTERN (B | A)", events("aa"), "1B 2B"),
    spans(
        "a short alternative first", f"PATTERN (A | A B) {letters('AB')}", events("ab"), (1, 1, 1)
    ),
    spans(
        "a long alternative first", f"PATTERN (A B | A) {letters('AB')}", events("ab"), (1, 2, 2)
    ),
    spelt(
        "what follows decides between alternatives",
        "PATTERN (A C | D B) DEFINE A AS label = 'a', B AS label = 'b', C AS label = 'c'",
        events("ab"),
        "1D 2B",
    ),
    spelt(
        "alternation repeated", f"PATTERN ((A | B)+) {letters('AB')}", events("abcb"), "1A 2B 4B"
    ),
    spelt("any order", f"PATTERN (PERMUTE(A, B, C)) {letters('ABC')}", events("cabca"), "1C 2A 3B"),
    spelt("the listed order is preferred", "PATTERN (PERMUTE(A, B))", events("xx"), "1A 2B"),
    spelt(
        "orders as in a dictionary",
        "PATTERN (PERMUTE(A, B, C)) DEFINE A AS NEXT(label) IS NOT NULL AND label <> 'c'",
        events("cxx"),
        "1B 2A 3C",
    ),
    spelt(
        "greedy gives rows back",
        "PATTERN (A+ D B) DEFINE A AS label = 'a', D AS label = 'a', B AS label = 'b'",
        events("aaab"),
        "1A 2A 3D 4B",
    ),
    spelt(
        "reluctant takes only what it must",
        "PATTERN (A+? D+ B) DEFINE A AS label = 'a', D AS label = 'a', B AS label = 'b'",
        events("aaab"),
        "1A 2D 3D 4B",
    ),
    spans(
        "the same variable twice", f"PATTERN (A+ A B) {letters('AB')}", events("aaab"), (1, 4, 4)
    ),
    spans("greedy bounds", "PATTERN (A{2,3})", events("aaaaa"), (1, 3, 3), (4, 5, 2)),
    spans("reluctant bounds", "PATTERN (A{2,3}?)", events("aaaaa"), (1, 2, 2), (3, 4, 2)),
    spans("optional", f"PATTERN (A B{{0,1}} B? A) {letters('AB')}", events("abba"), (1, 4, 4)),
    spans("a start", "PATTERN (^ A)", events("aa"), (1, 1, 1)),
    spans("an end", "PATTERN (A $)", events("aaa"), (3, 3, 1)),
    spans("all or nothing", f"PATTERN (^ A+ $) {letters('A')}", events("aaa"), (1, 3, 3)),
    spans("nothing", f"PATTERN (^ A+ $) {letters('A')}", events("aab")),
)

CONDITIONS = (
    spans(
        "a running sum",
        "PATTERN (A+) DEFINE A AS SUM(A.x) <= 5",
        events(xs=[2, 2, 2, 2, 6]),
        (2, 2, 2),
        (2, 2, 2),
    ),
    spans(
        "a row before the match and one behind it",
        "PATTERN (A) DEFINE A AS NEXT(x) > x AND PREV(x) IS NOT NULL",
        events(xs=[1, 3, 2, 4]),
        (2, 2, 1),
    ),
    spelt(
        "the variable of the row before",
        "PATTERN ((A | B)+) DEFINE A AS label = 'a', B AS PREV(CLASSIFIER()) = 'A'",
        events("axaxx"),
        "1A 2B 3A 4B",
    ),
    spans(
        "the number of the match",
        "PATTERN (A) DEFINE A AS MATCH_NUMBER() <= 2",
        events("aaaa"),
        (1, 1, 1),
        (2, 2, 1),
    ),
    spans(
        "another variable's row",
        "PATTERN (A B+) DEFINE B AS x > A.x AND x > 2 * FIRST(A.x) - 2",
        events(xs=[3, 5, 6, 3, 4]),
        (3, 6, 3),
    ),
    spans(
        "null is not true",
        "PATTERN (A+) DEFINE A AS x > 1",
        events(xs=[2, None, 3]),
        (2, 2, 1),
        (3, 3, 1),
    ),
    spans(
        "a variable that has no row yet is null",
        "PATTERN (A B) DEFINE A AS B.x IS NULL, B AS COUNT(B.*) = 1 AND B.x = x",
        events("aaa"),
        (1, 2, 2),
    ),
    spans(
        "a subset while matching",
        "PATTERN (A B C) SUBSET U = (A, B) DEFINE C AS x > LAST(U.x, 1) AND CLASSIFIER(U) = 'B'",
        events(xs=[3, 1, 2, 4]),
        (1, 4, 3),
    ),
)

MEASURES = (
    Example(
        "running and final",
        match(
            "x, r, f, l, whole, c",
            "MEASURES RUNNING SUM(x) AS r, FINAL SUM(x) AS f, FINAL LAST(x) AS l,",
            "FINAL COUNT(*) - COUNT(*) AS whole, CLASSIFIER() AS c",
            "ALL ROWS PER MATCH PATTERN (A B*)",
        ),
        events(xs=[1, 2, 3]),
        table(
            "x, r, f, l, whole, c", (1, 1, 6, 3, 2, "A"), (2, 3, 6, 3, 1, "B"), (3, 6, 6, 3, 0, "B")
        ),
    ),
    Example(
        "a variable that comes later is null while running",
        match(
            "x, b, fb",
            "MEASURES B.x AS b, FINAL LAST(B.x) AS fb ALL ROWS PER MATCH",
            "PATTERN (A B C)",
        ),
        events(xs=[1, 2, 3]),
        table("x, b, fb", (1, None, 2), (2, 2, 2), (3, 2, 2)),
    ),
    Example(
        "rows that NEXT leads to are labelled by the whole match",
        match(
            "x, c, n, p",
            "MEASURES CLASSIFIER() AS c, NEXT(CLASSIFIER()) AS n, PREV(CLASSIFIER()) AS p",
            "ALL ROWS PER MATCH PATTERN (A B+ C+) DEFINE B AS x < PREV(x), C AS x > PREV(x)",
        ),
        events(xs=[90, 80, 70, 81]),
        table(
            "x, c, n, p",
            (90, "A", "B", None),
            (80, "B", "B", "A"),
            (70, "B", "C", "B"),
            (81, "C", None, "B"),
        ),
    ),
    Example(
        "a subset's rows, and where NEXT leads from them",
        match(
            "x, n, f, p",
            "MEASURES NEXT(RUNNING LAST(CLASSIFIER(U), 2), 3) AS n,",
            "NEXT(FIRST(CLASSIFIER(C)), 1) AS f, PREV(FINAL LAST(CLASSIFIER(U)), 2) AS p",
            "ALL ROWS PER MATCH PATTERN (A B+ C+) SUBSET U = (A, B)",
            "DEFINE B AS x < PREV(x), C AS x > PREV(x)",
        ),
        events(xs=[90, 80, 70, 60, 81, 82]),
        table(
            "x, n, f, p",
            (90, None, None, "B"),
            (80, None, None, "B"),
            (70, "B", None, "B"),
            (60, "C", None, "B"),
            (81, "C", "C", "B"),
            (82, "C", "C", "B"),
        ),
    ),
    Example(
        "rows passed over, left out and behind the match",
        match(
            "x, c, n, m",
            "MEASURES CLASSIFIER() AS c, NEXT(CLASSIFIER()) AS n,",
            "NEXT(COALESCE(CLASSIFIER(), '-') || label) AS m",
            "ALL ROWS PER MATCH STRATEGY skip_till_next PATTERN (A {- B -} C)",
            letters("ABC"),
        ),
        events("axbcy"),
        table("x, c, n, m", (1, "A", None, "-x"), (4, "C", None, "-y")),
    ),
    Example(
        "one row sees the whole match",
        match("r, f", "MEASURES RUNNING SUM(x) AS r, FINAL SUM(x) AS f PATTERN (A B*)"),
        events(xs=[1, 2, 3]),
        table("r, f", (6, 6)),
    ),
    Example(
        "offsets",
        match(
            "f1, l1, l9, f3",
            "MEASURES FIRST(A.x, 1) AS f1, LAST(A.x, 1) AS l1, LAST(A.x, 9) AS l9,",
            f"FIRST(x, 3) AS f3 PATTERN ((A B?)+) {letters('AB')}",
        ),
        events("aabaa", xs=[1, 2, 3, 4, 5]),
        table("f1, l1, l9, f3", (2, 4, None, 4)),
    ),
    Example(
        "rows around a logical one",
        match(
            "back, beyond, outside",
            "MEASURES PREV(LAST(A.x, 1), 2) AS back, NEXT(LAST(A.x)) AS beyond,",
            f"PREV(FIRST(A.x), 3) AS outside PATTERN (A A) {letters('A')}",
        ),
        events("bbaac", xs=[10, 20, 30, 40, 50]),
        table("back, beyond, outside", (10, 50, None)),
    ),
    Example(
        "subset aggregates",
        match(
            "total, mean, latest, n, c",
            "MEASURES SUM(U.x) AS total, AVG(U.x) AS mean, LAST(U.x) AS latest,",
            "COUNT(U.*) AS n, CLASSIFIER(U) AS c",
            "PATTERN (A B C) SUBSET U = (A, B)",
        ),
        events(xs=[1, 2, 3]),
        table("total, mean, latest, n, c", (3, 1.5, 2, 2, "B")),
    ),
    Example(
        "aggregates leave nulls out",
        match(
            "n, ny, total, mean, least, most, spread, kinds, rare",
            "MEASURES COUNT(*) AS n, COUNT(y) AS ny, SUM(y) AS total, AVG(y) AS mean,",
            "MIN(y) AS least, MAX(y) AS most, STDDEV(y) AS spread,",
            "COUNT(DISTINCT label) AS kinds, SUM(x) FILTER (WHERE label = 'b') AS rare",
            "PATTERN (A+)",
        ),
        events("aabb", ys=[1.0, None, 2.0, 3.0]),
        table(
            "n, ny, total, mean, least, most, spread, kinds, rare",
            (4, 3, 6.0, 2.0, 1.0, 3.0, 1.0, 2, 7),
        ),
    ),
    Example(
        "excluded rows are matched and counted, but not shown",
        match(
            "x, n",
            "MEASURES COUNT(*) AS n ALL ROWS PER MATCH",
            f"PATTERN (A {{- B+ -}} C) {letters('ABC')}",
        ),
        events("abbc"),
        table("x, n", (1, 1), (4, 4)),
    ),
)

SKIPS = (
    spans("past the last row", "PATTERN (A A)", events("aaaa"), (1, 2, 2), (3, 4, 2)),
    spans(
        "to the next row",
        "AFTER MATCH SKIP TO NEXT ROW PATTERN (A A)",
        events("aaaa"),
        (1, 2, 2),
        (2, 3, 2),
        (3, 4, 2),
    ),
    spans(
        "to the first of a variable",
        "AFTER MATCH SKIP TO FIRST B PATTERN (A B+) DEFINE B AS x > PREV(x)",
        events(xs=[1, 2, 3, 0]),
        (1, 3, 3),
        (2, 3, 2),
    ),
    spans(
        "to the last of a variable",
        "AFTER MATCH SKIP TO LAST B PATTERN (A B+) DEFINE B AS x > PREV(x)",
        events(xs=[1, 2, 3, 0, 4]),
        (1, 3, 3),
        (0, 4, 2),
    ),
    spans(
        "to a variable means to its last row",
        "AFTER MATCH SKIP TO B PATTERN (A B B)",
        events("aaaaa"),
        (1, 3, 3),
        (3, 5, 3),
    ),
    failing(
        "to the first row again",
        "AFTER MATCH SKIP TO FIRST A PATTERN ((A | B) C)",
        events("ab"),
    ),
    failing(
        "to a variable without a row",
        f"AFTER MATCH SKIP TO LAST B PATTERN (A B?) {letters('AB')}",
        events("a"),
    ),
    failing(
        "to a variable of an empty match",
        f"AFTER MATCH SKIP TO A PATTERN (A*) {letters('A')}",
        events("b"),
    ),
)

NUMBERED = "MEASURES MATCH_NUMBER() AS m, COUNT(*) AS n, CLASSIFIER() AS c"

EMPTY = (
    Example(
        "empty matches in one row each",
        match("m, n, c", NUMBERED, f"PATTERN (A*) {letters('A')}"),
        events("baab"),
        table("m, n, c", (1, 0, None), (2, 2, "A"), (3, 0, None)),
    ),
    Example(
        "empty matches shown",
        match("x, m, n, c", NUMBERED, f"ALL ROWS PER MATCH PATTERN (A*) {letters('A')}"),
        events("baab"),
        table("x, m, n, c", (1, 1, 0, None), (2, 2, 1, "A"), (3, 2, 2, "A"), (4, 3, 0, None)),
    ),
    Example(
        "empty matches omitted, but counted",
        match(
            "x, m, n, c",
            NUMBERED,
            f"ALL ROWS PER MATCH OMIT EMPTY MATCHES PATTERN (A*) {letters('A')}",
        ),
        events("baab"),
        table("x, m, n, c", (2, 2, 1, "A"), (3, 2, 2, "A")),
    ),
    Example(
        "empty matches are not unmatched rows",
        match(
            "x, m, n, c",
            NUMBERED,
            f"ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A*) {letters('A')}",
        ),
        events("baab"),
        table("x, m, n, c", (1, 1, 0, None), (2, 2, 1, "A"), (3, 2, 2, "A"), (4, 3, 0, None)),
    ),
    Example(
        "unmatched rows have no measures",
        match(
            "x, m, n, c",
            NUMBERED,
            f"ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A A) {letters('A')}",
        ),
        events("baab"),
        table(
            "x, m, n, c",
            (1, None, None, None),
            (2, 1, 1, "A"),
            (3, 1, 2, "A"),
            (4, None, None, None),
        ),
    ),
    Example(
        "reluctant star",
        match("m, n, c", NUMBERED, "PATTERN (A*?)"),
        events("aa"),
        table("m, n, c", (1, 0, None), (2, 0, None)),
    ),
    Example(
        "the empty pattern",
        match("x, m, n, c", NUMBERED, "ALL ROWS PER MATCH SHOW EMPTY MATCHES PATTERN (())"),
        events("aa"),
        table("x, m, n, c", (1, 1, 0, None), (2, 2, 0, None)),
    ),
    Example(
        "an empty alternative first",
        match("m, n, c", NUMBERED, "PATTERN (() | A)"),
        events("a"),
        table("m, n, c", (1, 0, None)),
    ),
    spans(
        "any of two, any number of times",
        f"PATTERN ((A | B)*) {letters('AB')}",
        events("abcab"),
        (1, 2, 2),
        (None, None, 0),
        (4, 5, 2),
    ),
)

GOLDEN = events("abacbc")
GOLDEN_CLAUSES = f"PATTERN (A B* C) {letters('ABC')}"
NEXT_ROW = "AFTER MATCH SKIP TO NEXT ROW"
FIVE_SECONDS = "WITHIN INTERVAL '5' SECOND"

STRATEGIES = (
    spans("contiguous", GOLDEN_CLAUSES, GOLDEN, (3, 4, 2)),
    spans(
        "skip till next",
        f"{NEXT_ROW} STRATEGY skip_till_next {GOLDEN_CLAUSES}",
        GOLDEN,
        (1, 4, 3),
        (3, 4, 2),
    ),
    spans(
        "skip till next, past the last row",
        f"STRATEGY skip_till_next {GOLDEN_CLAUSES}",
        GOLDEN,
        (1, 4, 3),
    ),
    spans(
        "skip till any",
        f"{NEXT_ROW} STRATEGY skip_till_any {GOLDEN_CLAUSES}",
        GOLDEN,
        (1, 4, 2),
        (1, 4, 3),
        (1, 6, 2),
        (1, 6, 3),
        (1, 6, 3),
        (1, 6, 4),
        (3, 4, 2),
        (3, 6, 2),
        (3, 6, 3),
    ),
    spans(
        "skipped rows are no part of the match",
        f"STRATEGY skip_till_next PATTERN (A C) {letters('AC')}",
        events("abbc"),
        (1, 4, 2),
    ),
    spans(
        "nothing of the kind between",
        f"{NEXT_ROW} STRATEGY skip_till_next PATTERN (A NOT B C) {letters('ABC')}",
        events("axcabc"),
        (1, 3, 2),
    ),
    spans(
        "nothing of the kind between, every way",
        f"{NEXT_ROW} STRATEGY skip_till_any PATTERN (A NOT B C) {letters('ABC')}",
        events("acbc"),
        (1, 2, 2),
    ),
    spans(
        "a closed way leaves others open",
        f"STRATEGY skip_till_next PATTERN (A+ NOT B C) {letters('ABC')}",
        events("abac"),
        (1, 4, 3),
    ),
    spans(
        "nothing of the kind until the deadline",
        f"STRATEGY skip_till_next PATTERN (A NOT B) {FIVE_SECONDS} {letters('AB')}",
        events("abab", at=[0, 5, 10, 16]),
        (3, 3, 1),
    ),
    spans(
        "one more is preferred to being done",
        f"STRATEGY skip_till_next PATTERN (A+ NOT B) {FIVE_SECONDS} {letters('AB')}",
        events("axaba", at=[0, 1, 2, 7, 8]),
        (1, 3, 2),
        (5, 5, 1),
    ),
    spans(
        "done at once",
        "STRATEGY skip_till_next PATTERN (A B*?) DEFINE A AS label = 'a'",
        events("axax"),
        (1, 1, 1),
        (3, 3, 1),
    ),
)

LATER = "PATTERN (A NOT B C) DEFINE A AS label = 'a', B AS label = 'b' AND x < C.x,"
PAIRS = "MEASURES A.x AS a, FIRST(C.x) AS c, COUNT(*) AS n"

LATE = (
    Example(
        "a NOT that reads what comes later, any row",
        match(
            "a, c, n",
            PAIRS,
            f"STRATEGY skip_till_any {LATER} C AS label = 'c'",
        ),
        events("abccbc", xs=[1, 5, 4, 6, 9, 8]),
        table("a, c, n", (1, 4, 2)),
    ),
    Example(
        "a NOT that reads what comes later, the next row",
        match(
            "a, c, n",
            PAIRS,
            f"AFTER MATCH SKIP TO NEXT ROW STRATEGY skip_till_next {LATER} C AS label = 'c'",
        ),
        events("abcaxbc", xs=[1, 5, 4, 2, 2, 3, 8]),
        table("a, c, n", (1, 4, 2)),
    ),
    Example(
        "a NOT that reads the end of a repetition and its beginning",
        match(
            "a, c, n",
            PAIRS,
            "STRATEGY skip_till_any PATTERN (A NOT B C+)",
            "DEFINE A AS label = 'a', B AS label = 'b' AND x < C.x AND x > FIRST(C.x),",
            "C AS label = 'c'",
        ),
        events("abccc", xs=[1, 5, 4, 7, 2]),
        # Of 4 7, 5 lies between; of 4 2 and 4 7 2 it does not, nor of any that begins with 7.
        table("a, c, n", (1, 4, 2), (1, 7, 2), (1, 2, 2), (1, 4, 3), (1, 4, 4), (1, 7, 3)),
    ),
    Example(
        "a NOT between what comes before and what comes later",
        match(
            "a, c, n",
            "MEASURES FIRST(A.x) AS a, FIRST(C.x) AS c, COUNT(*) AS n",
            "STRATEGY skip_till_any PATTERN (A NOT B C A)",
            "DEFINE A AS label = 'a', B AS label = 'b' AND x > A.x AND x < C.x + COUNT(*),",
            "C AS label = 'c'",
        ),
        events("abcaba", xs=[3, 5, 4, 9, 1, 0]),
        # A.x is 3 and COUNT(*) 2 where the b is, whatever follows.
        table("a, c, n"),
    ),
    Example(
        "a way without the NOT is another way",
        match(
            "a, c, n",
            PAIRS,
            "STRATEGY skip_till_any PATTERN (A (NOT B C | C D))",
            "DEFINE A AS label = 'a', B AS label = 'b' AND x < C.x, C AS label = 'c',",
            "D AS label = 'd'",
        ),
        events("abcd", xs=[1, 2, 3, 4]),
        table("a, c, n", (1, 3, 3)),
    ),
)

TIMES = (
    spans(
        "within two seconds",
        "PATTERN (A+) WITHIN INTERVAL '2' SECOND",
        events("aaaaa"),
        (1, 3, 3),
        (4, 5, 2),
    ),
    spans(
        "a deadline is not an end",
        "PATTERN (A+ $) WITHIN INTERVAL '1' SECOND",
        events("aaaa"),
        (3, 4, 2),
    ),
    Example(
        "a row that waits in vain",
        match(
            "m, a, b, timed_out",
            "MEASURES MATCH_NUMBER() AS m, A.x AS a, B.x AS b TIMEOUT ROWS",
            f"STRATEGY skip_till_next PATTERN (A B) {FIVE_SECONDS} {letters('AB')}",
        ),
        events("abab", at=[0, 3, 10, 20]),
        table("m, a, b, timed_out", (1, 1, 2, False), (None, 3, None, True)),
    ),
    Example(
        "rows that wait in vain",
        match(
            "x, n, timed_out",
            "MEASURES COUNT(*) AS n ALL ROWS PER MATCH TIMEOUT ROWS",
            f"PATTERN (A B+ C) {FIVE_SECONDS} {letters('ABC')}",
        ),
        events("abbax", at=[0, 1, 9, 10, 11]),
        table("x, n, timed_out", (1, 1, True), (2, 2, True)),
    ),
    Example(
        "the end of the stream is every deadline",
        match(
            "f, n, timed_out",
            "MEASURES FIRST(x) AS f, COUNT(*) AS n TIMEOUT ROWS",
            f"PATTERN (A+ B) {FIVE_SECONDS} {letters('AB')}",
        ),
        events("aa"),
        table("f, n, timed_out", (1, 2, True), (2, 1, True)),
    ),
)

EXAMPLES: tuple[Example, ...] = (
    *TICKERS,
    *PREFERENCE,
    *CONDITIONS,
    *MEASURES,
    *SKIPS,
    *EMPTY,
    *STRATEGIES,
    *LATE,
    *TIMES,
)
