"""Random MATCH_RECOGNIZE queries over s(k, x, y, label), and random rows for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

from hypothesis import reject
from hypothesis import strategies as st

from eventide.errors import BindError, UnsupportedError
from eventide.lang.sql import plan_sql
from eventide.operators.patterns.conditions import compile_conditions
from eventide.plan.patterns.automaton import automaton_of
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
    Strategy,
    Variable,
    render_pattern,
    variables_of,
    walk_pattern,
)
from eventide.schema import Schema
from tests.naive.patterns.rows import match_node, may_be_empty

Row = dict[str, Any]

SCHEMA = Schema.of({"k": "string", "x": "int64", "y": "float64", "label": "string"})
CATALOG = {"s": SCHEMA}
SECOND = 1_000_000
NAMES = ("A", "B", "C", "D")

Conditions = Literal["row", "match", "mixed"]
"""What DEFINE looks at: rows alone (and those around them), the match so far, or both."""


@dataclass(frozen=True, slots=True)
class Kinds:
    """Which queries to draw. Everything goes unless it is left out here."""

    conditions: Conditions = "mixed"
    strategies: tuple[Strategy, ...] = ("contiguous", "skip_till_next", "skip_till_any")
    most_variables: int = 4
    timeouts: bool = True
    other_orders: bool = False
    """Whether ORDER BY may name other columns than ts."""


ANYTHING = Kinds()


# Rows


FIELDS = st.fixed_dictionaries(
    {
        "ts": st.sampled_from([1, 0, 1, 1, 2, 4]),
        "k": st.sampled_from(["p", "p", "q", None]),
        "x": st.sampled_from([0, 1, 2, 3, 4, 2, 3, 4, None]),
        "y": st.sampled_from([-0.5, 0.0, 0.25, 0.5, 0.75, 1.5, 2.0, None]),
        "label": st.sampled_from(["a", "b", "a", "b", "c", "d", None]),
    }
)


def rows(most: int = 12) -> st.SearchStrategy[list[Row]]:
    """Draw rows in order of (ts, _seq): small values, ties and gaps in time."""
    # Now and then none at all; but few rows seldom match.
    few, more = st.lists(FIELDS, max_size=4), st.lists(FIELDS, min_size=4, max_size=most)
    return st.one_of(more, more, few).map(in_time)


def in_time(found: list[Row]) -> list[Row]:
    """Return rows with their times, given how many seconds each is behind the one before."""
    times = accumulate(row["ts"] for row in found)
    return [
        {**row, "ts": ts * SECOND, "_seq": seq}
        for seq, (row, ts) in enumerate(zip(found, times, strict=True))
    ]


# Patterns

QUANTIFIERS: Sequence[tuple[int, int | None]] = (
    (1, None),
    (0, None),
    (0, 1),
    (2, None),
    (1, 2),
    (2, 2),
    (0, 2),
    (1, 3),
)
SHAPES = ("variable", "variable", "variable", "group", "alternate", "permute")


@st.composite
def patterns(
    draw: st.DrawFn,
    names: Sequence[str] = NAMES,
    *,
    anchors: bool = True,
    absences: bool = False,
    exclusions: bool = True,
) -> Pattern:
    """Draw pattern trees. `NOT B` stands anywhere but first, if there are absences."""
    extras = ["empty", *["start", "end"] * anchors, *["exclude"] * exclusions]
    shapes = (*SHAPES, *SHAPES, *extras, *["absent"] * 2 * absences)

    def sequence(depth: int) -> Pattern:
        parts = [element(depth) for _ in range(draw(st.sampled_from([2, 1, 2, 3])))]
        return parts[0] if len(parts) == 1 else Concat(tuple(parts))

    def several(depth: int) -> tuple[Pattern, ...]:
        return tuple(sequence(depth) for _ in range(draw(st.sampled_from([2, 2, 3]))))

    def element(depth: int) -> Pattern:
        match draw(st.sampled_from(shapes)) if depth else "variable":
            case "group":
                part = sequence(depth - 1)
            case "alternate":
                part = Alternate(several(depth - 1))
            case "permute":
                part = Permute(several(depth - 1))
            case "exclude":
                part = Exclude(sequence(depth - 1))
            case "absent":
                return Absent(draw(st.sampled_from(names)))
            case "start":
                return PartitionStart()
            case "end":
                return PartitionEnd()
            case "empty":
                return Concat(())
            case _:
                part = Variable(draw(st.sampled_from(names)))
        if isinstance(part, Absent) or draw(st.booleans()):
            return part
        least, most = draw(st.sampled_from(QUANTIFIERS))
        return Repeat(part, least, most, greedy=draw(st.booleans()))

    tree = sequence(2)
    return Concat((Variable(names[0]), tree)) if leads(tree) else tree


def has(pattern: Pattern, kind: type[Pattern]) -> bool:
    return any(isinstance(part, kind) for part in walk_pattern(pattern))


def leads(pattern: Pattern) -> bool:
    """Whether a NOT may come before the first row."""
    return edge_absent(pattern, forward=True)


def trails(pattern: Pattern) -> bool:
    """Whether a NOT may come behind the last row."""
    return edge_absent(pattern, forward=False)


def edge_absent(pattern: Pattern, *, forward: bool) -> bool:
    match pattern:
        case Absent():
            return True
        case Concat(parts=parts):
            for part in parts if forward else reversed(parts):
                if edge_absent(part, forward=forward):
                    return True
                if not may_be_empty(part):
                    return False
            return False
        case Alternate(options=parts) | Permute(parts=parts):
            return any(edge_absent(part, forward=forward) for part in parts)
        case Repeat(part=part) | Exclude(part=part):
            return edge_absent(part, forward=forward)
    return False


# Conditions and measures

ROW_CONDITIONS = (
    "x > 2",
    "x >= 1",
    "x < 4",
    "y < 2.0",
    "label IN ('a', 'b', 'c')",
    "x <= 2",
    "x <> 1",
    "x IN (0, 2, 3)",
    "label = 'a'",
    "label = 'b'",
    "label <> 'c'",
    "label IS NULL OR label IN ('a', 'd')",
    "y IS NULL",
    "y >= 0.25",
    "x + y > 1.5",
    "k = 'p'",
    "x > PREV(x)",
    "x < PREV(x)",
    "x <> PREV(x, 2)",
    "NEXT(x, 2) < x",
    "NEXT(label) = 'b'",
    "PREV(x) IS NULL",
    "x >= PREV(x) - 1 AND y IS NOT NULL",
    "ts - PREV(ts) <= INTERVAL '1' SECOND",
    "COALESCE(x, 2) > 1",
)

NAVIGATIONS = (
    "{v}.x",
    "x",
    "FIRST({v}.x)",
    "FIRST(x)",
    "FIRST({v}.x, 1)",
    "LAST({v}.x, 1)",
    "LAST(x, 2)",
    "PREV({v}.x)",
    "NEXT({v}.x)",
    "PREV(FIRST({v}.x))",
    "PREV(LAST({v}.x, 1), 2)",
    "NEXT(FIRST({v}.x, 1), 2)",
    "FIRST({v}.x + {v}.y)",
)

AGGREGATES = (
    "SUM({v}.x)",
    "SUM(x)",
    "COUNT(*)",
    "COUNT({v}.*)",
    "COUNT({v}.y)",
    "COUNT(DISTINCT {v}.x)",
    "COUNT(DISTINCT label)",
    "SUM(DISTINCT x)",
    "MIN({v}.x)",
    "MAX(x)",
    "AVG({v}.x)",
    "AVG(y)",
    "SUM({v}.y)",
    "MAX({v}.y)",
    "SUM(x + 1)",
    "SUM({v}.x) FILTER (WHERE {v}.label = 'a')",
    "COUNT(*) FILTER (WHERE x > 1)",
    "STDDEV(x)",
)

NUMBERED = (
    "SUM({v}.x + MATCH_NUMBER())",
    "MAX(MATCH_NUMBER())",
    "COUNT(DISTINCT {v}.x - MATCH_NUMBER())",
    "COUNT(*) FILTER (WHERE x > MATCH_NUMBER())",
)

CLASSIFIERS = (
    "CLASSIFIER()",
    "CLASSIFIER({v})",
    "PREV(CLASSIFIER())",
    "NEXT(CLASSIFIER({v}))",
    "FIRST(CLASSIFIER())",
    "LAST(CLASSIFIER(), 1)",
    "PREV(LAST(CLASSIFIER({v}), 1))",
    "NEXT(CLASSIFIER())",
    "NEXT(FIRST(CLASSIFIER({v})), 2)",
    "NEXT(RUNNING LAST(CLASSIFIER({v}), 1), 2)",
)

FINAL_ROWS = (
    "PREV(FINAL LAST(CLASSIFIER({v})))",
    "NEXT(FINAL FIRST(CLASSIFIER({v}), 1))",
    "PREV(FINAL LAST({v}.x, 1), 2)",
    "NEXT(COALESCE(CLASSIFIER({v}), '-') || {v}.label)",
)
"""Only measures see rows that come later."""


def value(
    templates: Sequence[str], variables: Sequence[str], prefixes: Sequence[str] = ("",)
) -> st.SearchStrategy[str]:
    """Draw one of the texts, with a variable or a subset put in where it wants one."""
    return st.builds(
        lambda prefix, template, name: prefix + template.format(v=name),
        st.sampled_from(prefixes),
        st.sampled_from(templates),
        st.sampled_from(variables),
    )


def match_conditions(variables: Sequence[str], *, numbered: bool) -> st.SearchStrategy[str]:
    """Draw conditions on the match so far."""
    comparison = st.sampled_from(["<", "<=", ">", ">=", "=", "<>"])
    at_row = value(NAVIGATIONS, variables)
    number = st.integers(0, 5).map(str)
    choices = [
        st.builds("x {} {}".format, comparison, at_row),
        st.builds("x {} {}".format, comparison, at_row),
        st.builds("{} {} {}".format, at_row, comparison, at_row),
        st.builds("{} {}".format, at_row, st.sampled_from(["IS NULL", "IS NOT NULL"])),
        # No average and no deviation of small values is that near to 1.43.
        st.builds("{} <= {}".format, value(AGGREGATES, variables), st.sampled_from(["1.43", "4"])),
        st.builds("{} {} {}".format, value(AGGREGATES[:9], variables), comparison, number),
        st.builds(
            "COALESCE({}, 'A') {} '{}'".format,
            value(CLASSIFIERS, variables),
            st.sampled_from(["=", "<>"]),
            st.sampled_from(NAMES),
        ),
    ]
    if numbered:
        choices.append(st.sampled_from(["MATCH_NUMBER() < 3", "MATCH_NUMBER() <> COUNT(*)"]))
    return st.one_of(choices)


def conditions(
    kind: Conditions, variables: Sequence[str], *, numbered: bool
) -> st.SearchStrategy[str]:
    """Draw the condition of a variable."""
    of_row = st.sampled_from(ROW_CONDITIONS)
    of_match = match_conditions(variables, numbered=numbered)
    if kind == "row":
        return of_row | st.builds("({}) AND ({})".format, of_row, of_row)
    if kind == "match":
        return of_match
    together = st.sampled_from(["({}) AND ({})", "({}) OR ({})", "({}) AND NOT ({})"])
    mixed = st.builds(lambda form, *each: form.format(*each), together, of_row, of_match)
    return st.one_of(of_row, of_match, mixed)


def measures(variables: Sequence[str], *, numbered: bool) -> st.SearchStrategy[str]:
    """Draw the expression of a measure."""
    times = ("", "", "RUNNING ", "FINAL ")
    firsts = [each for each in NAVIGATIONS if each.startswith(("FIRST", "LAST"))]
    choices = [
        value(NAVIGATIONS, variables),
        value(firsts, variables, times),
        value(AGGREGATES, variables, times),
        value(CLASSIFIERS, variables),
        value(FINAL_ROWS, variables),
        st.builds("{} - {}".format, value(firsts, variables, times), value(NAVIGATIONS, variables)),
        st.builds("COALESCE({}, -1)".format, value(AGGREGATES[:4], variables, times)),
    ]
    counted = value(NUMBERED, variables, times)
    return st.one_of([*choices, st.just("MATCH_NUMBER()"), counted] if numbered else choices)


# Queries


@st.composite
def queries(draw: st.DrawFn, kinds: Kinds = ANYTHING) -> str:
    """Draw a query text that passes all checks made before a query runs."""
    strategy = draw(st.sampled_from(kinds.strategies))
    contiguous = strategy == "contiguous"
    # The number of a match depends on the order of matches, which skip_till_any leaves open.
    numbered = strategy != "skip_till_any"
    names = NAMES[: draw(st.integers(1, kinds.most_variables))]
    pattern = draw(patterns(names, anchors=contiguous, absences=not contiguous))
    try:
        automaton_of(pattern, all_matches=strategy == "skip_till_any")
    except BindError:
        # Permutations of permutations unfold into too much.
        reject()
    variables = variables_of(pattern)
    taken = sorted({part.name for part in walk_pattern(pattern) if isinstance(part, Variable)})
    subset = draw(st.booleans()) and bool(taken)
    known = [*taken, "U"] if subset else taken

    within = trails(pattern) or draw(st.booleans())
    # Whether a path that wants a row behind the partition's end is alive is nobody's business.
    lively = kinds.timeouts and numbered and not has(pattern, PartitionEnd)
    timeout = within and lively and draw(st.booleans())
    outputs = ["", "ONE ROW PER MATCH", "ALL ROWS PER MATCH"]
    outputs += ["ALL ROWS PER MATCH SHOW EMPTY MATCHES", "ALL ROWS PER MATCH OMIT EMPTY MATCHES"]
    if not timeout and not has(pattern, Exclude):
        outputs += ["ALL ROWS PER MATCH WITH UNMATCHED ROWS"] * 2
    orders = ["", "ORDER BY ts"]
    if kinds.other_orders and not within:
        orders += ["ORDER BY x", "ORDER BY label DESC, x", "ORDER BY ts, y DESC"]
    plain_skips = ["", "AFTER MATCH SKIP PAST LAST ROW", "AFTER MATCH SKIP TO NEXT ROW"]
    targets = [
        f"AFTER MATCH SKIP TO {way}{name}"
        for way in SKIP_WAYS
        for name in known
        if not surely_first(pattern, name, way)
    ]
    skips = st.sampled_from(plain_skips) | st.sampled_from(targets or plain_skips)

    clauses = [
        draw(st.sampled_from(["", "PARTITION BY k"])),
        draw(st.sampled_from(orders)),
        draw(measure_clauses(known, numbered=numbered)),
        draw(st.sampled_from(outputs)),
        "TIMEOUT ROWS" if timeout else "",
        draw(skips) if numbered else "AFTER MATCH SKIP TO NEXT ROW",
        "" if contiguous and draw(st.booleans()) else f"STRATEGY {strategy}",
        f"PATTERN ({render_pattern(pattern)})",
        f"WITHIN INTERVAL '{draw(st.integers(1, 6))}' SECOND" if within else "",
        f"SUBSET U = ({', '.join(draw(members(taken)))})" if subset else "",
        draw(define_clauses(kinds.conditions, variables, known, numbered=numbered)),
    ]
    text = f"SELECT * FROM s MATCH_RECOGNIZE ({' '.join(filter(None, clauses))})"
    if has(pattern, Absent):
        try:
            compile_conditions(match_node(plan_sql(text, CATALOG)))
        except (BindError, UnsupportedError):
            # Some NOTs that look at what comes later cannot be told.
            reject()
    return text


SKIP_WAYS = ("FIRST ", "LAST ", "")


def surely_first(pattern: Pattern, name: str, way: str) -> bool:
    """Whether anyone can see that a match would be found again and again."""
    first = pattern
    while isinstance(first, Concat) and first.parts:
        first = first.parts[0]
    if isinstance(first, Repeat):
        return first.part == Variable(name) and way == "FIRST "
    named = [part for part in walk_pattern(pattern) if part == Variable(name)]
    return first == Variable(name) and (way == "FIRST " or len(named) == 1)


def members(names: Sequence[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(names), min_size=1, unique=True)


@st.composite
def measure_clauses(draw: st.DrawFn, known: Sequence[str], *, numbered: bool) -> str:
    # Patterns like `^ $` have no variables that a measure could name.
    if not known:
        return "MEASURES COUNT(*) AS m0, LAST(x) AS m1"
    items = draw(st.lists(measures(known, numbered=numbered), min_size=1, max_size=4))
    return "MEASURES " + ", ".join(f"{item} AS m{place}" for place, item in enumerate(items))


@st.composite
def define_clauses(
    draw: st.DrawFn,
    kind: Conditions,
    variables: Sequence[str],
    known: Sequence[str],
    *,
    numbered: bool,
) -> str:
    # One variable in three has no condition and takes any row.
    defined = [name for name in variables if draw(st.integers(0, 2))]
    # A variable that stands behind NOT only is never part of a match, but may look at itself.
    items = [
        f"{name} AS {draw(conditions(kind, sorted({*known, name}), numbered=numbered))}"
        for name in defined
    ]
    return f"DEFINE {', '.join(items)}" if items else ""
