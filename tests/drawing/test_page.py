"""Pages: well-formed, escaped, all in one file."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np

from eventide.drawing.chart import Chart, Line, Panel
from eventide.drawing.page import (
    CodeBlock,
    Drawing,
    Figure,
    Heading,
    KeyFigures,
    Page,
    Paragraph,
    TextTable,
    render,
)
from eventide.drawing.query_words import query_html
from eventide.lang.sql.situations.tokens import CLAUSES, PARTS, SPOKEN
from eventide.plan.situations import allen

LINE = Line("v", np.array([0, 1_000_000]), np.array([1.0, 2.0]))
PAGE = Page(
    "A <page>",
    "With `code`.",
    (
        Heading("Part & parcel"),
        Paragraph("x < y"),
        KeyFigures((("1,000", "events"),)),
        Figure(Chart("C", (Panel("P", (LINE,)),)), "See the line."),
        TextTable(("name", "n"), (("<a>", "1"),), right=frozenset({"n"})),
        CodeBlock("SELECT 'a' FROM cars -- why"),
        CodeBlock("SELECT 1", "A question"),
    ),
    footer="The end.",
)

VOID = {"meta", "br", "hr", "img", "link"}


class Balance(HTMLParser):
    """Checks that what opens closes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_what_opens_closes() -> None:
    parser = Balance()
    parser.feed(render(PAGE))
    assert parser.open == []


def test_text_is_escaped() -> None:
    html = render(PAGE)
    assert "<h1>A &lt;page&gt;</h1>" in html
    assert "<h2>Part &amp; parcel</h2>" in html
    assert "<td>&lt;a&gt;</td>" in html
    assert "With <code>code</code>." in html


def test_the_page_needs_nothing_else() -> None:
    html = render(PAGE)
    assert "<script" not in html
    assert not re.search(r"(src|href)=|url\(|@import", html)
    assert "prefers-color-scheme:dark" in html


def test_a_titled_query_is_folded_away() -> None:
    assert "<details><summary>A question</summary><pre>" in render(PAGE)


def test_a_query_is_marked_up_and_otherwise_unchanged() -> None:
    html = query_html("SELECT 'a<b' AS x -- SELECT 1\nFROM ages LIMIT 10")
    assert "<b class=\"text\">'a&lt;b'</b>" in html
    assert '<b class="comment">-- SELECT 1</b>' in html
    assert re.sub(r"</?b[^>]*>", "", html).replace("&lt;", "<").startswith("SELECT 'a<b' AS x")
    assert ">ages<" not in html


def test_names_in_quotes_and_columns_are_no_words() -> None:
    html = query_html("SELECT \"end\", t.start, /* FROM */ 'it''s FROM' FROM t")
    assert re.findall(r'class="keyword">(\w+)<', html) == ["SELECT", "FROM"]


def test_every_word_of_the_language_is_marked() -> None:
    relations = {part.upper() for word in allen.WORDS for part in word.split()}
    situations = "EARLY FINAL ALLEN PAPER LEAST MOST PER KEY NULLS OPEN START END DURATION EXISTS"
    rows = "MATCH_RECOGNIZE MEASURES ONE ALL AFTER TIMEOUT STRATEGY SUBSET SKIP PERMUTE CLASSIFIER"
    standing = "RANGE NOW ROWS LATEST TUMBLE LANDMARK SINCE SESSION JUMP SLIDE UNTIL ISTREAM ASOF"
    words = {*PARTS, *SPOKEN, *CLAUSES, *relations, *f"{situations} {rows} {standing}".split()}
    for word in words:
        for each in (word, word.lower()):
            assert query_html(each) == f'<b class="keyword">{each}</b>'


def test_a_drawing_that_can_be_looked_at_nearer_brings_its_script() -> None:
    page = Page("t", "l", (Drawing("<svg></svg>", zoom=True), Drawing("<svg></svg>", zoom=True)))
    html = render(page)
    assert html.count("<script>") == 1
    assert html.count('<div class="zoom" hidden>') == 2
    assert not re.search(r"(src|href)=|url\(|@import|fetch|innerHTML|eval", html)
    assert "<script" not in render(Page("t", "l", (Drawing("<svg></svg>"),)))


def test_plain_text_is_not_marked() -> None:
    html = render(Page("t", "l", (CodeBlock("FROM <1> BY", "As text", plain=True),)))
    assert "<code>FROM &lt;1&gt; BY</code>" in html
