"""The plan of a pattern in FROM, over the scope of the stream that it reads."""

from __future__ import annotations

from collections.abc import Mapping

from eventide.errors import BindError
from eventide.lang.sql.names.scope import Scope
from eventide.lang.xscl.parse import ParsedPattern
from eventide.plan.bind import bind, bind_expression
from eventide.plan.expressions import Column, Named
from eventide.plan.nodes import Project
from eventide.plan.tree import Plan
from eventide.plan.xml.nodes import Witnesses
from eventide.schema import BINARY, DOCUMENT, SEQ, START_TS, TS, Schema

_HINT = 'a stream of documents is one of create_stream(name, format="xml")'


def plan_witnesses(parsed: ParsedPattern, scope: Scope, catalog: Mapping[str, Schema]) -> Plan:
    """Return the plan of the witnesses of a pattern in the rows of a scope."""
    pattern = parsed.pattern
    for name, span in zip(pattern.variables, parsed.variables, strict=True):
        if name.lower() in (TS, SEQ, START_TS):
            message = f"{name} is the time of a document or its number, and no variable"
            raise BindError(message, span=span, hint="give the variable another name")
    source = bind(scope.source, catalog)
    written = scope.find(DOCUMENT)
    if written is None:
        message = f"{scope.stream} has no column {DOCUMENT!r}"
        raise BindError(message, span=parsed.stream, hint=_HINT)
    found = bind_expression(scope.means(written), source.row)
    if found.type != BINARY:
        message = f"{DOCUMENT!r} of {scope.stream} is {found.type}, and not the bytes of documents"
        raise BindError(message, span=parsed.stream, hint=_HINT)
    time = bind_expression(scope.means(TS), source.row)
    if found != Column(DOCUMENT, BINARY) or time != Column(TS, time.type):
        source = Project(source, (Named(TS, time), Named(DOCUMENT, found)))
    return Witnesses(source, pattern, pattern.variables, parsed.stream)
