"""A live query as a person sees it: its state and its newest rows, drawn again and again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from textwrap import shorten
from time import sleep
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from eventide.api.live.row_queue import LiveRows
from eventide.api.live.shown.metrics import numbers_of
from eventide.arrays import to_arrow
from eventide.sinks.text import SHOWN_ROWS, as_html, as_text
from eventide.sinks.words import escape, plural, size_text

if TYPE_CHECKING:
    from eventide.api.live.subscription import Subscription

TEXT_SHOWN = 200
"""So many letters of a query's text are drawn."""

FEW_ROWS = 1000
"""So few rows may be kept for the sake of the newest ones of them."""

NewestRows = tuple[LiveRows, ...]


class Display(Protocol):
    """Something drawn that can be replaced, such as IPython's `DisplayHandle`."""

    def update(self, query: Subscription) -> None:
        """Draw the query again, in the same place."""
        ...


def with_newest(kept: NewestRows, rows: LiveRows) -> NewestRows:
    """Return the newest rows, without older ones than are shown."""
    more = len(rows) - SHOWN_ROWS
    if 0 < more < FEW_ROWS:
        return (LiveRows(rows.to_arrow().slice(more), rows.first_row + more),)
    if more > 0:
        # Copied: a part of a large table would keep all of it.
        last = to_arrow(np.arange(more, len(rows)))
        return (LiveRows(rows.to_arrow().take(last), rows.first_row + more),)
    found = (*kept, rows)
    while sum(map(len, found[1:])) >= SHOWN_ROWS:
        found = found[1:]
    return found


def newest_table(query: Subscription) -> pa.Table:
    """Return the newest rows, the newest one first."""
    tables = [query.output_schema.empty_table(), *(rows.to_arrow() for rows in query.newest)]
    rows = pa.concat_tables(tables)
    newest = range(rows.num_rows - 1, max(-1, rows.num_rows - 1 - SHOWN_ROWS), -1)
    return rows.take(pa.array(newest, pa.int64()))


def state_line(query: Subscription) -> str:
    """Return how a query stands, and its counters, in one line."""
    numbers = numbers_of(query)
    parts = [
        str(numbers["status"]),
        plural(query.counters.events, "event"),
        plural(query.counters.rows, "row"),
    ]
    if numbers["waiting_rows"]:
        parts.append(f"{numbers['waiting_rows']:,} of them wait")
    if numbers["late"]:
        parts.append(f"{numbers['late']:,} late")
    if numbers["dead_rows"]:
        parts.append(f"{numbers['dead_rows']:,} given up")
    if isinstance(numbers["state_bytes"], int):
        parts.append(f"{size_text(numbers['state_bytes'])} of state")
    return ", ".join(parts)


def live_html(query: Subscription) -> str:
    """Return a live query for a notebook: its text, its state, its newest rows."""
    named = "" if query.name is None else f"<b>{escape(query.name)}</b> "
    failure = "" if query.failure is None else f"<pre>{escape(str(query.failure))}</pre>"
    text = escape(shorten(query.text, TEXT_SHOWN, placeholder=" …"))
    head = f"<p>{named}<code>{text}</code><br>{escape(state_line(query))}</p>"
    return f"{head}{failure}{as_html(newest_table(query))}"


def live_text(query: Subscription) -> str:
    """Return a live query for a terminal."""
    failure = "" if query.failure is None else f"\n{query.failure}"
    rows = as_text(newest_table(query))
    return f"{query.described()}\n{state_line(query)}{failure}\n{rows}"


class Printed:
    """A terminal: what has changed is printed below."""

    def __init__(self) -> None:
        self.last = ""

    def update(self, query: Subscription) -> None:
        """Print the query, if it has changed."""
        text = live_text(query)
        if text != self.last:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()
        self.last = text


def new_display(query: Subscription) -> Display:
    """Return a display that shows a query: in a notebook, else in the terminal."""
    display = notebook_display()
    shown: object = None if display is None else display(query, display_id=True)
    if shown is None:
        printed = Printed()
        printed.update(query)
        return printed
    return shown  # type: ignore[return-value] # IPython's handle has `update`


def notebook_display() -> Callable[..., object] | None:
    """Return IPython's `display`, if this process is one of IPython's."""
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        return None
    found: Callable[..., object] | None = None if get_ipython() is None else display
    return found


def show(query: Subscription, every_s: float) -> None:
    """Draw a query until it is over, or until Ctrl-C, which ends the drawing alone."""
    try:
        display = new_display(query)
        while not query.finished:
            sleep(every_s)
            display.update(query)
    except KeyboardInterrupt:
        return
