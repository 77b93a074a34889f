"""Documents → nodes, against ElementTree, which reads the same bytes in its own way."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.documents.nodes import Nodes
from eventide.documents.read import MOST_LEVELS, read_documents
from eventide.documents.write import written
from eventide.errors import IngestError

NAMES = st.sampled_from(["a", "b", "{u}a", "{v}c", "d-e.f"])
TEXTS = st.text(st.sampled_from("x é日𝄞<&>\"' \n"), max_size=4)


def elements(depth: int) -> st.SearchStrategy[ET.Element]:
    inside = st.lists(elements(depth - 1), max_size=3) if depth else st.just([])
    attributes = st.dictionaries(NAMES, TEXTS, max_size=2)
    return st.builds(element, NAMES, attributes, TEXTS, inside, TEXTS)


def element(
    name: str, attributes: dict[str, str], text: str, inside: list[ET.Element], tail: str
) -> ET.Element:
    found = ET.Element(name, attributes)
    found.text, found.tail = text, tail
    found.extend(inside)
    return found


def text_of(top: ET.Element, encoding: str = "utf-8") -> bytes:
    top.tail = None  # nothing stands behind the root element
    text: bytes = ET.tostring(top, encoding, xml_declaration=True)
    return text


def naive_nodes(top: ET.Element) -> list[tuple[str, int, int, str]]:
    """Return name, parent, end and string value of each node, by going through the tree."""
    found: list[tuple[str, int, int, str]] = []

    def visit(node: ET.Element, parent: int) -> None:
        place = len(found)
        found.append((node.tag, parent, 0, "".join(node.itertext())))
        for name, value in node.attrib.items():
            found.append((f"@{name}", place, len(found) + 1, value))
        for each in node:
            visit(each, place)
        found[place] = (*found[place][:2], len(found), found[place][3])

    visit(top, -1)
    return found


def rows(nodes: Nodes, document: int) -> list[tuple[str, int, int, str]]:
    first, end = nodes.firsts[document : document + 2].tolist()
    return [
        (
            nodes.name_of(node),
            max(int(nodes.parent[node]) - first, -1),
            int(nodes.end[node]) - first,
            nodes.value_of(node),
        )
        for node in range(first, end)
    ]


@given(st.lists(st.none() | elements(3), max_size=4), st.sampled_from(["utf-8", "utf-16"]))
def test_nodes_are_those_of_the_tree(tops: list[ET.Element | None], encoding: str) -> None:
    documents = [None if top is None else text_of(top, encoding) for top in tops]
    nodes = read_documents(documents)
    assert nodes.document_count == len(tops)
    for number, document in enumerate(documents):
        expected = [] if document is None else naive_nodes(ET.fromstring(document))
        assert sorted(rows(nodes, number)) == sorted(expected)
        # Attributes may come in any order, elements may not.
        own, theirs = rows(nodes, number), expected
        assert [row for row in own if row[0][0] != "@"] == [r for r in theirs if r[0][0] != "@"]


@given(elements(3))
def test_what_is_written_is_read_as_the_same(top: ET.Element) -> None:
    nodes = read_documents([text_of(top)])
    again = written(nodes, 0)
    assert rows(read_documents([again.encode()]), 0) == rows(nodes, 0)
    assert ET.fromstring(again).tag == top.tag


@pytest.mark.parametrize(
    "encoding", ["shift_jis", "gb18030", "utf-16", "utf-32", "euc_jp", "utf-8-sig"]
)
def test_documents_have_any_encoding(encoding: str) -> None:
    declared = encoding.removesuffix("-sig")
    text = f"<?xml version='1.0' encoding='{declared}'?><a b='日'>日本</a>"
    assert rows(read_documents([text.encode(encoding)]), 0) == [
        ("a", -1, 2, "日本"),
        ("@b", 0, 2, "日"),
    ]


HOSTILE = [
    (b"<a><b></a>", "line 1, column 9: mismatched tag"),
    (b"", "line 1, column 1: no element found"),
    (b"<a/><b/>", "junk after document element"),
    (b'<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', "declares the entity 'x'"),
    (b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///x">]><a>&x;</a>', "declares the entity 'x'"),
    (b'<!DOCTYPE a [<!ENTITY % x "y">]><a/>', "declares the entity 'x'"),
    (b'<!DOCTYPE a SYSTEM "x.dtd"><a>&x;</a>', "nobody says what the entity 'x'"),
    (b"<a>&x;</a>", "undefined entity"),
    (b"<a>" * 10_000 + b"</a>" * 10_000, f"more than {MOST_LEVELS} levels"),
    (b"<?xml version='1.0' encoding='nope'?><a/>", "the encoding 'nope' is not known"),
    (b"<?xml version='1.0' encoding='punycode'?><a/>", "the encoding 'punycode' is not known"),
    (b"<a xmlns='%s'/>" % (b"u" * 5000), "the name of a namespace has 5,000 characters"),
    (b"<?xml version='1.0' encoding='utf-8'?><a>\xff</a>", "not well-formed"),
    (b"<?xml version='1.0' encoding='euc_jp'?><a>\xff</a>", "is not in the encoding 'euc_jp'"),
    (b"<x:a/>", "unbound prefix"),
    (b"<a b='1' b='2'/>", "duplicate attribute"),
    (b"\x00", "line 1, column 1"),
]


@pytest.mark.parametrize(("document", "message"), HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_broken_or_hostile_is_refused(document: bytes, message: str) -> None:
    with pytest.raises(IngestError) as caught:
        read_documents([b"<a/>", document])
    assert message in str(caught.value)
    assert caught.value.message.startswith("document 1: ")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (f"<!DOCTYPE a [<!ATTLIST b c CDATA '{'x' * 100}'>]><a>{'<b/>' * 11}</a>", "attributes"),
        (f"<a xmlns='{'u' * 100}'>{''.join(f'<b{n}/>' for n in range(11))}</a>", "names"),
    ],
)
def test_a_short_document_does_not_become_a_long_one(
    document: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written once, and is that of many elements, counts for each."""
    assert len(read_documents([document.encode()])) > 11
    monkeypatch.setattr("eventide.documents.read.MOST_BYTES", 1_000)
    with pytest.raises(IngestError, match=message):
        read_documents([document.encode()])


def test_a_document_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventide.documents.read.MOST_BYTES", 10)
    with pytest.raises(IngestError, match="a document of 11 bytes"):
        read_documents([b"<a>1234</a>"])
