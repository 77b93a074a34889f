"""Documents are read once for several queries, if they are small, and by their bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from eventide.documents.nodes import Nodes
from eventide.documents.read import read_documents
from eventide.errors import IngestError
from eventide.operators.xml import read_once
from eventide.operators.xml.read_once import nodes_of


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Sequence[bytes | None]]]:
    """What has been read."""
    found: list[Sequence[bytes | None]] = []

    def noted(documents: Sequence[bytes | None]) -> Nodes:
        found.append(documents)
        return read_documents(documents)

    monkeypatch.setattr(read_once, "read_documents", noted)
    read_once._READ.clear()
    yield found
    read_once._READ.clear()


def test_equal_batches_are_read_once(read: list[Sequence[bytes | None]]) -> None:
    batches: list[list[bytes | None]] = [[b"<a/>", None], [b"<b/>"], [None]]
    for _ in range(3):
        names = [nodes_of(list(batch)).names for batch in batches]
        assert names == [("a",), ("b",), ()]
    assert len(read) == len(batches)


def test_few_and_small_batches_are_remembered(
    read: list[Sequence[bytes | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_once, "MOST_BATCHES", 2)
    for name in "abcabc":
        nodes_of([f"<{name}/>".encode()])
    assert len(read) == 6
    assert len(read_once._READ) == 2
    monkeypatch.setattr(read_once, "MOST_BYTES", 3)
    for _ in range(2):
        nodes_of([b"<c/>"])
    assert len(read) == 8


def test_a_broken_document_is_refused_each_time(read: list[Sequence[bytes | None]]) -> None:
    for _ in range(2):
        with pytest.raises(IngestError, match="mismatched tag"):
            nodes_of([b"<a></b>"])
    assert len(read) == 2
