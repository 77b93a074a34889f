"""The join of new documents with all earlier ones of a window, one document after the other."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eventide.kernels.compiled import Int32s, Int64s, call, call_lean, kernel
from eventide.kernels.key_table import find
from eventide.kernels.xml.document_log import (
    FIRST_DOCUMENT,
    FIRST_ROW,
    FIRST_VALUE,
    NEXT_DOCUMENT,
    NONE,
    DocumentLog,
    append_document,
    append_value,
    first_row_of,
    forget_text,
)
from eventide.kernels.xml.join_pair import NODES, join_pair
from eventide.kernels.xml.join_programs import EqualNodes, JoinPrograms, JoinSpace
from eventide.kernels.xml.views import (
    CLOCK,
    FOUND,
    LENGTH,
    STAMP,
    START,
    Views,
    add_entry,
    drop_view,
    make_view,
)


class NewDocuments(NamedTuple):
    """Documents in order of time; rows by document and lower node, values by document."""

    times: Int64s
    ids: Int64s
    row_starts: Int64s
    edges: Int32s
    uppers: Int32s
    lowers: Int32s
    value_starts: Int64s
    nodes: Int32s
    first_words: Int64s
    second_words: Int64s


@kernel
def join_documents(
    programs: JoinPrograms,
    log: DocumentLog,
    views: Views,
    new: NewDocuments,
    space: JoinSpace,
    reach: int,
) -> tuple[Int64s, int]:
    """Return the rows of new documents and earlier ones, at most `reach` apart; keep the new ones.

    A row is the number of a row, both documents in the log, and what it selects.
    """
    found = np.empty((64, NODES + programs.selected.shape[1]), np.int64)
    count = 0
    equal = EqualNodes(
        np.empty(64, np.int32),
        np.empty(64, np.int32),
        np.empty(64, np.int32),
        np.empty(64, np.int64),
        np.full(len(log.times), NONE, np.int64),
        np.empty(len(log.times), np.int64),
    )
    for i in range(len(new.times)):
        drop_before(log, views, new.times[i] - reach)
        rows = (new.edges, new.uppers, new.lowers)
        bounds = (new.row_starts[i], new.row_starts[i + 1])
        document = append_document(log, new.times[i], new.ids[i], rows, bounds)
        for value in range(new.value_starts[i], new.value_starts[i + 1]):
            append_value(
                log, document, new.nodes[value], new.first_words[value], new.second_words[value]
            )
        views.facts[CLOCK] += 1
        touched = find_equal(programs, log, views, equal, document)
        while touched < 0:
            equal = roomier(equal)
            touched = find_equal(programs, log, views, equal, document)
        for j in range(touched):
            earlier = equal.touched[j]
            pair = (earlier, np.int64(document))
            more = join_pair(programs, log, equal, space, pair, found, count)
            while more < 0:
                larger = np.empty((2 * len(found), found.shape[1]), np.int64)
                larger[:count] = found[:count]
                found = larger
                more = join_pair(programs, log, equal, space, pair, found, count)
            count = more
            equal.heads[earlier & (len(log.times) - 1)] = NONE
        link_values(programs, log, views, document)
    return found, count


@call
def roomier(equal: EqualNodes) -> EqualNodes:
    """Return twice the room; nothing that was there is kept."""
    length = 2 * len(equal.pairs)
    return EqualNodes(
        np.empty(length, np.int32),
        np.empty(length, np.int32),
        np.empty(length, np.int32),
        np.empty(length, np.int64),
        equal.heads,
        equal.touched,
    )


@call_lean
def drop_before(log: DocumentLog, views: Views, time: int) -> None:
    """Take documents before an instant out, and texts that only they have."""
    facts = log.facts
    mask, value_mask = len(log.times) - 1, len(log.before) - 1
    while facts[FIRST_DOCUMENT] < facts[NEXT_DOCUMENT]:
        place = facts[FIRST_DOCUMENT] & mask
        if log.times[place] >= time:
            break
        for value in range(log.value_starts[place], log.value_ends[place]):
            text = log.value_texts[value & value_mask]
            if log.newest[text] == value:
                drop_view(views, text)
                forget_text(log, text)
        facts[FIRST_ROW] = log.row_ends[place]
        facts[FIRST_VALUE] = log.value_ends[place]
        facts[FIRST_DOCUMENT] += 1


@call
def find_equal(
    programs: JoinPrograms, log: DocumentLog, views: Views, equal: EqualNodes, document: int
) -> int:
    """Find nodes of earlier documents with values of this one; return how many documents.

    -1 if there is no room for all nodes.
    """
    mask, value_mask, row_mask = len(log.times) - 1, len(log.before) - 1, len(log.edges) - 1
    place = document & mask
    facts = np.zeros(2, np.int64)
    for value in range(log.value_starts[place], log.value_ends[place]):
        text = log.value_texts[value & value_mask]
        if log.newest[text] == NONE:
            continue
        if views.notes[text, START] == NONE:
            make_view(log, views, programs.variables, text)
        else:
            views.facts[FOUND] += 1
        node = log.value_nodes[value & value_mask]
        row = first_row_of(log, document, node)
        end = log.row_ends[place]
        while row < end and log.lowers[row & row_mask] == node:
            variable = programs.variables[log.edges[row & row_mask]]
            if variable >= 0:
                start = views.notes[text, START]
                if start != NONE:
                    views.notes[text, STAMP] = views.facts[CLOCK]
                    for entry in range(start, start + views.notes[text, LENGTH]):
                        one = (
                            views.documents[entry],
                            np.int64(views.variables[entry]),
                            np.int64(views.nodes[entry]),
                        )
                        add_equal(programs, log, equal, one, (variable, node), facts)
                else:
                    follow_text(programs, log, equal, text, (variable, node), facts)
            row += 1
    if facts[0] > len(equal.pairs):
        for i in range(facts[1]):
            equal.heads[equal.touched[i] & mask] = NONE
        return NONE
    return int(facts[1])


@call_lean
def follow_text(
    programs: JoinPrograms,
    log: DocumentLog,
    equal: EqualNodes,
    text: int,
    other: tuple[Any, ...],
    facts: Int64s,
) -> None:
    """Find the earlier nodes of a text without a view."""
    mask, row_mask = len(log.before) - 1, len(log.edges) - 1
    value = log.newest[text]
    while value >= log.facts[FIRST_VALUE]:
        document, node = log.value_documents[value & mask], log.value_nodes[value & mask]
        row = first_row_of(log, document, node)
        end = log.row_ends[document & (len(log.times) - 1)]
        while row < end and log.lowers[row & row_mask] == node:
            variable = programs.variables[log.edges[row & row_mask]]
            if variable >= 0:
                one = (document, np.int64(variable), np.int64(node))
                add_equal(programs, log, equal, one, other, facts)
            row += 1
        value = log.before[value & mask]


@call_lean
def add_equal(
    programs: JoinPrograms,
    log: DocumentLog,
    equal: EqualNodes,
    one: tuple[Any, ...],
    other: tuple[Any, ...],
    facts: Int64s,
) -> None:
    """Note two nodes, if any query compares their variables; `facts` counts nodes and documents."""
    if one[0] < log.facts[FIRST_DOCUMENT]:
        return
    pair = find(programs.pairs, np.int64(one[1]), np.int64(other[0]))
    if pair < 0:
        return
    at = facts[0]
    facts[0] += 1
    if at >= len(equal.pairs):
        return
    place = one[0] & (len(log.times) - 1)
    if equal.heads[place] == NONE:
        equal.touched[facts[1]] = one[0]
        facts[1] += 1
    equal.pairs[at] = pair
    equal.lefts[at] = one[2]
    equal.rights[at] = other[1]
    equal.following[at] = equal.heads[place]
    equal.heads[place] = at


@call
def link_values(programs: JoinPrograms, log: DocumentLog, views: Views, document: int) -> None:
    """Let the values of the newest document be found."""
    mask, row_mask = len(log.before) - 1, len(log.edges) - 1
    place = document & (len(log.times) - 1)
    for value in range(log.value_starts[place], log.value_ends[place]):
        text, node = log.value_texts[value & mask], log.value_nodes[value & mask]
        log.before[value & mask] = log.newest[text]
        log.newest[text] = value
        row = first_row_of(log, document, node)
        end = log.row_ends[place]
        while row < end and log.lowers[row & row_mask] == node:
            variable = programs.variables[log.edges[row & row_mask]]
            if variable >= 0:
                add_entry(log, views, text, (document, np.int64(variable), np.int64(node)))
            row += 1
