"""What a query of XSCL writes: columns, or a document that is put together."""

from __future__ import annotations

import re
from collections.abc import Iterator
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
    _require_well_formed(_HOLE.sub("", written), Span(start, part.end))
    pieces: list[str | OutputNode] = []
    place = 0
    for hole in _HOLE.finditer(written):
        span = Span(start + hole.start(), start + hole.end())
        content = _CONTENT.fullmatch(hole[1])
        if content is None:
            message = "braces in a document hold a variable, or string(variable)"
            raise ParseError(message, span=span, hint='write {a}, or who="{a}" in an attribute')
        name = content[1] or content[2]
        side = sides.side_of(name, span)
        in_tag = written.rfind("<", 0, hole.start()) > written.rfind(">", 0, hole.start())
        pieces.append(written[place : hole.start()])
        pieces.append(OutputNode(side, sides.name(side, name), in_tag or content[1] is None))
        place = hole.end()
    pieces.append(written[place:])
    return OutputDocument(tuple(piece for piece in pieces if piece != ""))


def _require_well_formed(document: str, span: Span) -> None:
    try:
        expat.ParserCreate().Parse(document, True)
    except expat.ExpatError as error:
        message = f"the document behind SELECT is not well-formed: {expat.ErrorString(error.code)}"
        raise ParseError(message, span=span, hint="braces stand in texts and attributes") from None
