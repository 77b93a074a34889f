"""Joins of documents for all queries at once: state, steps, and what is written of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from eventide.kernels.compiled import Int64s
from eventide.kernels.xml.document_log import (
    FIRST_DOCUMENT,
    FIRST_VALUE,
    NEXT_DOCUMENT,
    NEXT_VALUE,
    NONE,
    DocumentLog,
    empty_log,
    with_room,
)
from eventide.kernels.xml.join_documents import NewDocuments, join_documents
from eventide.kernels.xml.join_pair import LEFT_DOCUMENT, NODES, RIGHT_DOCUMENT, ROW
from eventide.kernels.xml.join_programs import JoinPrograms, JoinSpace
from eventide.kernels.xml.joined_rows import count_asking, distinct_rows, write_asking
from eventide.kernels.xml.views import Views, empty_views, with_texts
from eventide.operators.operator import Size
from eventide.operators.stateful import Stateful
from eventide.operators.xml.bound_nodes import BoundNodes, JoinedDocuments
from eventide.operators.xml.join_queries import LONGEST_US, JoinQueries
from eventide.operators.xml.written import read_log, write_log

VIEW_ENTRIES = 1 << 20
"""Entries of all views together: sixteen bytes each."""


@dataclass(slots=True)
class DocumentJoinState:
    """The documents that newer ones may still be joined with."""

    log: DocumentLog
    views: Views


@dataclass(frozen=True, slots=True)
class JoinedRows:
    """Distinct rows, before they are given to the queries that ask for them."""

    rows: Int64s
    lefts: Int64s
    """By row: the place of the earlier document in the log."""
    rights: Int64s

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class JoinDocuments(Stateful[DocumentJoinState]):
    """For each query all pairs of documents that fit its patterns and have equal values.

    Queries may be added and dropped between steps. One that is added counts the documents from a
    number on, as if it had been alone.
    """

    queries: JoinQueries = field(default_factory=JoinQueries, compare=False, repr=False)
    view_entries: int = field(default=VIEW_ENTRIES, compare=False)

    def initial_state(self) -> DocumentJoinState:
        """Return the state before the first document."""
        return DocumentJoinState(empty_log(), empty_views(self.view_entries))

    def step(
        self, state: DocumentJoinState, documents: BoundNodes
    ) -> tuple[DocumentJoinState, JoinedDocuments]:
        """Take documents, none older than those before; return the rows that they complete."""
        found = self.found(state, documents)
        return state, self.asked(state, found)

    def found(self, state: DocumentJoinState, documents: BoundNodes) -> JoinedRows:
        """Take documents; return the rows of templates, whichever queries have them."""
        return self.found_in_order(state, documents.in_order())

    def found_in_order(self, state: DocumentJoinState, new: NewDocuments) -> JoinedRows:
        """Take documents as kernels want them; return the rows of templates."""
        programs = self.queries.programs
        rows, count = _joined(state, programs, new, self.queries.space, self.queries.reach_us)
        count = distinct_rows(rows, count, programs.exact)
        mask = len(state.log.times) - 1
        rows = rows[:count]
        return JoinedRows(rows, rows[:, LEFT_DOCUMENT] & mask, rows[:, RIGHT_DOCUMENT] & mask)

    def asked(self, state: DocumentJoinState, found: JoinedRows) -> JoinedDocuments:
        """Return a row for each query that asks for a found one."""
        times, ids = state.log.times, state.log.ids
        earlier, later = ids[found.lefts], ids[found.rights]
        early_times, late_times = times[found.lefts], times[found.rights]
        starts, asking = self.queries.asking
        elapsed = late_times - early_times
        count = count_asking(found.rows, elapsed, earlier, starts, asking)
        out = np.empty((count, 2), np.int64)
        write_asking(found.rows, elapsed, earlier, starts, asking, out)
        of_row = out[:, 1]
        turned = self.queries.turned[found.rows[:, ROW]][of_row]
        lefts, rights = earlier[of_row], later[of_row]
        left_times, right_times = early_times[of_row], late_times[of_row]
        return JoinedDocuments(
            out[:, 0],
            np.where(turned, rights, lefts),
            np.where(turned, lefts, rights),
            np.where(turned, right_times, left_times),
            np.where(turned, left_times, right_times),
            found.rows[of_row, NODES:],
        )

    def write(self, state: DocumentJoinState) -> bytes:
        """Write the documents, and which edges their rows are of."""
        return write_log(type(self).__name__, state.log, self.queries.edges)

    def read(self, written: bytes) -> DocumentJoinState:
        """Read documents for the queries that there are."""
        new = read_log(type(self).__name__, written, self.queries.edges)
        state = self.initial_state()
        nothing = JoinQueries()
        variables = np.full(max(1, self.queries.edges.count), NONE, np.int32)
        programs = nothing.programs._replace(variables=variables)
        _joined(state, programs, new, nothing.space, LONGEST_US)
        return state

    def size(self, state: DocumentJoinState) -> Size:
        """Return how many documents and values there are, and the bytes of all arrays."""
        facts = state.log.facts
        documents = facts[NEXT_DOCUMENT] - facts[FIRST_DOCUMENT]
        values = facts[NEXT_VALUE] - facts[FIRST_VALUE]
        arrays = [*state.log, *state.log.texts, *state.views]
        held = sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))
        return Size(int(documents + values), held)


def _joined(
    state: DocumentJoinState,
    programs: JoinPrograms,
    new: NewDocuments,
    space: JoinSpace,
    reach_us: int,
) -> tuple[Int64s, int]:
    """Join documents with those of a state, which keeps them."""
    state.log = with_room(state.log, len(new.times), len(new.edges), len(new.nodes))
    state.views = with_texts(state.views, len(state.log.newest))
    return join_documents(programs, state.log, state.views, new, space, reach_us)
