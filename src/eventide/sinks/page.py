"""One self-contained HTML page: text, facts, charts, tables, code. No scripts, no requests."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import assert_never

from eventide.sinks.chart import Chart, draw
from eventide.sinks.page_style import PAGE_STYLE
from eventide.sinks.words import escape


@dataclass(frozen=True, slots=True)
class Heading:
    """Starts a section."""

    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Some sentences. `words like this` between backticks become code."""

    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """A row of numbers, each with what it counts."""

    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart and what to see in it."""

    chart: Chart
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """An SVG that is drawn already."""

    svg: str


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text; the columns named in `right` hold numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Code:
    """Text as it was typed; with `title`, folded away under it, or at least foldable."""

    text: str
    title: str = ""
    unfolded: bool = False


Block = Heading | Paragraph | Facts | Figure | Drawing | Table | Code


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its title, one sentence under it, and blocks in order."""

    title: str
    lead: str
    blocks: tuple[Block, ...]
    footer: str = ""


def render(page: Page) -> str:
    """Return the page as an HTML document."""
    body = "\n".join(block_html(block) for block in page.blocks)
    footer = f"<footer>{inline(page.footer)}</footer>" if page.footer else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(page.title)}</title>
<style>{PAGE_STYLE}</style>
</head>
<body><main>
<header><h1>{escape(page.title)}</h1><p class="lead">{inline(page.lead)}</p></header>
{body}
{footer}
</main></body>
</html>
"""


def block_html(block: Block) -> str:
    """Return one block as HTML."""
    match block:
        case Heading(text):
            return f"<h2>{escape(text)}</h2>"
        case Paragraph(text):
            return f"<p>{inline(text)}</p>"
        case Facts(facts):
            return facts_html(facts)
        case Figure(chart, caption):
            told = f"<figcaption>{inline(caption)}</figcaption>" if caption else ""
            return f'<figure><div class="chart">{draw(chart)}</div>{told}</figure>'
        case Drawing(svg):
            return f'<figure><div class="chart">{svg}</div></figure>'
        case Table():
            return table_html(block)
        case Code(text, title, unfolded):
            code = f"<pre><code>{sql_html(text)}</code></pre>"
            opening = f"<details{' open' if unfolded else ''}><summary>{inline(title)}</summary>"
            return f"{opening}{code}</details>" if title else code
    assert_never(block)


def facts_html(facts: tuple[tuple[str, str], ...]) -> str:
    """Return facts as a list of numbers over their names."""
    cells = (f"<div><dd>{escape(value)}</dd><dt>{escape(name)}</dt></div>" for value, name in facts)
    return f'<dl class="facts">{"".join(cells)}</dl>'


def table_html(table: Table) -> str:
    """Return a table that scrolls on its own where the screen is narrow."""
    marks = [' class="right"' if name in table.right else "" for name in table.columns]
    head = "".join(
        f"<th{mark}>{escape(name)}</th>" for name, mark in zip(table.columns, marks, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(f"<td{mark}>{inline(cell)}</td>" for cell, mark in zip(row, marks, strict=True))
        + "</tr>"
        for row in table.rows
    )
    return (
        f'<div class="table"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def inline(text: str) -> str:
    """Return a sentence as HTML, backticks as code.

    >>> inline("a < `b`")
    'a &lt; <code>b</code>'
    """
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))


KEYWORDS = (
    "SELECT|FROM|WHERE|GROUP|ORDER|BY|AS|AND|OR|NOT|IN|ON|IS|NULL|JOIN|LEFT|HAVING|LIMIT|WITH|"
    "OVER|PARTITION|RANGE|ROWS|BETWEEN|PRECEDING|CURRENT|ROW|INTERVAL|SECOND|MINUTE|HOUR|DAY|"
    "DESC|ASC|TUMBLE|HOP|AVG|COUNT|SUM|MIN|MAX|STDDEV|FIRST|LAST|CASE|WHEN|THEN|ELSE|END|USING|"
    "DEFINE|PATTERN|WITHIN|RETURN"
)
TOKENS = re.compile(
    rf"(?P<comment>(?:--|\#)[^\n]*)|(?P<text>'[^']*')|(?P<keyword>\b(?:{KEYWORDS})\b)"
    r"|(?P<number>\b\d+(?:\.\d+)?\b)"
)


def sql_html(text: str) -> str:
    """Return a query with its words marked for the style sheet.

    >>> sql_html("SELECT 1")
    '<b class="keyword">SELECT</b> <b class="number">1</b>'
    """
    pieces, done = [], 0
    for token in TOKENS.finditer(text):
        pieces.append(escape(text[done : token.start()], quote=False))
        pieces.append(f'<b class="{token.lastgroup}">{escape(token[0], quote=False)}</b>')
        done = token.end()
    return "".join([*pieces, escape(text[done:], quote=False)])
