"""The language of patterns: what it reads, and what it says of what it cannot."""

from __future__ import annotations

import random

import pytest
from hypothesis import given

from eventide.errors import ParseError
from eventide.lang.sql.xml.written import patterns_in
from eventide.lang.xscl.parse import MOST_STEPS, parse_pattern
from eventide.plan.xml.patterns import PatternStep, TreePattern
from tests.naive.xml.examples import PATTERNS


def test_steps_and_predicates() -> None:
    parsed = parse_pattern("blog//item->x[.//author->a][title = 'It''s']/@id->i")
    author = PatternStep("descendant", "author", "a")
    title = PatternStep("child", "title", test="It's")
    number = PatternStep("child", "@id", "i")
    root = PatternStep("descendant", "item", "x", below=(author, title, number))
    assert parsed.pattern == TreePattern("blog", root)
    assert parsed.pattern.variables == ("x", "a", "i")


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("s/a", "s/a"),
        ("s // a / b", "s//a[./b]"),
        ("s//{http://x/y}a->v/@{u}k", "s//{http://x/y}a->v[./@{u}k]"),
        ("s//{*}a/@*", "s//{*}a[./@*]"),
        ("s//{}a", "s//a"),
        ("s//a-b->v", "s//a-b->v"),
        ("s//a.b_c[. = 'x']", "s//a.b_c[. = 'x']"),
        ('s//a[. = "x"]', "s//a[. = 'x']"),
        ("s//*[./a][b/c->v]", "s//*[./a][./b[./c->v]]"),
        ("s//a[.//b//c = '']", "s//a[.//b[.//c[. = '']]]"),
        ('"my stream"//é', "my stream//é"),
    ],
)
def test_reads(text: str, read: str) -> None:
    assert str(parse_pattern(text).pattern) == read


@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        ("", "", "the pattern is empty"),
        ("blog", "g", "ends too early"),
        ("blog//item[", "[", "ends too early"),
        ("blog//item[//a]", "//", r"write \[.//…\]"),
        ("blog//item[1]", "1", "steps are not counted"),
        ("blog//a:b", ":", r"\{\*\}name for any"),
        ("blog//a[b and c]", "and", r"write \[one\]\[other\]"),
        ("blog//a[b > 3]", ">", "compare it in WHERE"),
        ("blog//a[not(b)]", "(", "functions are SQL's"),
        ("blog//a[.]", "[.]", "asks for nothing"),
        ("blog//a->x[b->X]", "X", "there twice"),
        ("blog//a[.='x'][.='y']", "'y'", "both 'x' and 'y'"),
        ("//a", "//", "expected"),
        ("blog" + "/a" * (MOST_STEPS + 1), "blog", "more than 100 steps"),
    ],
)
def test_errors_point_at_the_place(text: str, at: str, says: str) -> None:
    with pytest.raises(ParseError, match=says) as raised:
        parse_pattern(text)
    span = raised.value.span
    assert (span is None and not at) or (span is not None and at.startswith(span.of(text)[:1]))


@given(PATTERNS)
def test_what_is_written_is_read_again(root: PatternStep) -> None:
    text = str(TreePattern("s", root)).replace("->v", "")
    assert str(parse_pattern(text).pattern) == text


def test_any_text_is_read_or_refused() -> None:
    choose, refused = random.Random(5), []
    signs = ["s", "//", "/", "[", "]", ".", "->", "x", "'t'", "=", "@", "*", "{u}", "{", '"', "("]
    for _ in range(2000):
        parts = ["s", "//", "a", "->", "x", "[", ".", "//", "b", "=", "'t'", "]", "/", "@k"]
        for _ in range(choose.choice([1, 1, 2, 5])):
            parts[choose.randrange(len(parts))] = choose.choice([*signs, ""])
        try:
            parse_pattern("".join(parts))
        except ParseError as error:
            refused.append(error)
    assert 1000 < len(refused) < 1990
    assert all(error.hint for error in refused)
    with pytest.raises(ParseError):
        parse_pattern("s//a" + "[b" * 2000)
    with pytest.raises(ParseError, match="steps"):
        parse_pattern("s//a" + "[b" * 3000 + "]" * 3000)


@pytest.mark.parametrize(
    ("text", "patterns"),
    [
        ("SELECT * FROM XPATH (s//a)", ["s//a"]),
        ("SELECT * FROM xpath(s/*//a[. = ')']) x JOIN XPATH (s/a) */", ["s/*//a[. = ')']", "s/a"]),
        ("SELECT * FROM XPATH (s/a), XPATH(s/b)", ["s/a", "s/b"]),
        ("SELECT xpath(a, b), xpath(c) FROM s", []),
        ("SELECT 'FROM XPATH (s/a)' -- FROM XPATH (s/a)\n FROM s", []),
        ("SELECT * FROM XPATH (s//{http://x}a)", ["s//{http://x}a"]),
    ],
)
def test_blocks_are_found_in_sql(text: str, patterns: list[str]) -> None:
    assert [span.of(text) for span in patterns_in(text)] == patterns
