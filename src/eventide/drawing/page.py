"""One self-contained HTML page: text, facts, charts, tables, code. No requests.

The only script belongs to drawings that can be zoomed (zoom.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import assert_never

from eventide.drawing.chart import Chart, draw
from eventide.drawing.page_style import PAGE_STYLE
from eventide.drawing.query_words import query_html
from eventide.drawing.zoom import ZOOM_CONTROLS, ZOOM_SCRIPT
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
class KeyFigures:
    """A row of numbers, each with what it counts."""

    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart and its caption."""

    chart: Chart
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A finished SVG; with `zoom`, one over time that can be zoomed."""

    svg: str
    zoom: bool = False


@dataclass(frozen=True, slots=True)
class TextTable:
    """Rows of text; the columns named in `right` hold numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """Text as it was typed; with `title`, folded under it, or at least foldable.

    Keywords of a query are highlighted, unless it is `plain` text.
    """

    text: str
    title: str = ""
    unfolded: bool = False
    plain: bool = False


Block = Heading | Paragraph | KeyFigures | Figure | Drawing | TextTable | CodeBlock


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
    nearer = any(isinstance(block, Drawing) and block.zoom for block in page.blocks)
    script = f"<script>{ZOOM_SCRIPT}</script>" if nearer else ""
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
</main>{script}</body>
</html>
"""


def block_html(block: Block) -> str:
    """Return one block as HTML."""
    match block:
        case Heading(text):
            return f"<h2>{escape(text)}</h2>"
        case Paragraph(text):
            return f"<p>{inline(text)}</p>"
        case KeyFigures(facts):
            return facts_html(facts)
        case Figure(chart, caption):
            note = f"<figcaption>{inline(caption)}</figcaption>" if caption else ""
            return f'<figure><div class="chart">{draw(chart)}</div>{note}</figure>'
        case Drawing(svg, zoom):
            controls = ZOOM_CONTROLS if zoom else ""
            return f'<figure>{controls}<div class="chart">{svg}</div></figure>'
        case TextTable():
            return table_html(block)
        case CodeBlock(text, title, unfolded, plain):
            marked = escape(text, quote=False) if plain else query_html(text)
            code = f"<pre><code>{marked}</code></pre>"
            opening = f"<details{' open' if unfolded else ''}><summary>{inline(title)}</summary>"
            return f"{opening}{code}</details>" if title else code
    assert_never(block)


def facts_html(facts: tuple[tuple[str, str], ...]) -> str:
    """Return facts as a list of numbers over their names."""
    cells = (f"<div><dd>{escape(value)}</dd><dt>{escape(name)}</dt></div>" for value, name in facts)
    return f'<dl class="facts">{"".join(cells)}</dl>'


def table_html(table: TextTable) -> str:
    """Return a table that scrolls by itself if the screen is narrow."""
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
