from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest

from eventide.errors import StateError
from eventide.operators.xml.join_streams import JoinStreams
from eventide.plan.xml.document_joins import DocumentJoin
from eventide.plan.xml.document_queries import DocumentQuery, OutputColumn, OutputNode
from tests.naive.xml.document_joins import TimedDocument, bindings, joined
from tests.operators.xml.test_join_documents import in_batches, random_documents, random_join

TIMES = [("ts", pa.timestamp("us", "UTC")), ("start_ts", pa.timestamp("us", "UTC"))]
INPUT = pa.schema([TIMES[0], ("document", pa.binary())])


def operator_of(join: DocumentJoin) -> JoinStreams:
    nodes = [OutputNode(0, name, True) for name in join.selected[0]]
    nodes += [OutputNode(1, name, True) for name in join.selected[1]]
    columns = tuple(OutputColumn(f"c{place}", node) for place, node in enumerate(nodes))
    texts = [(column.name, pa.string()) for column in columns]
    return JoinStreams(DocumentQuery(join, columns), pa.schema([*TIMES, *texts]))


def rows_in(documents: list[TimedDocument], stream: str) -> pa.RecordBatch:
    chosen = [each for each in documents if each.stream == stream]
    columns = [
        pa.array([each.ts for each in chosen], pa.int64()).cast(TIMES[0][1]),
        pa.array([each.text.encode() for each in chosen], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=INPUT)


def expected(join: DocumentJoin, documents: list[TimedDocument]) -> Counter[tuple[object, ...]]:
    found: Counter[tuple[object, ...]] = Counter()
    for _, one, other, nodes in joined([join], documents):
        values = []
        for side, pattern, place in ((0, join.left, one), (1, join.right, other)):
            first = side * len(join.selected[0])
            numbers = nodes[first : first + len(join.selected[side])]
            bound = {
                node.number: node.value
                for each in bindings(pattern, documents[place])
                for node in each.values()
            }
            values += [bound[number] for number in numbers]
        times = sorted((documents[one].ts, documents[other].ts))
        found[(times[1], times[0], *values)] += 1
    return found


@pytest.mark.parametrize("seed", range(12))
def test_rows_are_those_of_all_pairs(seed: int) -> None:
    rng = random.Random(seed)
    join = random_join(rng)
    operator = operator_of(join)
    documents = random_documents(rng, 16)
    state, found = operator.initial_state(), Counter[tuple[object, ...]]()
    for _, batch in in_batches(documents, rng):
        inputs = tuple(rows_in(list(batch), stream) for stream in operator.streams)
        state, rows = operator.step(state, inputs, batch[-1].ts + 1)
        times = [rows.column(place).cast(pa.int64()).to_pylist() for place in (0, 1)]
        assert times[0] == sorted(times[0])
        others = [column.to_pylist() for column in rows.columns[2:]]
        found.update(zip(*times, *others, strict=True))
        state = operator.load(operator.dump(state))
    assert found == expected(join, documents)
    assert operator.size(state).bytes > 0


def test_documents_that_have_gone_are_forgotten_and_have_to_be_there() -> None:
    rng = random.Random(1)
    join = replace(random_join(rng), within_us=2)
    operator = operator_of(join)
    stream = operator.streams[0]
    state = operator.initial_state()
    for ts in range(50):
        batch = rows_in([TimedDocument(stream, ts, "<a><b>1</b></a>")], stream)
        empty = [batch.slice(0, 0)] * (len(operator.streams) - 1)
        state, _ = operator.step(state, (batch, *empty), ts + 1)
    assert list(state.documents) == [47, 48, 49]
    del state.documents[48]
    with pytest.raises(StateError, match="other documents"):
        operator.load(operator.dump(state))
