"""The results of the patterns, the standing join and the index: their parts of the page."""

from __future__ import annotations

import pyarrow as pa

from eventide.api.database import Database
from eventide.demo.index import Indexed
from eventide.demo.queries import HURRY
from eventide.drawing.page import Block, Drawing, Heading, Paragraph, TextTable
from eventide.drawing.situations.svg import draw_scene
from eventide.sinks.text import shown_cells

SHOWN_ROWS = 4
DRAWN_MATCHES = 3


def row_pattern(stops: pa.Table) -> list[Block]:
    """Return the section about emergency stops."""
    return [
        Heading("A row pattern"),
        Paragraph(
            "`MATCH_RECOGNIZE` looks for rows that follow one another: one above 100 km/h, then at "
            "least one that is 15 km/h slower than the row before, then one below 20 km/h, all "
            f"within ten seconds. It found {stops.num_rows:,} emergency stops. The first ones:"
        ),
        first_rows(stops, "begins"),
    ]


def temporal_pattern(database: Database, matches: pa.Table) -> list[Block]:
    """Return the section about drivers in a hurry, with pictures of some of them."""
    about = Paragraph(
        "A situation is a period in which a condition holds. A temporal pattern says how the "
        "periods lie to each other: sharp acceleration overlaps driving fast, which overlaps "
        f"braking hard. There are {matches.num_rows:,} such drives; the line in a picture is where "
        "the match was certain, which is before its last situation is over."
    )
    if not matches.num_rows:
        return [Heading("A temporal pattern"), about]
    scene = database.tpstream(HURRY.text).plot(most=DRAWN_MATCHES).scene
    return [
        Heading("A temporal pattern"),
        about,
        Drawing(draw_scene(scene, headed=False), zoom=True),
    ]


def standing_join(pairs: pa.Table) -> list[Block]:
    """Return the section about cars that brake together."""
    return [
        Heading("A standing join"),
        Paragraph(
            "Two windows of half a minute slide over the stream and are joined: which cars braked "
            "hard near each other, at this moment? The answer is right at every instant. Of its "
            f"{pairs.num_rows:,} rows, these came first:"
        ),
        first_rows(pairs, "at"),
    ]


def through_the_index(indexed: Indexed, events: int) -> list[Block]:
    """Return the section about the question that the index answers."""
    index, replay = indexed.answer.seconds, indexed.replay_seconds
    if indexed.refused is not None:
        said = "The store keeps aggregates of its events in its time index. It was not asked for "
        said += f"them here, because {indexed.refused}: run the demo with more."
        return [Heading("Through the index"), Paragraph(said)]
    return [
        Heading("Through the index"),
        Paragraph(
            "The store keeps aggregates of its events in its time index. The average and top speed "
            f"of {indexed.answer.rows.num_rows:,} windows took {index * 1000:,.1f} ms from there. "
            f"A replay of all {events:,} events took {replay * 1000:,.0f} ms, "
            f"{replay / max(index, 1e-9):,.0f} times as long, and gave the same rows, bit by bit."
        ),
    ]


def first_rows(rows: pa.Table, by: str) -> TextTable:
    """Return the first rows in order of a column."""
    cells = shown_cells(rows.sort_by(by), SHOWN_ROWS)
    numbers = [field.name for field in rows.schema if is_number(field.type)]
    return TextTable(tuple(rows.column_names), tuple(map(tuple, cells)), right=frozenset(numbers))


def is_number(type_: pa.DataType) -> bool:
    """Whether values of a type stand on the right of their column."""
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))
