from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from eventide.operators.xml.bound_nodes import JoinedDocuments
from eventide.operators.xml.join_documents import JoinDocuments
from eventide.plan.xml.document_joins import DocumentJoin
from eventide.plan.xml.patterns import Axis, PatternStep, TreePattern
from tests.naive.xml.document_joins import JoinedRow, TimedDocument, joined
from tests.operators.xml.slow_paths import bound_nodes

NAMES = "ab"


def random_tree(rng: random.Random, depth: int) -> str:
    name = rng.choice(NAMES)
    attribute = f' id="{rng.randint(1, 2)}"' if rng.random() < 0.3 else ""
    count = rng.randint(1, 3) if depth else 0
    inner = "".join(random_tree(rng, depth - 1) for _ in range(count))
    return f"<{name}{attribute}>{inner or rng.randint(1, 2)}</{name}>"


def random_branch(rng: random.Random, depth: int, variables: list[str], prefix: str) -> PatternStep:
    name = "@id" if depth == 0 and rng.random() < 0.2 else rng.choice((*NAMES, "*"))
    variable = None
    if rng.random() < 0.7:
        variable = f"{prefix}{len(variables)}"
        variables.append(variable)
    below = 0 if depth == 0 or name.startswith("@") else rng.choice((0, 1, 1, 2))
    branches = tuple(random_branch(rng, depth - 1, variables, prefix) for _ in range(below))
    test = rng.choice("12") if not branches and rng.random() < 0.1 else None
    axis: Axis = "child" if rng.random() < 0.3 else "descendant"
    return PatternStep(axis, name, variable, test, branches)


def random_pattern(rng: random.Random, prefix: str) -> TreePattern:
    while True:
        variables: list[str] = []
        root = replace(random_branch(rng, 2, variables, prefix), axis="descendant")
        if variables:
            return TreePattern("S" if rng.random() < 0.8 else "T", root)


def random_join(rng: random.Random) -> DocumentJoin:
    left, right = random_pattern(rng, "l"), random_pattern(rng, "r")
    equal = {
        (rng.choice(left.variables), rng.choice(right.variables)) for _ in range(rng.randint(1, 3))
    }
    chosen = [
        tuple(rng.sample(pattern.variables, rng.randint(0, min(2, len(pattern.variables)))))
        for pattern in (left, right)
    ]
    return DocumentJoin(
        left,
        right,
        tuple(sorted(equal)),
        rng.randint(1, 4),
        rng.random() < 0.6,
        (chosen[0], chosen[1]),
    )


def random_documents(rng: random.Random, count: int) -> list[TimedDocument]:
    times = sorted(rng.randint(0, count) for _ in range(count))
    return [
        TimedDocument("T" if rng.random() < 0.2 else "S", ts, random_tree(rng, 2)) for ts in times
    ]


def rows_of(found: JoinedDocuments, queries: Sequence[DocumentJoin]) -> list[JoinedRow]:
    widths = [sum(map(len, query.selected)) for query in queries]
    return [
        (query, left, right, tuple(nodes[: widths[query]]))
        for query, left, right, nodes in zip(
            found.queries.tolist(),
            found.lefts.tolist(),
            found.rights.tolist(),
            found.nodes.tolist(),
            strict=True,
        )
    ]


def run(
    operator: JoinDocuments,
    queries: Sequence[DocumentJoin],
    documents: Sequence[TimedDocument],
    rng: random.Random,
    dumps: bool = False,
) -> list[JoinedRow]:
    """Return the rows for documents that come in batches."""
    for number, query in enumerate(queries):
        operator.queries.add(number, query)
    state = operator.initial_state()
    rows: list[JoinedRow] = []
    for start, batch in in_batches(documents, rng):
        state, found = operator.step(state, bound_nodes(operator.queries, batch, start))
        rows += rows_of(found, queries)
        if dumps:
            state = operator.load(operator.dump(state))
    return rows


def in_batches(
    documents: Sequence[TimedDocument], rng: random.Random
) -> Iterator[tuple[int, Sequence[TimedDocument]]]:
    start = 0
    while start < len(documents):
        stop = start + rng.choice((1, 2, 5))
        yield start, documents[start:stop]
        start = stop


@pytest.mark.parametrize("seed", range(20))
def test_joins_agree_with_trying_all_embeddings(seed: int) -> None:
    rng = random.Random(seed)
    queries = [random_join(rng) for _ in range(12)]
    documents = random_documents(rng, 12)
    expected = joined(queries, documents)
    for entries in (0, 1, 20, 1000):
        operator = JoinDocuments(view_entries=entries)
        rows = run(operator, queries, documents, rng, dumps=entries == 20)
        assert len(rows) == len({*rows})
        assert {*rows} == expected


@pytest.mark.parametrize("seed", range(8))
def test_queries_that_come_and_go_answer_as_if_they_were_alone(seed: int) -> None:
    rng = random.Random(seed)
    operator = JoinDocuments(view_entries=rng.choice((0, 10, 1000)))
    state = operator.initial_state()
    documents = random_documents(rng, 24)
    queries: list[DocumentJoin] = []
    spans: list[tuple[int, int]] = []
    rows: list[JoinedRow] = []
    for start, batch in in_batches(documents, rng):
        for number in [each for each, (_, stop) in enumerate(spans) if stop == len(documents)]:
            if rng.random() < 0.15:
                operator.queries.drop(number)
                spans[number] = spans[number][0], start
        for _ in range(rng.randint(0, 6)):
            again = queries and rng.random() < 0.5
            queries.append(rng.choice(queries) if again else random_join(rng))
            operator.queries.add(len(queries) - 1, queries[-1], start)
            spans.append((start, len(documents)))
        state, found = operator.step(state, bound_nodes(operator.queries, batch, start))
        rows += rows_of(found, queries)
    expected = {row for row in joined(queries, documents) if alive(spans[row[0]], row[1], row[2])}
    assert len(rows) == len({*rows})
    assert {*rows} == expected
    for number in range(len(queries)):
        if number in operator.queries:
            operator.queries.drop(number)
    assert not operator.queries.edges.edges
    assert not operator.queries.templates
    assert not operator.queries.row_count


def alive(span: tuple[int, int], one: int, other: int) -> bool:
    return span[0] <= min(one, other) and max(one, other) < span[1]
