"""What a query of XSCL writes: columns, or a document that is put together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from xml.parsers import expat

from eventide.errors import ParseError, Span
from eventide.lang.xscl.sides import PatternSides
from eventide.plan.xml.document_queries import OutputColumn, OutputDocument, OutputNode

_ITEM = re.compile(r"\s*([^\W\d]\w*)(?:\s+AS\s+([^\W\d]\w*))?\s*", re.IGNORECASE)
_HOLE = re.compile(r"\{([^{}]*)\}")
_CONTENT = re.compile(r"\s*(?:([^\W\d]\w*)|string\(\s*([^\W\d]\w*)\s*\))\s*", re.IGNORECASE)


def listed(text: str, part: Span, sides: PatternSides) -> tuple[OutputColumn, ...]:
    """Return the columns of SELECT a, b AS c; of SELECT * all variables."""
    selected = part.of(text)
    if selected.strip() == "*":
        return tuple(_everything(part, sides))
    columns: list[OutputColumn] = []
    place = part.start
    for item in selected.split(","):
        found = _ITEM.fullmatch(item)
        start = place + len(item) - len(item.lstrip())
        span = Span(start, max(start + 1, place + len(item.rstrip())))
        if found is None:
            message = "SELECT lists variables, or writes a document"
            hint = "write SELECT a, b AS c or SELECT <found>{a}</found>"
            raise ParseError(message, span=span, hint=hint)
        side = sides.side_of(found[1], span)
        node = OutputNode(side, sides.name(side, found[1]), as_text=True)
        columns.append(OutputColumn(found[2] or node.variable, node))
        _refuse_twice(columns, span)
        place += len(item) + 1
    return tuple(columns)


def _everything(part: Span, sides: PatternSides) -> Iterator[OutputColumn]:
    for pattern in sides.patterns:
        for name in pattern.variables:
            if name != ".":
                yield OutputColumn(name, OutputNode(sides.side_of(name, part), name, True))


def _refuse_twice(columns: list[OutputColumn], span: Span) -> None:
    *before, last = columns
    if any(each.name.lower() == last.name.lower() for each in before):
        message = f"two columns are named {last.name}"
        raise ParseError(message, span=span, hint="give one of them another name with AS")


def constructed(text: str, part: Span, sides: PatternSides) -> OutputDocument:
    """Return the document of SELECT <found who="{a}">{x}</found>.

    A variable in braces stands for its node, and in the value of an attribute for its text, as
    does string(variable) anywhere.
    """
    start = part.start + len(part.of(text)) - len(part.of(text).lstrip())
    written = text[start : part.end]
    holes = list(_HOLE.finditer(written))
    quoted = _quoted_holes(written, holes, Span(start, part.end))
    pieces: list[str | OutputNode] = []
    place = 0
    for number, hole in enumerate(holes):
        span = Span(start + hole.start(), start + hole.end())
        content = _CONTENT.fullmatch(hole[1])
        if content is None:
            message = "braces in a document hold a variable, or string(variable)"
            raise ParseError(message, span=span, hint='write {a}, or who="{a}" in an attribute')
        name = content[1] or content[2]
        side = sides.side_of(name, span)
        as_text = number in quoted or content[1] is None
        pieces.append(written[place : hole.start()])
        pieces.append(OutputNode(side, sides.name(side, name), as_text))
        place = hole.end()
    pieces.append(written[place:])
    return OutputDocument(tuple(piece for piece in pieces if piece != ""))


def _quoted_holes(written: str, holes: Sequence[re.Match[str]], span: Span) -> set[int]:
    """Return which holes are in values of attributes; the others have to be in texts.

    A parser reads the document with marks in the holes, and says where it finds them.
    """
    mark = next(chr(each) for each in range(0xE000, 0xF8FF) if chr(each) not in written)
    pieces, place = [], 0
    for number, hole in enumerate(holes):
        pieces += [written[place : hole.start()], f"{mark}{number}{mark}"]
        place = hole.end()
    marks = re.compile(f"{mark}(\\d+){mark}")
    quoted: set[int] = set()
    texts: list[str] = []

    def start_element(_: str, attributes: dict[str, str]) -> None:
        if "xmlns" in attributes:
            message = "a default namespace would be that of the nodes inside as well"
            raise ParseError(message, span=span, hint='give it a prefix: xmlns:p="…"')
        quoted.update(int(each) for value in attributes.values() for each in marks.findall(value))

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = start_element
    parser.CharacterDataHandler = texts.append
    try:
        parser.Parse("".join((*pieces, written[place:])), True)
    except expat.ExpatError as error:
        message = f"the document behind SELECT is not well-formed: {expat.ErrorString(error.code)}"
        raise ParseError(message, span=span, hint="braces stand in texts and attributes") from None
    found = len(quoted) + len(marks.findall("".join(texts)))
    if found < len(holes) or "<![CDATA[" in written:
        message = "braces stand in texts and in values of attributes"
        raise ParseError(message, span=span, hint="leave comments and CDATA out")
    return quoted
