"""Views: the nodes of earlier documents with a text, ready to be joined; a cache with a bound.

    text 7   (document 3, author, node 5)  (document 4, author, node 2)  (document 9, title, node 3)

Without a view the values of a text are followed through the documents, and what each stands for
is looked up there. A view is made when a document brings a text that earlier ones have, and grows
with each further one. All views stand in one arena. When that is full the views that were used last
stay, up to half of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eventide.kernels.compiled import Int32s, Int64s, call, call_lean
from eventide.kernels.xml.document_log import (
    FIRST_DOCUMENT,
    FIRST_VALUE,
    NONE,
    DocumentLog,
    first_row_of,
)

USED, CACHED, CLOCK, FOUND, MADE = range(5)
START, LENGTH, ROOM, STAMP, SLOT = range(5)


class Views(NamedTuple):
    """An arena of entries, and the notes of each text's view; `facts` counts.

    `cached` are the texts with a view, the first `facts[CACHED]`.
    """

    facts: Int64s
    notes: Int64s
    cached: Int32s
    documents: Int64s
    variables: Int32s
    nodes: Int32s


def empty_views(entries: int) -> Views:
    """Return a cache for so many entries."""
    return Views(
        np.zeros(5, np.int64),
        np.full((0, 5), NONE, np.int64),
        np.zeros(entries, np.int32),
        np.zeros(entries, np.int64),
        np.zeros(entries, np.int32),
        np.zeros(entries, np.int32),
    )


def with_texts(views: Views, texts: int) -> Views:
    """Return a cache with notes for so many texts."""
    more = texts - len(views.notes)
    if more <= 0:
        return views
    notes = np.concatenate([views.notes, np.full((more, 5), NONE, np.int64)])
    return views._replace(notes=notes)


@call_lean
def drop_view(views: Views, text: int) -> None:
    """Take the view of a text out, if there is one; its entries stay in the arena, unused."""
    notes = views.notes
    if notes[text, START] != NONE:
        slot = notes[text, SLOT]
        views.facts[CACHED] -= 1
        last = views.cached[views.facts[CACHED]]
        views.cached[slot] = last
        notes[last, SLOT] = slot
        notes[text, START] = NONE


@call
def take_entries(views: Views, wanted: int) -> int:
    """Return where so many entries are free, -1 if there will never be so many.

    Other views may go for them.
    """
    facts, notes = views.facts, views.notes
    bound = len(views.documents)
    if wanted > bound:
        return NONE
    if facts[USED] + wanted > bound:
        stamps = np.empty(facts[CACHED], np.int64)
        for slot in range(facts[CACHED]):
            stamps[slot] = -notes[views.cached[slot], STAMP]
        kept = 0
        going = np.empty(facts[CACHED], np.int32)
        count = 0
        for slot in np.argsort(stamps):
            text = views.cached[slot]
            room = notes[text, ROOM]
            if kept + room + wanted <= bound and kept + room <= bound // 2:
                kept += room
            else:
                going[count] = text
                count += 1
        for i in range(count):
            drop_view(views, going[i])
        pack(views)
    start = facts[USED]
    facts[USED] += wanted
    return int(start)


@call
def pack(views: Views) -> None:
    """Move all views together, in the order in which they stand."""
    facts, notes = views.facts, views.notes
    starts = np.empty(facts[CACHED], np.int64)
    for slot in range(facts[CACHED]):
        starts[slot] = notes[views.cached[slot], START]
    used = 0
    for slot in np.argsort(starts):
        text = views.cached[slot]
        start = notes[text, START]
        for i in range(notes[text, LENGTH]):
            copy_entry(views, start + i, used + i)
        notes[text, START] = used
        used += notes[text, ROOM]
    facts[USED] = used


@call_lean
def copy_entry(views: Views, source: int, target: int) -> None:
    """Copy an entry."""
    views.documents[target] = views.documents[source]
    views.variables[target] = views.variables[source]
    views.nodes[target] = views.nodes[source]


@call_lean
def count_entries(log: DocumentLog, variables: Int32s, text: int) -> int:
    """Return how many entries the view of a text would have."""
    count = 0
    value = log.newest[text]
    mask, row_mask = len(log.before) - 1, len(log.edges) - 1
    while value >= log.facts[FIRST_VALUE]:
        document, node = log.value_documents[value & mask], log.value_nodes[value & mask]
        row = first_row_of(log, document, node)
        end = log.row_ends[document & (len(log.times) - 1)]
        while row < end and log.lowers[row & row_mask] == node:
            count += variables[log.edges[row & row_mask]] >= 0
            row += 1
        value = log.before[value & mask]
    return count


@call
def make_view(log: DocumentLog, views: Views, variables: Int32s, text: int) -> None:
    """Make the view of a text, if there is room for it."""
    count = count_entries(log, variables, text)
    room = 2 * count if 2 * count <= len(views.documents) else count
    start = take_entries(views, room)
    if start < 0 or room == 0:
        return
    notes = views.notes
    notes[text, START] = start
    notes[text, LENGTH] = count
    notes[text, ROOM] = room
    notes[text, SLOT] = views.facts[CACHED]
    notes[text, STAMP] = views.facts[CLOCK]
    views.cached[views.facts[CACHED]] = text
    views.facts[CACHED] += 1
    views.facts[MADE] += 1
    at = start
    value = log.newest[text]
    mask, row_mask = len(log.before) - 1, len(log.edges) - 1
    while value >= log.facts[FIRST_VALUE]:
        document, node = log.value_documents[value & mask], log.value_nodes[value & mask]
        row = first_row_of(log, document, node)
        end = log.row_ends[document & (len(log.times) - 1)]
        while row < end and log.lowers[row & row_mask] == node:
            variable = variables[log.edges[row & row_mask]]
            if variable >= 0:
                views.documents[at] = document
                views.variables[at] = variable
                views.nodes[at] = node
                at += 1
            row += 1
        value = log.before[value & mask]


@call
def add_entry(log: DocumentLog, views: Views, text: int, entry: tuple[Any, ...]) -> None:
    """Add an entry (document, variable, node) to the view of a text, if that has one."""
    notes = views.notes
    if notes[text, START] == NONE:
        return
    if notes[text, LENGTH] == notes[text, ROOM]:
        drop_gone(log, views, text)
        # A view that is full is made anew, with more room, when the text comes the next time.
        if 4 * notes[text, LENGTH] > 3 * notes[text, ROOM]:
            drop_view(views, text)
            return
    at = notes[text, START] + notes[text, LENGTH]
    views.documents[at] = entry[0]
    views.variables[at] = entry[1]
    views.nodes[at] = entry[2]
    notes[text, LENGTH] += 1


@call_lean
def drop_gone(log: DocumentLog, views: Views, text: int) -> None:
    """Take the entries of documents that have gone out of a view."""
    start = views.notes[text, START]
    at = start
    for i in range(start, start + views.notes[text, LENGTH]):
        if views.documents[i] >= log.facts[FIRST_DOCUMENT]:
            copy_entry(views, i, at)
            at += 1
    views.notes[text, LENGTH] = at - start
