"""Tuples of nodes against all embeddings of the twin."""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import EvaluationError
from eventide.lang.xscl.parse import parse_pattern
from eventide.operators.xml import stage as stages
from eventide.operators.xml import state_sets
from eventide.operators.xml.asked import AskedPattern
from eventide.operators.xml.stage import PathStage, string_values
from eventide.plan.xml.patterns import Axis, PatternStep, steps_of
from tests.exploring import EXPLORING
from tests.naive.xml import embeddings as naive
from tests.naive.xml.examples import DOCUMENTS, PATTERNS

Rows = list[tuple[int, tuple[int, ...]]]


def found(stage: PathStage, documents: Sequence[bytes | None], views: int) -> list[Rows]:
    """Return, for each view, its documents and tuples; nodes are counted from their document's."""
    rows: list[Rows] = [[] for _ in range(views)]
    for part in stage.find(documents):
        for view in range(views):
            document, nodes = part.of_view(view)
            firsts = part.tree.firsts[document]
            inside = (nodes - firsts[:, None]).tolist()
            rows[view] += zip(document.tolist(), map(tuple, inside), strict=True)
    return rows


def wanted(asked: Sequence[AskedPattern], documents: Sequence[bytes | None]) -> list[Rows]:
    return [
        [
            (number, tuple(node.number for node in nodes))
            for number, document in enumerate(documents)
            if document is not None
            for nodes in naive.tuples(pattern.root, document, view)
        ]
        for pattern in asked
        for view in pattern.views
    ]


@st.composite
def asked_patterns(draw: st.DrawFn) -> AskedPattern:
    root = draw(PATTERNS)
    count = sum(1 for _ in steps_of(root))
    named = AskedPattern.of_variables(root).views
    views = st.sets(st.integers(0, count - 1), max_size=3).map(lambda view: tuple(sorted(view)))
    return AskedPattern(root, (*named, *draw(st.lists(views, max_size=2))))


@given(
    st.lists(asked_patterns(), min_size=1, max_size=6),
    st.lists(st.one_of(st.none(), DOCUMENTS), min_size=1, max_size=5),
    st.booleans(),
)
@settings(max_examples=300)
def test_tuples_are_those_of_all_embeddings(
    asked: list[AskedPattern], documents: list[bytes | None], often: bool
) -> None:
    stage = PathStage(asked)
    views = sum(len(pattern.views) for pattern in asked)
    for _ in range(2 if often else 1):  # what is remembered changes nothing
        assert found(stage, documents, views) == wanted(asked, documents)


@given(st.lists(PATTERNS, min_size=1, max_size=4), st.lists(DOCUMENTS, min_size=1, max_size=6))
def test_little_room_changes_nothing(roots: list[PatternStep], documents: list[bytes]) -> None:
    asked = [AskedPattern.of_variables(root) for root in roots]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages, "ENOUGH_NODES", 1)
        patch.setattr(stages, "LEAST_ROOM", 1)
        patch.setattr(state_sets, "ENOUGH_STATES", 1)
        stage = PathStage(asked)
        for _ in range(2):
            assert found(stage, documents, len(asked)) == wanted(asked, documents)


def test_string_values_hold_all_text_inside() -> None:
    stage = PathStage([AskedPattern.of_variables(parse_pattern("s//a->x[.//@k->y]").pattern.root)])
    (part,) = stage.find(["<r><a k='1'>é<b>x</b> y</a></r>".encode()])
    _, nodes = part.of_view(0)
    values = [string_values(part.tree, nodes[:, column]).to_pylist() for column in range(2)]
    assert values == [["éx y"], ["1"]]


def test_many_nodes_of_many_paths_are_merged_in_order() -> None:
    document = b"<r>" + b"".join(b"<n%d><x/></n%d>" % (n, n) for n in range(9)) + b"<x/></r>"
    roots = [parse_pattern(f"s//n{n}/x").pattern.root for n in range(9)]
    asked = [AskedPattern.of_variables(parse_pattern("s//x->x").pattern.root)]
    asked += [AskedPattern.of_variables(root) for root in roots]
    assert found(PathStage(asked), [document], 10) == wanted(asked, [document])


def test_a_document_with_endless_witnesses_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "MOST_NODES", 1 << 14)
    pattern = parse_pattern("s//*->a[.//*->b][.//*->c][.//*->d]").pattern
    stage = PathStage([AskedPattern.of_variables(pattern.root)])
    document = b"<r>" + b"<x/>" * 200 + b"</r>"
    with pytest.raises(EvaluationError, match="too many witnesses of a pattern"):
        list(stage.find([document]))
    (part,) = stage.find([b"<r><x/></r>"])
    assert part.of_view(0)[1].tolist() == [[0, 1, 1, 1]]


def test_a_document_of_too_many_ways_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_sets, "MOST_STATES", 10)
    stage = PathStage([AskedPattern.of_variables(parse_pattern("s//a//b//c//d").pattern.root)])
    with pytest.raises(EvaluationError, match="more ways than are followed"):
        list(stage.find([b"<a><b><c><d><a><b><c><d/></c></b></a></d></c></b></a>"]))


def test_threads_share_what_is_learned() -> None:
    """Slices of a query run in threads, and find sets of states at the same time."""
    choose = random.Random(7)
    names = ["a", "b", "c", "d"]

    def document() -> bytes:
        path = [choose.choice(names) for _ in range(choose.randrange(1, 9))]
        text = "".join(f"<{name}>" for name in path)
        return (text + "".join(f"</{name}>" for name in reversed(path))).encode()

    paths = ("s//a//b->x", "s/a/b//c->x", "s//c[.//a]//d->x", "s//*/a->x")
    asked = [AskedPattern.of_variables(parse_pattern(path).pattern.root) for path in paths]
    parts = [[document() for _ in range(40)] for _ in range(16)]
    stage = PathStage(asked)
    with ThreadPoolExecutor(4) as threads:
        rows = list(threads.map(lambda part: found(stage, part, len(asked)), parts))
    assert rows == [wanted(asked, part) for part in parts]


@pytest.mark.parametrize(
    ("pattern", "document", "nodes"),
    [
        # What is below is kept only where all else of the pattern is there, too.
        ("s//a[b]/c->x", b"<r><a><c/></a><a><b/><c/></a><c/></r>", [[5]]),
        ("s//a[.//b]//c->x", b"<a><c/><a><b/><c/></a></a>", [[1], [4]]),
        ("s//a[. = 'x']/b->y", b"<r><a>z<b/></a><a>x<b/></a></r>", [[4]]),
        # Two embeddings with the same nodes under the variables are one witness.
        ("s//a[.//b->x][.//c->y]", b"<a><a><b/><c/></a></a>", [[2, 3]]),
        ("s//a//b->x", b"<a><a><b/></a></a>", [[2]]),
        ("s//a->x//a//b->y", b"<a><a><a><b/></a></a></a>", [[0, 3], [1, 3]]),
        # Steps without a variable are between, right inside or anywhere.
        ("s//a->x/b/c->y", b"<a><b><c/><d><c/></d></b><c/></a>", [[0, 2]]),
        ("s//a->x/*//c->y", b"<a><b><c/></b><c/></a>", [[0, 2]]),
        ("s//a->x//b/c->y", b"<a><b><c/><a><b><c/></b></a></b></a>", [[0, 2], [0, 5], [3, 5]]),
        ("s/a->x", b"<a><a/></a>", [[0]]),
    ],
)
def test_witnesses(pattern: str, document: bytes, nodes: list[list[int]]) -> None:
    stage = PathStage([AskedPattern.of_variables(parse_pattern(pattern).pattern.root)])
    (part,) = stage.find([document])
    assert part.of_view(0)[1].tolist() == nodes


def some_document(choose: random.Random, depth: int = 4) -> str:
    name = choose.choice("aabc")
    count = choose.choice([0, 1, 1, 2, 3]) if depth else 0
    inside = "".join(some_document(choose, depth - 1) for _ in range(count))
    key = choose.choice(["", "", " k='x'"])
    return f"<{name}{key}>{choose.choice(['', 'x'])}{inside}</{name}>"


def some_step(choose: random.Random, depth: int) -> PatternStep:
    axis: Axis = "child" if choose.random() < 0.4 else "descendant"
    name = choose.choice(["a", "a", "b", "c", "*", "@k"])
    below = tuple(some_step(choose, depth - 1) for _ in range(choose.randrange(3) if depth else 0))
    test = "x" if choose.random() < 0.1 else None
    return PatternStep(axis, name, choose.choice(["v", None]), test, () if name == "@k" else below)


@pytest.mark.parametrize("seed", range(40 if EXPLORING else 8))
def test_many_patterns_in_many_documents(seed: int) -> None:
    """Of many small patterns, most have some witnesses in some of the documents."""
    choose = random.Random(seed)
    asked = [AskedPattern.of_variables(some_step(choose, 2)) for _ in range(60)]
    documents = [some_document(choose).encode() for _ in range(12)]
    rows = found(PathStage(asked), documents, len(asked))
    assert rows == wanted(asked, documents)
    assert sum(map(bool, rows)) > 25
