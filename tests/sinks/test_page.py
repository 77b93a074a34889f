"""Pages: well-formed, escaped, all in one file."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np

from eventide.sinks.chart import Chart, Line, Panel
from eventide.sinks.page import (
    Code,
    Facts,
    Figure,
    Heading,
    Page,
    Paragraph,
    Table,
    render,
    sql_html,
)

LINE = Line("v", np.array([0, 1_000_000]), np.array([1.0, 2.0]))
PAGE = Page(
    "A <page>",
    "With `code`.",
    (
        Heading("Part & parcel"),
        Paragraph("x < y"),
        Facts((("1,000", "events"),)),
        Figure(Chart("C", (Panel("P", (LINE,)),)), "See the line."),
        Table(("name", "n"), (("<a>", "1"),), right=frozenset({"n"})),
        Code("SELECT 'a' FROM cars -- why"),
        Code("SELECT 1", "A question"),
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
    html = sql_html("SELECT 'a<b' AS x -- SELECT 1\nFROM ages LIMIT 10")
    assert "<b class=\"text\">'a&lt;b'</b>" in html
    assert '<b class="comment">-- SELECT 1</b>' in html
    assert re.sub(r"</?b[^>]*>", "", html).replace("&lt;", "<").startswith("SELECT 'a<b' AS x")
    assert ">ages<" not in html
