"""The example of the source, and the edges of what joins promise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from eventide.errors import PlanError, StateError
from eventide.kernels.xml.views import CACHED
from eventide.operators.xml.join_documents import JoinDocuments
from eventide.plan.xml.document_joins import DocumentJoin
from eventide.plan.xml.patterns import PatternStep, TreePattern
from tests.naive.xml.document_joins import JoinedRow, TimedDocument, joined
from tests.operators.xml.slow_paths import bound_nodes
from tests.operators.xml.test_join_documents import rows_of

BOOK = TimedDocument(
    "S",
    10,
    "<book><authors><author>Danny Ayers</author><author>Andrew Watt</author></authors>"
    "<title>Beginning RSS and Atom Programming</title>"
    "<category>Scripting &amp; Programming</category>"
    "<category>Web Site Development</category></book>",
)
BLOG = TimedDocument(
    "S",
    20,
    "<blog><authors><author>Danny Ayers</author></authors>"
    "<title>Beginning RSS and Atom Programming</title>"
    "<category>Book Announcement</category>"
    "<category>Scripting &amp; Programming</category></blog>",
)


def pattern(root: str, *variables: str, stream: str = "S") -> TreePattern:
    """Return a pattern with a variable for its root, x, and for each name below it."""
    below = tuple(PatternStep("descendant", name, name) for name in variables)
    return TreePattern(stream, PatternStep("descendant", root, "x", None, below))


def both(left: str, right: str, *names: str, within: int = 100) -> DocumentJoin:
    """Return a join by values of equal names that selects all variables."""
    one, other = pattern(left, *names), pattern(right, *names)
    equal = tuple((name, name) for name in names)
    return DocumentJoin(one, other, equal, within, selected=(one.variables, other.variables))


def run(queries: Sequence[DocumentJoin], *documents: TimedDocument) -> list[JoinedRow]:
    operator = JoinDocuments()
    for number, query in enumerate(queries):
        operator.queries.add(number, query)
    _, found = operator.step(operator.initial_state(), bound_nodes(operator.queries, documents))
    rows = sorted(rows_of(found, queries))
    assert rows == sorted(joined(queries, documents))
    return rows


SOURCE = [
    both("book", "blog", "author", "title"),
    both("book", "blog", "author", "category"),
    both("blog", "blog", "author", "title"),
]


def test_the_example_of_the_source() -> None:
    operator = JoinDocuments()
    for number, query in enumerate(SOURCE):
        operator.queries.add(number, query)
    nodes = bound_nodes(operator.queries, [BOOK, BLOG])
    edges = operator.queries.edges.edges
    pairs = {
        (int(place), edges[edge].path.steps[-1].name, int(upper), int(lower))
        for place, edge, upper, lower in zip(
            nodes.row_documents.tolist(),
            nodes.edges.tolist(),
            nodes.uppers.tolist(),
            nodes.lowers.tolist(),
            strict=True,
        )
        if not edges[edge].is_variable
    }
    # Tables 6.4 (c) and (e).
    assert pairs == {
        *((0, "author", 0, 2), (0, "author", 0, 3), (0, "title", 0, 4)),
        *((0, "category", 0, 5), (0, "category", 0, 6)),
        *((1, "author", 0, 2), (1, "title", 0, 3), (1, "category", 0, 4), (1, "category", 0, 5)),
    }
    # Tables 6.4 (a) and (f): one template with three rows, two of which match.
    assert list(operator.queries.templates.values()) == [3]
    assert operator.queries.row_count == 3
    assert run(SOURCE, BOOK, BLOG) == [
        (0, 0, 1, (0, 2, 4, 0, 2, 3)),
        (1, 0, 1, (0, 2, 5, 0, 2, 5)),
    ]


def at(ts: int, text: str, stream: str = "S") -> TimedDocument:
    return TimedDocument(stream, ts, text)


ONE = "<a><b>1</b></a>"
SAME = DocumentJoin(pattern("a", "b"), pattern("a", "b"), (("b", "b"),), 5)


@pytest.mark.parametrize(
    ("times", "ordered", "pairs"),
    [
        ((0, 0), True, []),
        ((0, 5), True, [(0, 1)]),
        ((0, 6), True, []),
        ((0, 0), False, [(0, 1), (1, 0)]),
        ((0, 5), False, [(0, 1), (1, 0)]),
        ((0, 6), False, []),
        ((0, 3, 6), True, [(0, 1), (1, 2)]),
    ],
)
def test_how_far_documents_may_be_apart(
    times: Sequence[int], ordered: bool, pairs: list[tuple[int, int]]
) -> None:
    documents = [at(ts, ONE) for ts in times]
    rows = run([replace(SAME, ordered=ordered)], *documents)
    assert [(one, other) for _, one, other, _ in rows] == pairs


def test_windows_of_queries_with_the_same_row_differ() -> None:
    queries = [replace(SAME, within_us=within) for within in (3, 10, 7, 10)]
    operator = JoinDocuments()
    for number, query in enumerate(queries):
        operator.queries.add(number, query)
    assert operator.queries.row_count == 1
    rows = run(queries, at(0, ONE), at(7, ONE))
    assert [query for query, *_ in rows] == [1, 2, 3]


def test_there_is_one_row_for_what_is_selected() -> None:
    many = "<a><b>1</b><b>1</b><b>2</b></a>"
    only_roots = replace(SAME, selected=(("x",), ("x",)))
    all_nodes = replace(SAME, selected=(("x", "b"), ("x", "b")))
    rows = run([SAME, only_roots, all_nodes], at(0, many), at(1, many))
    assert [len([row for row in rows if row[0] == query]) for query in range(3)] == [1, 1, 5]


def test_values_are_those_of_all_text_inside_and_of_attributes() -> None:
    join = DocumentJoin(pattern("a", "b"), pattern("a", "@b"), (("b", "@b"),), 5)
    documents = at(0, "<a><b> x<i>y</i> z</b></a>"), at(1, '<a b=" xy z"/>'), at(2, '<a b="xyz"/>')
    assert [row[:3] for row in run([join], *documents)] == [(0, 0, 1)]


def test_conditions_that_do_not_join_tell_variables_apart() -> None:
    """With paths alone the first query would take documents without an isbn."""
    with_isbn = TreePattern(
        "S",
        PatternStep(
            "descendant",
            "a",
            None,
            None,
            (PatternStep("child", "isbn"), PatternStep("child", "b", "b")),
        ),
    )
    queries = [DocumentJoin(with_isbn, pattern("a", "b"), (("b", "b"),), 5), SAME]
    rows = run(queries, at(0, ONE), at(1, "<a><isbn/><b>1</b></a>"), at(2, ONE))
    assert [row[:3] for row in rows] == [(0, 1, 2), (1, 0, 1), (1, 0, 2), (1, 1, 2)]


def test_streams_are_not_mixed_up() -> None:
    queries = [replace(SAME, right=pattern("a", "b", stream="T"))]
    rows = run(queries, at(0, ONE), at(1, ONE), at(2, ONE, "T"), at(3, ONE, "T"))
    assert [row[1:3] for row in rows] == [(0, 2), (0, 3), (1, 2), (1, 3)]


def test_a_template_that_looks_the_same_turned_gives_each_row_once() -> None:
    left = TreePattern(
        "S",
        PatternStep(
            "descendant",
            "a",
            "x",
            None,
            (PatternStep("child", "b", "p"), PatternStep("child", "b", "q")),
        ),
    )
    query = DocumentJoin(left, left, (("p", "p"), ("q", "q")), 5, selected=(("p", "q"), ("p", "q")))
    two = "<a><b>1</b><b>2</b></a>"
    assert len(run([query], at(0, two), at(1, two))) == 4


def test_queries_that_differ_in_names_only_share_their_row() -> None:
    def named(*names: str) -> DocumentJoin:
        below = tuple(
            PatternStep("child", tag, name) for tag, name in zip("bcd", names, strict=True)
        )
        one = TreePattern("S", PatternStep("descendant", "a", "x", None, below))
        other = TreePattern("S", PatternStep("descendant", "a", "x", None, below[::-1]))
        return DocumentJoin(one, other, ((names[0], names[1]), (names[2], names[0])), 5)

    operator = JoinDocuments()
    operator.queries.add(0, named("p", "q", "r"))
    operator.queries.add(1, named("u", "v", "w"))
    operator.queries.add(2, replace(named("k", "l", "m"), within_us=9))
    assert operator.queries.row_count == 1


@pytest.mark.parametrize("entries", [0, 1, 1000])
def test_documents_that_have_gone_leave_nothing(entries: int) -> None:
    operator = JoinDocuments(view_entries=entries)
    operator.queries.add(0, SAME)
    state = operator.initial_state()
    sizes = []
    for ts in range(400):
        text = f"<a><b>{ts // 3}</b></a>"
        state, found = operator.step(state, bound_nodes(operator.queries, [at(ts, text)], ts))
        assert len(found) == ts % 3
        sizes.append(operator.size(state).tuples)
    assert sizes[10:] == [sizes[10]] * len(sizes[10:])
    assert len(state.log.times) <= 16
    assert int((state.log.newest >= 0).sum()) == 3
    assert state.views.facts[CACHED] <= 3
    state, _ = operator.step(state, bound_nodes(operator.queries, [at(9999, "<c/>")], 9999))
    assert int((state.log.newest >= 0).sum()) == 0
    assert int((state.log.texts.handles >= 0).sum()) == 0
    assert state.views.facts[CACHED] == 0


def test_a_state_that_was_written_goes_on_with_other_numbers_of_edges() -> None:
    before, after = JoinDocuments(), JoinDocuments()
    for number, query in enumerate(SOURCE):
        before.queries.add(number, query)
    for number in (2, 1, 0):
        after.queries.add(number, SOURCE[number])
    state, _ = before.step(before.initial_state(), bound_nodes(before.queries, [BOOK]))
    state = after.load(before.dump(state))
    _, found = after.step(state, bound_nodes(after.queries, [BLOG], 1))
    assert sorted(rows_of(found, SOURCE)) == sorted(joined(SOURCE, [BOOK, BLOG]))


def test_a_damaged_state_is_refused() -> None:
    operator = JoinDocuments()
    operator.queries.add(0, SAME)
    state, _ = operator.step(
        operator.initial_state(), bound_nodes(operator.queries, [at(0, ONE), at(1, ONE)])
    )
    state.log.times[:2] = 5, 4
    with pytest.raises(StateError, match="do not ascend"):
        operator.load(operator.dump(state))
    state.log.times[:2] = 4, 5
    state.log.lowers[0] = np.int32(-7)
    with pytest.raises(StateError, match="nodes are in -7"):
        operator.load(operator.dump(state))


def test_a_number_is_of_one_query() -> None:
    operator = JoinDocuments()
    operator.queries.add(3, SAME)
    with pytest.raises(PlanError, match="query 3 joins documents already"):
        operator.queries.add(3, SAME)
