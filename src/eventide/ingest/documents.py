"""XML documents as they are given, from memory or from files, checked before they are stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from eventide.documents.encoded import written_as_declared
from eventide.documents.nodes import Nodes
from eventide.documents.read import MOST_BYTES, read_documents
from eventide.errors import IngestError

BYTES_AT_ONCE = 4 << 20
"""Documents of so many bytes are read at once."""
XML = ".xml"
_HINT = "pass bytes, the text of a document, a Path of a file or a folder, or a list of these"


@dataclass(frozen=True, slots=True)
class GivenDocument:
    """The bytes of a document, and what errors call it."""

    content: bytes
    name: str


def given_documents(data: object) -> Iterator[GivenDocument]:
    """Yield the documents that a caller passes: bytes, texts, paths, or several of these."""
    several: Iterable[object] = (data,)
    if isinstance(data, Iterable) and not isinstance(data, (bytes, bytearray, memoryview, str)):
        several = data
    for number, each in enumerate(several):
        if isinstance(each, Path):
            for path in document_files(each):
                yield GivenDocument(bytes_of(path), str(path))
        elif isinstance(each, (bytes, bytearray, memoryview)):
            yield GivenDocument(bytes(each), f"document {number}")
        elif isinstance(each, str):
            yield GivenDocument(text_bytes(each, number), f"document {number}")
        else:
            message = f"document {number} is {type(each).__name__}"
            raise IngestError(message, hint=_HINT)


def text_bytes(text: str, number: int) -> bytes:
    """Return a text of XML as UTF-8; refuse what was meant as the name of a file."""
    if not text.lstrip("\ufeff \t\r\n").startswith("<"):
        message = f"document {number} is a text that does not begin with <: {text!r:.60}"
        raise IngestError(message, hint="pass the name of a file as a Path")
    try:
        return written_as_declared(text)
    except IngestError as error:
        error.message = f"document {number}: {error.message}"
        raise
    except UnicodeEncodeError as error:
        message = f"document {number} has half a character, {text[error.start]!r}"
        raise IngestError(message, hint="read the text as UTF-8") from None


def document_files(path: Path) -> list[Path]:
    """Return a file, or the XML files in a folder and its folders, in order of their names."""
    if not path.is_dir():
        return [path]
    return sorted(each for each in path.rglob("*") if each.suffix.lower() == XML)


def bytes_of(path: Path) -> bytes:
    """Return the bytes of a file; refuse one that is too large before it is read."""
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            message = f"{path}: a document of {size:,} bytes"
            raise IngestError(message, hint=f"at most {MOST_BYTES:,} are read: cut it into items")
        return path.read_bytes()
    except OSError as error:
        message = f"cannot read {path}: {error.strerror or error}"
        raise IngestError(message, hint="check the path and the permissions") from error


@dataclass(frozen=True, slots=True)
class ReadDocuments:
    """Some documents, and their nodes."""

    given: Sequence[GivenDocument]
    nodes: Nodes


def read_given(documents: Iterable[GivenDocument]) -> Iterator[ReadDocuments]:
    """Read documents, some at a time; an error names the one that is hostile or broken."""
    for part in _parts(documents):
        try:
            nodes = read_documents([each.content for each in part])
        except IngestError:
            for each in part:
                try:
                    read_documents([each.content])
                except IngestError as error:
                    error.message = f"{each.name}: {error.message}"
                    raise
            raise
        yield ReadDocuments(part, nodes)


def _parts(documents: Iterable[GivenDocument]) -> Iterator[list[GivenDocument]]:
    part: list[GivenDocument] = []
    size = 0
    for each in documents:
        part.append(each)
        size += len(each.content)
        if size >= BYTES_AT_ONCE:
            yield part
            part, size = [], 0
    if part:
        yield part
