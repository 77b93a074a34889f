"""PATTERN: the parsed tree is what was written."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.errors import BindError, ParseError, Span, UnsupportedError
from eventide.lang.sql import plan_sql
from eventide.lang.sql.dialect import Eventide
from eventide.lang.sql.patterns.pattern import PatternText, read_pattern
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
    render_pattern,
)
from tests.golden.plans import CATALOG

A, B, C = Variable("A"), Variable("B"), Variable("C")


def read(pattern: str) -> PatternText:
    text = f"({pattern})"
    return read_pattern(Eventide().tokenize(text)[1:-1], text, Span(0, len(text)))


def names() -> st.SearchStrategy[str]:
    plain = st.sampled_from(["A", "a", "b", "Up", "down_2", "start", "é", "define"])
    quoted = st.sampled_from(
        ["not", "Permute", "two words", "x$y", 'say "B"', "2", "²", "Ⅷ", "(", ""]
    )
    return plain | quoted | st.text(st.characters(exclude_categories=["C"]), max_size=3)


def several(part: st.SearchStrategy[Pattern]) -> st.SearchStrategy[Pattern]:
    lists = st.lists(part, min_size=2, max_size=3).map(tuple)
    plain = part.filter(lambda each: not isinstance(each, Alternate))
    times = st.tuples(st.integers(0, 3), st.none() | st.integers(1, 4)).filter(
        lambda pair: pair[1] is None or pair[0] <= pair[1]
    )
    return st.one_of(
        lists.map(Concat),
        st.lists(plain, min_size=2, max_size=3).map(lambda options: Alternate(tuple(options))),
        st.lists(part, min_size=1, max_size=3).map(lambda parts: Permute(tuple(parts))),
        part.map(Exclude),
        st.builds(
            lambda inner, pair, greedy: Repeat(inner, pair[0], pair[1], greedy=greedy),
            part,
            times,
            st.booleans(),
        ),
    )


LEAVES: st.SearchStrategy[Pattern] = st.one_of(
    names().map(Variable),
    names().map(Absent),
    st.sampled_from([Concat(()), PartitionStart(), PartitionEnd()]),
)
PATTERNS = st.recursive(LEAVES, several, max_leaves=12)


@given(PATTERNS)
def test_a_pattern_is_read_as_it_is_shown(pattern: Pattern) -> None:
    assert read(render_pattern(pattern)).tree == pattern


def closely(pattern: str) -> str:
    """Return the pattern without the spaces that nothing needs, `{- A -}` as `{-A-}`."""
    pieces = re.split(r'("(?:[^"]|"")*")', pattern)
    for loose, close in ((" | ", "|"), ("{- ", "{-"), (" -}", "-}"), (", ", ","), (") (", ")(")):
        pieces[::2] = [piece.replace(loose, close) for piece in pieces[::2]]
    return "".join(pieces)


@given(PATTERNS)
def test_spaces_do_not_matter(pattern: Pattern) -> None:
    assert read(closely(render_pattern(pattern))).tree == pattern


CASES: list[tuple[str, Pattern]] = [
    ("A", A),
    ("((A))", A),
    ("A B", Concat((A, B))),
    ("(A B) C", Concat((Concat((A, B)), C))),
    ("A|B C", Alternate((A, Concat((B, C))))),
    ("()", Concat(())),
    ("A??", Repeat(A, 0, 1, greedy=False)),
    ("A*?|B", Alternate((Repeat(A, 0, None, greedy=False), B))),
    ("A{2}?", Repeat(A, 2, 2, greedy=False)),
    ("A{,3}", Repeat(A, 0, 3)),
    ("A{2,}", Repeat(A, 2, None)),
    ("A{,}", Repeat(A, 0, None)),
    ("A{ , }?", Repeat(A, 0, None, greedy=False)),
    ("A{1_0}", Repeat(A, 10, 10)),
    ("A { 2 , 3 }", Repeat(A, 2, 3)),
    ("{-A+-}B", Concat((Exclude(Repeat(A, 1, None)), B))),
    ("A{-B-}{2}", Concat((A, Repeat(Exclude(B), 2, 2)))),
    ("^A$", Concat((PartitionStart(), A, PartitionEnd()))),
    ("A $ | $", Alternate((Concat((A, PartitionEnd())), PartitionEnd()))),
    (
        "(A|B)$|C$",
        Alternate((Concat((Alternate((A, B)), PartitionEnd())), Concat((C, PartitionEnd())))),
    ),
    ("permute(A, B C)", Permute((A, Concat((B, C))))),
    ("not B", Absent("B")),
    ("x$y$", Concat((Variable("x$y"), PartitionEnd()))),
    ("A a", Concat((A, A))),
    ('A "a" a', Concat((A, Variable("a"), A))),
    ('"A" a', Concat((A, A))),
    ('a "A" A', Concat((Variable("a"),) * 3)),
    ('"a" a', Concat((Variable("a"), A))),
    ('a "a" "A"', Concat((A, Variable("a"), A))),
    ('ß "SS"', Concat((Variable("ß"),) * 2)),
    ('"a b"+', Repeat(Variable("a b"), 1, None)),
    ('"NOT" permute', Concat((Variable("NOT"), Variable("permute")))),
    ("A /* the first */ B", Concat((A, B))),
]


@pytest.mark.parametrize(("text", "pattern"), CASES, ids=[text for text, _ in CASES])
def test_a_pattern_is_a_tree(text: str, pattern: Pattern) -> None:
    assert read(text).tree == pattern


def test_parts_know_where_they_stand() -> None:
    text = "(^ A+? {- NOT B -} $)"
    found = read("^ A+? {- NOT B -} $")
    assert isinstance(found.tree, Concat)
    _, repeat, exclude, _ = found.tree.parts
    assert isinstance(repeat, Repeat)
    assert isinstance(exclude, Exclude)
    assert isinstance(exclude.part, Absent)
    spans = [repeat.span, exclude.span, exclude.part.span, *found.anchors]
    shown = [None if span is None else span.of(text) for span in spans]
    assert shown == ["A+?", "{- NOT B -}", "NOT B", "^", "$"]


@given(st.text(alphabet="AB(){}-|*+?,2^$ #\"'", max_size=12))
def test_any_text_is_a_pattern_or_an_error(text: str) -> None:
    with suppress(ParseError, BindError, UnsupportedError):
        plan_sql(f"SELECT car FROM cars MATCH_RECOGNIZE (ORDER BY ts PATTERN ({text}))", CATALOG)


WORDS = [
    *("A", "B", "U", "speed", ".", ",", "(", ")", "=", ">", "1", "*", "AS", "OVER", "FILTER"),
    *("PARTITION BY", "ORDER BY", "ts", "MEASURES", "FINAL", "RUNNING", "LAST(", "FIRST(", "PREV("),
    *("count(", "CLASSIFIER()", "MATCH_NUMBER()", "WHERE", "ONE ROW PER MATCH", "ALL ROWS"),
    *("AFTER MATCH SKIP", "TO", "PAST", "NEXT", "STRATEGY", "skip_till_next", "PATTERN", "WITHIN"),
    *("INTERVAL", "'5'", "MINUTE", "SUBSET", "DEFINE", "TIMEOUT ROWS"),
]


@given(st.lists(st.sampled_from(WORDS), max_size=14))
def test_any_words_are_a_clause_or_an_error(words: list[str]) -> None:
    clause = f"PARTITION BY car {' '.join(words)} PATTERN (A B) DEFINE B AS {' '.join(words)}"
    for text in (clause, f"MEASURES {' '.join(words)} AS m PATTERN (A B)"):
        with suppress(ParseError, BindError, UnsupportedError):
            plan_sql(f"SELECT * FROM cars MATCH_RECOGNIZE ({text})", CATALOG)
