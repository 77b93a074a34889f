"""Documents → nodes. Expat parses; what is hostile or broken is refused before it can hurt."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from xml.parsers import expat

import numpy as np

from eventide.documents.encoded import readable
from eventide.documents.nodes import Nodes
from eventide.errors import IngestError

MOST_BYTES = 64 << 20
"""A document of more is refused: it would be held in memory as a whole."""
MOST_LEVELS = 512
"""Elements inside elements of a document; people write some ten."""
MOST_OF_NAMESPACE = 4096
"""Characters of the name of a namespace: the parser copies it to each name that is in it."""
SEPARATOR = "}"
"""What the parser writes between the name of a namespace and a name in it."""


def read_documents(documents: Sequence[bytes | None]) -> Nodes:
    """Return the nodes of some documents; of one that is null there are none.

    >>> nodes = read_documents([b'<item id="7"><title>A <b>b</b></title></item>'])
    >>> [nodes.name_of(node) for node in range(len(nodes))]
    ['item', '@id', 'title', 'b']
    >>> nodes.value_of(0)
    'A b'
    """
    reader = _Reader()
    for number, document in enumerate(documents):
        if document is not None:
            try:
                reader.read(document)
            except IngestError as error:
                if len(documents) > 1:
                    error.message = f"document {number}: {error.message}"
                raise
        reader.firsts.append(len(reader.names))
    return reader.nodes()


class _Reader:
    """Takes what the parser says of one document after the other.

    Its methods are called for each element, which is most of the time that reading takes: so they
    append to lists and do nothing else.
    """

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        self.firsts = [0]
        self.names: list[int] = []
        self.parents: list[int] = []
        self.ends: list[int] = []
        self.starts: list[int] = []
        self.stops: list[int] = []
        self.pieces: list[str] = []
        self.length = 0
        self.attributes: list[int] = []
        """The nodes that are attributes, whose values stand behind all text."""
        self.values: list[str] = []
        self.open: list[int] = []
        self.letters = 0
        """The length of the names of a document that none had before."""
        self.declares = False
        """Whether a document declares attributes, which elements have without saying so."""
        self.values_length = 0
        """The length of the attributes of a document that declares some."""

    def read(self, document: bytes) -> None:
        """Take a document as a whole, or leave all as it was."""
        if len(document) > MOST_BYTES:
            message = f"a document of {len(document):,} bytes"
            raise IngestError(message, hint=f"at most {MOST_BYTES:,} are read: cut it into items")
        before = self._lengths()
        self.letters, self.values_length, self.declares = 0, 0, False
        data, encoding = readable(document)
        parser = expat.ParserCreate(encoding, SEPARATOR)
        parser.ordered_attributes = True
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartNamespaceDeclHandler = _check_namespace
        parser.AttlistDeclHandler = self._note_declared
        parser.EntityDeclHandler = _refuse_entity
        parser.SkippedEntityHandler = _refuse_reference
        try:
            parser.Parse(data, True)
        except expat.ExpatError as error:
            self._back_to(before)
            raise _broken(error) from None
        except (LookupError, ValueError, IngestError) as error:
            self._back_to(before)
            place = f"line {parser.CurrentLineNumber}, column {parser.CurrentColumnNumber + 1}"
            if isinstance(error, IngestError):
                error.message = f"{place}: {error.message}"
                raise
            message = f"{place}: {error}"
            raise IngestError(message, hint="documents are well-formed XML") from None

    def _start(self, name: str, attributes: list[str]) -> None:
        code = self.codes.get(name)
        if code is None:
            code = self._named(name)
        if self.declares:
            self._check_values(attributes)
        opened = self.open
        if len(opened) >= MOST_LEVELS:
            message = f"elements inside each other on more than {MOST_LEVELS} levels"
            raise IngestError(message, hint="such a document is refused")
        node = len(self.names)
        self.names.append(code)
        self.parents.append(opened[-1] if opened else -1)
        self.ends.append(0)
        self.starts.append(self.length)
        self.stops.append(0)
        opened.append(node)
        for place in range(0, len(attributes), 2):
            self._attribute(node, attributes[place], attributes[place + 1])

    def _attribute(self, element: int, name: str, value: str) -> None:
        written = f"@{name}"
        code = self.codes.get(written)
        if code is None:
            code = self._named(written)
        node = len(self.names)
        self.attributes.append(node)
        self.values.append(value)
        self.names.append(code)
        self.parents.append(element)
        self.ends.append(node + 1)
        self.starts.append(0)
        self.stops.append(0)

    def _named(self, name: str) -> int:
        """Return the number of a name that is new; names of a long namespace are much longer."""
        self.letters += len(name)
        if self.letters > MOST_BYTES:
            message = "the names of elements and attributes are too long, with their namespaces"
            raise IngestError(message, hint="such a document is refused")
        code = self.codes[name] = len(self.codes)
        return code

    def _note_declared(self, *_: object) -> None:
        self.declares = True

    def _check_values(self, attributes: list[str]) -> None:
        """Refuse more elements with values that are written once, and declared to be theirs."""
        self.values_length += sum(map(len, attributes))
        if self.values_length > MOST_BYTES:
            message = "the attributes of elements are too long, with those that are declared"
            raise IngestError(message, hint="such a document is refused")

    def _end(self, name: str) -> None:  # noqa: ARG002 - the parser gives it
        node = self.open.pop()
        self.ends[node] = len(self.names)
        self.stops[node] = self.length

    def _text(self, text: str) -> None:
        self.pieces.append(text)
        self.length += len(text) if text.isascii() else len(text.encode())

    def _lengths(self) -> tuple[int, int, int, int]:
        return len(self.names), len(self.pieces), self.length, len(self.attributes)

    def _back_to(self, before: tuple[int, int, int, int]) -> None:
        names, pieces, self.length, attributes = before
        for nodes in (self.names, self.parents, self.ends, self.starts, self.stops):
            del nodes[names:]
        del self.pieces[pieces:], self.attributes[attributes:], self.values[attributes:]
        self.open.clear()

    def nodes(self) -> Nodes:
        """Return the nodes of all documents that were read."""
        values = [value.encode() for value in self.values]
        stops = list(accumulate((len(value) for value in values), initial=self.length))
        starts, ends = np.array(self.starts, np.int64), np.array(self.stops, np.int64)
        starts[self.attributes], ends[self.attributes] = stops[:-1], stops[1:]
        return Nodes(
            np.array(self.firsts, np.int64),
            tuple(_full_name(name) for name in self.codes),
            np.array(self.names, np.int32),
            np.array(self.parents, np.int32),
            np.array(self.ends, np.int32),
            starts,
            ends,
            "".join(self.pieces).encode() + b"".join(values),
        )


def _full_name(name: str) -> str:
    """Return a name as it is usually written: `{uri}local`."""
    uri, separator, local = name.removeprefix("@").rpartition(SEPARATOR)
    at = "@" if name.startswith("@") else ""
    return f"{at}{{{uri}}}{local}" if separator else name


def _broken(error: expat.ExpatError) -> IngestError:
    place = f"line {error.lineno}, column {error.offset + 1}"
    message = f"{place}: {expat.ErrorString(error.code)}"
    return IngestError(message, hint="documents are well-formed XML")


def _check_namespace(prefix: str | None, uri: str | None) -> None:  # noqa: ARG001 - given so
    if uri is not None and len(uri) > MOST_OF_NAMESPACE:
        message = f"the name of a namespace has {len(uri):,} characters"
        raise IngestError(message, hint=f"up to {MOST_OF_NAMESPACE:,} are read")


def _refuse_entity(name: str, *_: object) -> None:
    message = f"the document declares the entity {name!r}"
    hint = "entities can make a document endless, or read files: replace them before"
    raise IngestError(message, hint=hint)


def _refuse_reference(name: str, is_parameter: bool) -> None:  # noqa: ARG001 - given so
    message = f"nobody says what the entity {name!r} stands for"
    raise IngestError(message, hint="replace it: what is declared elsewhere is not read")
