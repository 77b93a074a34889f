"""The plan of the query of CREATE STREAM: its rows as events, in order."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from eventide.errors import EventideError
from eventide.lang.sql.named.inline import in_brackets, with_named
from eventide.lang.sql.named.texts import NamedTexts
from eventide.lang.sql.names.columns import identifier
from eventide.lang.sql.parse import parse
from eventide.lang.sql.rewrites import rewrite
from eventide.lang.sql.sources import SourceReader
from eventide.lang.sql.spans import close_brackets
from eventide.lang.sql.statement import read_statement, too_deep
from eventide.plan.bind import bind
from eventide.plan.expressions import Column, Named
from eventide.plan.named import NamedQuery
from eventide.plan.nodes import Project
from eventide.plan.passes import IN_ORDER, optimise
from eventide.plan.tree import Plan
from eventide.schema import START_TS, TS, Schema


def plan_stream(
    named: NamedQuery, catalog: Mapping[str, Schema], others: Mapping[str, NamedQuery]
) -> Plan:
    """Return the checked, optimised plan of a stream's query; its columns are those of the stream.

    `others` are the queries that it may read by name, in lower case. An error says why its rows
    are not events.
    """
    texts = NamedTexts.of(named.text, others)
    try:
        query = with_named(parse(read_statement(named.text)), texts, catalog)
        around = exp.Select(expressions=[exp.Star()])
        alias = exp.TableAlias(this=identifier(named.name))
        around.set("from_", exp.From(this=in_brackets(query, alias)))
        reader = SourceReader(catalog, texts.whole)
        rewrite(around, catalog)
        source = around.args["from_"].this
        scope = reader.events(source, frozenset(), "a stream")
        hidden = [name for name in (TS, START_TS) if name in scope.hidden]
        names = [*hidden, *(name for name in scope.fields if name not in scope.hidden)]
        items = tuple(Named(name, Column(name)) for name in names)
        return optimise(bind(Project(scope.source, items), reader.catalog), IN_ORDER)
    except RecursionError:
        raise too_deep().located_in(named.text) from None
    except EventideError as error:
        error.span = None if error.span is None else close_brackets(error.span, texts.whole)
        texts.locate(error)
        raise
