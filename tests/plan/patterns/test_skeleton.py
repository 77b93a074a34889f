"""The rows that every match has: a pattern without the parts that may be missing."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, event, given, note, settings

from eventide.errors import EvaluationError
from eventide.lang.sql import plan_sql
from eventide.plan.nodes import Scan
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.patterns.skeleton import MOST_SYMBOLS, Skeleton, skeleton_of
from eventide.plan.patterns.tree import Concat, Pattern, Permute, Repeat, Strategy, Variable
from tests.naive.patterns.rows import Budget, Path, TooMuch, match_node, matches, partitions
from tests.naive.patterns.texts import CATALOG, Kinds, Row, queries, rows


def node_of(pattern: str, strategy: Strategy = "contiguous") -> MatchRecognize:
    skip = "AFTER MATCH SKIP TO NEXT ROW" if strategy == "skip_till_any" else ""
    return match_node(
        plan_sql(
            f"SELECT * FROM s MATCH_RECOGNIZE (MEASURES LAST(ts) AS t {skip} STRATEGY {strategy} "
            f"PATTERN ({pattern}) WITHIN INTERVAL '5' SECOND)",
            CATALOG,
        )
    )


def drawn(skeleton: Skeleton) -> str:
    """Draw a skeleton: a gap is `~`, and `[` or `]` says that a match begins or ends there."""
    parts = ["["] if skeleton.begins else ["~"]
    for place, symbol in enumerate(skeleton.symbols):
        parts += ["~"] * (place > 0 and not symbol.follows) + ["|".join(sorted(symbol.variables))]
    return " ".join([*parts, "]" if skeleton.ends else "~"])


@pytest.mark.parametrize(
    ("pattern", "skeleton"),
    [
        ("A", "[ A ]"),
        ("A B C", "[ A B C ]"),
        ("A B A", "[ A B A ]"),
        # P+ is P and then anything
        ("A B+ C", "[ A B ~ C ]"),
        ("A+", "[ A ~"),
        ("A+ B", "[ A ~ B ]"),
        # P* and P? may be missing
        ("A B* C", "[ A ~ C ]"),
        ("A B? C", "[ A ~ C ]"),
        ("A? B", "~ B ]"),
        ("A B*", "[ A ~"),
        ("A B{0,2} C", "[ A ~ C ]"),
        # P{n,m} is P n times and then anything
        ("A B{2} C", "[ A B B C ]"),
        ("A B{2,3} C", "[ A B B ~ C ]"),
        ("A B{2,} C", "[ A B B ~ C ]"),
        ("(A B){2}", "[ A B A B ]"),
        ("(A B+){2}", "[ A B ~ A B ~"),
        # how often a reluctant part repeats is preferred differently, but all the same allowed
        ("A B+? C", "[ A B ~ C ]"),
        ("A B*? C??", "[ A ~"),
        ("A B{2,3}? C", "[ A B B ~ C ]"),
        # the golden case of the thesis
        ("A (B C+)+ D", "[ A B C ~ D ]"),
        # two gaps side by side are one
        ("A B* C* D", "[ A ~ D ]"),
        ("A (B* C)* D", "[ A ~ D ]"),
        ("(A B*)+ C", "[ A ~ C ]"),
        # options of one length have a row at each place
        ("A | B", "[ A|B ]"),
        ("A (B | C) D", "[ A B|C D ]"),
        ("(A B | C D) A", "[ A|C B|D A ]"),
        ("(A B | B A | C C)", "[ A|B|C A|B|C ]"),
        ("A (B | C | B) D", "[ A B|C D ]"),
        # and those of several lengths have nothing in common
        ("A (B | C D) A", "[ A ~ A ]"),
        ("A (B+ | C) D", "[ A ~ D ]"),
        ("A | B C", "~ ~"),
        ("A (B | ()) C", "[ A ~ C ]"),
        ("A (() | ()) C", "[ A C ]"),
        # in any order: so many rows, of these kinds
        ("PERMUTE(A, B)", "[ A|B A|B ]"),
        ("A PERMUTE(B, C D)", "[ A B|C|D B|C|D B|C|D ]"),
        ("PERMUTE(A, B+) C", "~ C ]"),
        # what is left out of the output is matched all the same
        ("A {- B -} C", "[ A B C ]"),
        ("A {- B+ -} C", "[ A B ~ C ]"),
        # the ends of the partition take no row
        ("^ A B $", "[ A B ]"),
        ("()", "~ ~"),
    ],
)
def test_what_every_match_has(pattern: str, skeleton: str) -> None:
    assert drawn(skeleton_of(node_of(pattern))) == skeleton


@pytest.mark.parametrize("strategy", ["skip_till_next", "skip_till_any"])
@pytest.mark.parametrize(
    ("pattern", "skeleton"),
    [
        ("A B C", "[ A ~ B ~ C ]"),
        ("A{2} B", "[ A ~ A ~ B ]"),
        ("A B+", "[ A ~ B ~"),
        ("A (B | C)", "[ A ~ B|C ]"),
        ("A? B", "~ B ]"),
        # NOT takes no row, and looks at rows up to the deadline
        ("A NOT B C", "~ A ~ C ~"),
        ("A B NOT C", "~ A ~ B ~"),
        ("A (NOT B | C)", "~ A ~"),
    ],
)
def test_rows_may_be_skipped_between_all_others(
    pattern: str, skeleton: str, strategy: Strategy
) -> None:
    assert drawn(skeleton_of(node_of(pattern, strategy))) == skeleton


def symbols_of(pattern: Pattern) -> str:
    """Draw the skeleton of a pattern that is too long to write down."""
    return drawn(skeleton_of(MatchRecognize(Scan("s"), (), (), pattern, (), ())))


def test_of_very_long_repeats_the_first_and_the_last_turn_count() -> None:
    turn = Concat((Variable("A"), Variable("B")))
    half = MOST_SYMBOLS // 2
    assert symbols_of(Repeat(turn, half, half)) == f"[ {'A B ' * half}]"
    assert symbols_of(Repeat(turn, half + 1, half + 1)) == "[ A B ~ A B ]"
    assert symbols_of(Repeat(turn, 10**9, None)) == "[ A B ~ A B ~"
    # A turn that is long itself leaves nothing.
    long = Repeat(Variable("A"), half + 1, half + 1)
    assert symbols_of(Concat((Variable("B"), Repeat(long, 2, 2), Variable("B")))) == "[ B ~ B ]"
    assert symbols_of(Repeat(Concat(()), 10**9, None)) == "~ ~"
    assert symbols_of(Concat((Variable("A"), Repeat(turn, 0, 0), Variable("B")))) == "[ A B ]"
    many = Permute(tuple(Variable("A") for _ in range(MOST_SYMBOLS + 1)))
    assert symbols_of(Concat((many, Variable("B")))) == "~ B ]"


def fits(skeleton: Skeleton, path: Path) -> bool:
    """Whether rows of a match can be found for all symbols, by trying all there are."""

    def from_symbol(number: int, least: int, before: int | None) -> bool:
        if number == len(skeleton.symbols):
            return not skeleton.ends or before is None or before == len(path) - 1
        symbol = skeleton.symbols[number]
        places = range(least, len(path))
        if number == 0 and skeleton.begins:
            places = range(min(1, len(path)))
        elif symbol.follows:
            assert before is not None
            places = range(before + 1, min(before + 2, len(path)))
        return any(
            path[place].variable in symbol.variables
            and (not symbol.follows or path[place].row == path[place - 1].row + 1)
            and from_symbol(number + 1, place + 1, place)
            for place in places
        )

    return from_symbol(0, 0, None)


@settings(
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(queries(Kinds(conditions="row", timeouts=False)), rows(10))
def test_every_match_has_the_rows_of_the_skeleton(text: str, events: list[Row]) -> None:
    note(text)
    node = match_node(plan_sql(text, CATALOG))
    skeleton = skeleton_of(node)
    assert not skeleton.symbols or not skeleton.symbols[0].follows
    found: list[Path] = []
    try:
        for each in partitions(node, events):
            found += [match.path for match in matches(node, each, Budget(10_000))]
    except TooMuch:
        assume(False)
    except EvaluationError:
        pass  # the matches before the one that cannot be skipped from are matches
    event(f"{'some' if any(found) else 'no'} matches of {'some' * bool(skeleton.symbols)} symbols")
    for path in found:
        assert fits(skeleton, path), (drawn(skeleton), path)
