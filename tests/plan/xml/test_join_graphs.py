from __future__ import annotations

import pytest

from eventide.errors import PlanError
from eventide.plan.xml.document_joins import DocumentJoin
from eventide.plan.xml.join_graphs import join_graph, reduced
from eventide.plan.xml.patterns import PatternStep, TreePattern


def step(
    name: str, *branches: PatternStep, to: str | None = None, test: str | None = None
) -> PatternStep:
    return PatternStep("descendant", name, to, test, branches)


BOOK = TreePattern(
    "s",
    step(
        "shop",
        step(
            "book",
            step("isbn"),
            step("by", step("author", step("born", to="b"), to="a")),
            step("title", to="t"),
            to="x",
        ),
    ),
)


@pytest.mark.parametrize(
    ("needed", "paths"),
    [
        # What is above the place where paths part goes, what hangs there stays as a condition.
        (
            {"a", "t"},
            [
                "s//shop//book[.//isbn]",
                "s//shop//book[.//isbn]//by//author[.//born]",
                "s//shop//book[.//isbn]//title",
            ],
        ),
        ({"a"}, ["s//shop//book[.//isbn][.//title]//by//author[.//born]"]),
        # A node that is needed stays, though one path goes through it.
        (
            {"x", "a"},
            [
                "s//shop//book[.//isbn][.//title]",
                "s//shop//book[.//isbn][.//title]//by//author[.//born]",
            ],
        ),
        (
            {"a", "b"},
            [
                "s//shop//book[.//isbn][.//title]//by//author",
                "s//shop//book[.//isbn][.//title]//by//author//born",
            ],
        ),
    ],
)
def test_a_side_keeps_the_nodes_that_are_needed_and_those_between(
    needed: set[str], paths: list[str]
) -> None:
    assert [str(node.path) for node in reduced(BOOK, needed)] == paths


def test_variables_and_the_order_of_branches_make_no_other_path() -> None:
    one = TreePattern("s", step("a", step("b", step("c"), to="v"), step("d", to="w"), to="x"))
    other = TreePattern("s", step("a", step("d", to="p"), step("b", step("c"), to="q")))
    mine, others = reduced(one, {"v", "w"}), reduced(other, {"p", "q"})
    assert [node.path for node in mine] == [node.path for node in others]


def test_equal_values_are_places_on_both_sides() -> None:
    join = DocumentJoin(BOOK, BOOK, (("t", "a"), ("a", "t"), ("t", "a")), 5, selected=((), ("x",)))
    graph = join_graph(join)
    assert graph.equal == ((1, 2), (2, 1))
    assert graph.selected == ((), (0,))


@pytest.mark.parametrize(
    ("equal", "within", "message"),
    [
        ((), 5, "without a value"),
        ((("a", "z"),), 5, "'z' is no variable"),
        ((("a", "a"),), 0, "within no time"),
    ],
)
def test_a_join_that_can_have_no_rows_is_refused(
    equal: tuple[tuple[str, str], ...], within: int, message: str
) -> None:
    with pytest.raises(PlanError, match=message):
        DocumentJoin(BOOK, BOOK, equal, within)
