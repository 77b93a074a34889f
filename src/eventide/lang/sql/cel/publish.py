"""PUBLISH: parts of a CEL text become named streams, as CREATE STREAM name AS … makes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from eventide.errors import BindError, Span, pointing_into
from eventide.lang.cel.tree import Query, Stream, parameters_in, published_in
from eventide.lang.sql.cel.read import read_part
from eventide.lang.sql.named.head import CreateRequest
from eventide.lang.sql.statement import Statement, read_statement


def published(statement: Statement) -> list[CreateRequest]:
    """Return what a statement publishes; each after what it may read.

    The text of a stream is that of its part, with PUBLISH: so it is CEL whatever it says.
    """
    with pointing_into(statement.text):
        return list(_requests(statement))


def _requests(statement: Statement) -> Iterator[CreateRequest]:
    for part in statement.cel:
        if "publish" not in part.of(statement.text).lower():
            continue  # a text whose plan is known is not read again
        for query in published_in(read_part(statement.text, part)):
            assert query.publish is not None
            refuse_parameters(query)
            name, span = query.publish, query.span
            yield CreateRequest(
                statement.text, name.text, name.span, "stream", span.start, end=span.end
            )


def refuse_parameters(stream: Stream) -> None:
    """Refuse parameters in what will be read again later."""
    for parameter in parameters_in(stream):
        message = "a definition has no parameters"
        hint = "write the value itself, or leave the condition to the queries that read it"
        raise BindError(message, span=parameter.span, hint=hint)


def refuse_published(statement: Statement, why: str, hint: str) -> None:
    """Refuse PUBLISH where no stream can be named."""
    for request in published(statement):
        raise BindError(why, span=request.span, hint=hint).located_in(statement.text)


def check_definition(request: CreateRequest) -> None:
    """Refuse parameters and PUBLISH in the CEL behind CREATE STREAM."""
    stream = read_part(request.text, Span(request.start, len(request.text)))
    refuse_parameters(stream)
    for query in published_in(stream):
        assert query.publish is not None
        message = f"CREATE names the stream: it is {request.name}"
        raise BindError(message, span=query.publish.span, hint="leave PUBLISH out")


def says_the_same(text: str, other: str) -> bool:
    """Whether two definitions are the same CEL, whatever they publish it as.

    >>> says_the_same("FROM FILTER{a > 1} s PUBLISH x", "from filter{a>1}(s) PUBLISH x")
    True
    """
    kinds = [read_statement(each).kind for each in (text, other)]
    if kinds != ["cel", "cel"]:
        return text.split() == other.split()
    return _unnamed(text) == _unnamed(other)


def _unnamed(text: str) -> Stream:
    found = read_part(text, Span(0, len(text)))
    return replace(found, publish=None) if isinstance(found, Query) else found
