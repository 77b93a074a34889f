"""The documents of a window that have come: their bound nodes, and which of these have which text.

    document  │ 0       │ 1   │ 2           │      rows: pairs of nodes, by the lower one
    rows      │ · · · · │ · · │ · · · · · · │      values: nodes with a text
    values    │ · ·     │ ·   │ · · ·       │
                  ╰───────╯─────╯                  the values of a text are linked, newest first

Everything comes and goes in the order of documents. So the arrays are rings: what has number n
stands at n modulo their length, which is a power of two.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eventide.kernels.compiled import Int32s, Int64s, call_lean, inline
from eventide.kernels.key_table import KeyTable, empty_table, find, put, remove, roomy

FIRST_DOCUMENT, NEXT_DOCUMENT, FIRST_ROW, NEXT_ROW, FIRST_VALUE, NEXT_VALUE, FREE_TEXTS = range(7)
SMALLEST = 16
NONE = -1


class DocumentLog(NamedTuple):
    """Rings of documents, rows and values, and the texts that are there; `facts` counts them."""

    facts: Int64s
    times: Int64s
    ids: Int64s
    row_starts: Int64s
    row_ends: Int64s
    value_starts: Int64s
    value_ends: Int64s
    edges: Int32s
    uppers: Int32s
    lowers: Int32s
    value_documents: Int64s
    value_nodes: Int32s
    value_texts: Int32s
    before: Int64s
    """The value with the same text before each, which may have gone."""
    texts: KeyTable
    """The number of each text, by two words."""
    text_words: Int64s
    newest: Int64s
    """The newest value of each text, -1 if there is none."""
    free_texts: Int32s
    """Numbers of texts that are free: the first `facts[FREE_TEXTS]`."""


_BY_DOCUMENT = ("times", "ids", "row_starts", "row_ends", "value_starts", "value_ends")
_BY_ROW = ("edges", "uppers", "lowers")
_BY_VALUE = ("value_documents", "value_nodes", "value_texts", "before")
_RINGS = (
    (_BY_DOCUMENT, FIRST_DOCUMENT, NEXT_DOCUMENT),
    (_BY_ROW, FIRST_ROW, NEXT_ROW),
    (_BY_VALUE, FIRST_VALUE, NEXT_VALUE),
)


def empty_log() -> DocumentLog:
    """Return a log without documents."""
    facts = np.zeros(7, np.int64)
    facts[FREE_TEXTS] = SMALLEST
    return DocumentLog(
        facts,
        times=_words(),
        ids=_words(),
        row_starts=_words(),
        row_ends=_words(),
        value_starts=_words(),
        value_ends=_words(),
        edges=_numbers(),
        uppers=_numbers(),
        lowers=_numbers(),
        value_documents=_words(),
        value_nodes=_numbers(),
        value_texts=_numbers(),
        before=_words(),
        texts=empty_table(),
        text_words=np.zeros((SMALLEST, 2), np.int64),
        newest=np.full(SMALLEST, NONE, np.int64),
        free_texts=np.arange(SMALLEST, dtype=np.int32)[::-1].copy(),
    )


def _words() -> Int64s:
    return np.zeros(SMALLEST, np.int64)


def _numbers() -> Int32s:
    return np.zeros(SMALLEST, np.int32)


def with_room(log: DocumentLog, documents: int, rows: int, values: int) -> DocumentLog:
    """Return a log with room for more, besides all that is there: the same one if it has room."""
    arrays: dict[str, Any] = {}
    for (names, first, after), more in zip(_RINGS, (documents, rows, values), strict=True):
        start, stop = int(log.facts[first]), int(log.facts[after])
        old = len(getattr(log, names[0]))
        length = old
        while length < stop - start + more:
            length *= 2
        if length > old:
            places = np.arange(start, stop)
            for name in names:
                ring = getattr(log, name)
                arrays[name] = np.zeros(length, ring.dtype)
                arrays[name][places & (length - 1)] = ring[places & (old - 1)]
    log = log._replace(**arrays)
    free, count = int(log.facts[FREE_TEXTS]), len(log.newest)
    if free < values:
        added = max(values, count)
        free_texts = np.zeros(count + added, np.int32)
        free_texts[:added] = np.arange(count, count + added)[::-1]
        free_texts[added : added + free] = log.free_texts[:free]
        log.facts[FREE_TEXTS] = free + added
        log = log._replace(
            text_words=np.concatenate([log.text_words, np.zeros((added, 2), np.int64)]),
            newest=np.concatenate([log.newest, np.full(added, NONE, np.int64)]),
            free_texts=free_texts,
        )
    return log._replace(texts=roomy(log.texts, values))


@inline
def text_number(log: DocumentLog, first: np.int64, second: np.int64) -> np.int64:
    """Return the number of a text, which may be a new one."""
    number = find(log.texts, first, second)
    if number < 0:
        log.facts[FREE_TEXTS] -= 1
        number = np.int64(log.free_texts[log.facts[FREE_TEXTS]])
        log.newest[number] = NONE
        log.text_words[number, 0] = first
        log.text_words[number, 1] = second
        put(log.texts, first, second, number)
    return number


@inline
def forget_text(log: DocumentLog, number: np.int64) -> None:
    """Free the number of a text that no document has any more."""
    remove(log.texts, log.text_words[number, 0], log.text_words[number, 1])
    log.newest[number] = NONE
    log.free_texts[log.facts[FREE_TEXTS]] = number
    log.facts[FREE_TEXTS] += 1


@call_lean
def append_document(
    log: DocumentLog,
    time: np.int64,
    number: np.int64,
    rows: tuple[Int32s, Int32s, Int32s],
    bounds: tuple[int, int],
) -> int:
    """Append a document without its values, and return its number in the log."""
    facts = log.facts
    document = facts[NEXT_DOCUMENT]
    place = document & (len(log.times) - 1)
    log.times[place] = time
    log.ids[place] = number
    log.row_starts[place] = facts[NEXT_ROW]
    mask = len(log.edges) - 1
    for row in range(bounds[0], bounds[1]):
        at = facts[NEXT_ROW] & mask
        log.edges[at] = rows[0][row]
        log.uppers[at] = rows[1][row]
        log.lowers[at] = rows[2][row]
        facts[NEXT_ROW] += 1
    log.row_ends[place] = facts[NEXT_ROW]
    log.value_starts[place] = facts[NEXT_VALUE]
    log.value_ends[place] = facts[NEXT_VALUE]
    facts[NEXT_DOCUMENT] += 1
    return int(document)


@call_lean
def append_value(
    log: DocumentLog, document: int, node: np.int32, first: np.int64, second: np.int64
) -> None:
    """Append a value of the newest document; it is not linked yet to those of the same text."""
    at = log.facts[NEXT_VALUE] & (len(log.before) - 1)
    log.value_documents[at] = document
    log.value_nodes[at] = node
    log.value_texts[at] = text_number(log, first, second)
    log.facts[NEXT_VALUE] += 1
    log.value_ends[document & (len(log.times) - 1)] = log.facts[NEXT_VALUE]


@call_lean
def first_row_of(log: DocumentLog, document: int, node: np.int32) -> int:
    """Return the first row of a document whose lower node is `node` or one behind it."""
    place = document & (len(log.times) - 1)
    mask = len(log.edges) - 1
    low, high = log.row_starts[place], log.row_ends[place]
    while low < high:
        middle = (low + high) >> 1
        if log.lowers[middle & mask] < node:
            low = middle + 1
        else:
            high = middle
    return int(low)
