from __future__ import annotations

import xml.etree.ElementTree as ET

import pyarrow as pa
import pytest

from eventide.lang.xscl.queries import parse_query
from eventide.operators.xml.join_documents import JoinDocuments
from eventide.operators.xml.written_nodes import written_rows
from eventide.plan.xml.document_joins import DocumentJoin
from tests.naive.xml.document_joins import TimedDocument
from tests.operators.xml.slow_paths import bound_nodes

ORDER = TimedDocument(
    "feed",
    0,
    '<day><order id="7"><by>O\'Neil &amp; "Co"</by><sku>a<b>1</b></sku></order></day>',
)
COMPLAINT = TimedDocument(
    "feed", 5, '<complaint><from>O\'Neil &amp; "Co"</from><item>a1</item><item>z</item></complaint>'
)
JOIN = (
    "FROM feed//order->o[@id->n][by->c][sku->k] FOLLOWED BY {c = c2 AND k = k2, 3d} "
    "feed//complaint[from->c2][item->k2]"
)


def run(text: str, *documents: TimedDocument) -> dict[str, pa.Array]:
    query = parse_query(text).query
    assert isinstance(query.source, DocumentJoin)
    operator = JoinDocuments()
    operator.queries.add(0, query.source)
    _, found = operator.step(operator.initial_state(), bound_nodes(operator.queries, documents))
    texts = {number: each.text.encode() for number, each in enumerate(documents)}
    return written_rows(query, found, texts)


def test_columns_are_string_values() -> None:
    columns = run(f"SELECT n, c2 AS who, k, o AS whole {JOIN}", ORDER, COMPLAINT)
    assert {name: column.to_pylist() for name, column in columns.items()} == {
        "n": ["7"],
        "who": ['O\'Neil & "Co"'],
        "k": ["a1"],
        "whole": ['O\'Neil & "Co"a1'],
    }


def test_without_select_both_stand_below_a_new_root() -> None:
    (document,) = run(JOIN, ORDER, COMPLAINT)["document"].to_pylist()
    joined = ET.fromstring(document)
    assert (joined.tag, [each.tag for each in joined]) == ("joined", ["order", "complaint"])
    assert ET.canonicalize(ET.tostring(joined[1]).decode()) == ET.canonicalize(COMPLAINT.text)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (
            "<a who=\"{c}\" no='{n}'>{k}: {string(k2)}</a>",
            '<a who="O\'Neil &amp; &quot;Co&quot;" no="7"><sku>a<b>1</b></sku>: a1</a>',
        ),
        ("<a>{n}{n}</a>", "<a>77</a>"),
        ("<a b='1 > 0 {k}'/>", "<a b='1 > 0 a1'/>"),
        ("<a>nothing</a>", "<a>nothing</a>"),
    ],
)
def test_documents_are_put_together(written: str, expected: str) -> None:
    later = TimedDocument("feed", 9, COMPLAINT.text)
    documents = run(f"SELECT {written} {JOIN}", ORDER, COMPLAINT, later)["document"].to_pylist()
    assert [ET.canonicalize(each.decode()) for each in documents] == 2 * [ET.canonicalize(expected)]
