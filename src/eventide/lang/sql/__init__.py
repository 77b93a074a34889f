"""SQL: query text → plan.

statement.py     what a text is: found once, with its tokens
parse.py         a statement → sqlglot's syntax tree; its errors become ours
parameters.py    the values of ? and $name become literals
dialect.py       our grammar: DuckDB's, and what we add
rewrites.py      what has to be rewritten before a query is cut
cut.py           finds the blocks our operators can do, leaves the rest to DuckDB or Spark
block.py         a SELECT over one stream → plan nodes
select_list.py   the items of any SELECT, their names, aggregates and groups
indexed.py       SELECTs that the index of a stored stream answers
ordering.py      ORDER BY, LIMIT and DISTINCT around a block
expressions.py   scalar expressions; types.py and intervals.py: what stands in them
numbering.py     ROW_NUMBER and LEAD as row patterns
ctes.py          a CTE that a clause of ours reads goes in its place
relation_rows.py a relation in ordinary SQL; values.py: VALUES as events
spans.py         where in the text something stands
fragments.py     names and expressions that become part of a query's text
cel/             CEL texts, and FROM CEL (…)
xml/             FROM XPATH (…), over XML documents
named/           CREATE STREAM and CREATE VIEW, and their names in FROM
names/           what names mean, and what columns are called
functions/       which functions there are, their arguments and formats, their words on Spark
rest/            the SQL that remains once our operators are cut out
windows/         TUMBLE, HOP and OVER
patterns/        MATCH_RECOGNIZE
situations/      TPSTREAM, SITUATIONS and the relations of periods
standing/        queries over windows in square brackets
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

from eventide.errors import EventideError
from eventide.lang.seen import SeenPlans, Surroundings, key_of
from eventide.lang.sql.cut import plan_events, plan_query
from eventide.lang.sql.named.inline import with_named
from eventide.lang.sql.named.texts import NamedTexts
from eventide.lang.sql.names.system import SYSTEM, with_system_tables
from eventide.lang.sql.parse import parse
from eventide.lang.sql.spans import close_brackets
from eventide.lang.sql.statement import Statement, read_statement, too_deep
from eventide.plan.bind import bind
from eventide.plan.named import NamedQuery
from eventide.plan.passes import IN_ORDER, optimise
from eventide.plan.tree import Plan
from eventide.schema import Schema

SIMPLE = 'SELECT * FROM "'
"""How selections begin that may be read without a syntax tree."""
NOTHING_NAMED: Mapping[str, NamedQuery] = {}
SEEN = SeenPlans()
"""The plans of this process."""


def plan_sql(
    query: str | Statement,
    catalog: Mapping[str, Schema],
    params: object = None,
    *,
    indexed: Collection[str] = frozenset(),
    named: Mapping[str, NamedQuery] = NOTHING_NAMED,
) -> Plan:
    """Return the checked, optimised plan of a query over the streams of a catalog.

    `query` is a text, or the statement that was read from one. `params` are the values of its
    parameters: a list for `?`, a mapping for `$name`. `indexed` are the streams that come in order
    of time, as a live query and the time index of a stored stream have them: GROUP BY parts of
    their time becomes windows, and so on. `named` are the queries that it may read by name, in
    lower case.

    >>> from eventide.plan.explain import explain
    >>> cars = Schema.of({"car": "string", "speed": "float64"})
    >>> print(explain(plan_sql("SELECT car FROM cars WHERE speed > 3", {"cars": cars})))
    Project car
      Filter speed > 3.0
        Scan cars (ts, car, speed)
    """
    surroundings = Surroundings.of(catalog, indexed, named)
    key = key_of(query if isinstance(query, str) else query.text, params)
    if key is not None and isinstance(query, Statement) and query.kind == "cel":
        key = (query.kind, key)  # the same text may be SQL as well
    seen = None if key is None else SEEN.find(key, surroundings)
    if seen is not None:
        return seen
    plan = None if params else simple_plan(query, surroundings)
    if plan is None:
        statement = read_statement(query) if isinstance(query, str) else query
        plan = planned(statement, surroundings, params)
    if key is not None:
        SEEN.add(key, surroundings, plan)
    return plan


def simple_plan(query: str | Statement, surroundings: Surroundings) -> Plan | None:
    """Return the plan of a selection that is read without a syntax tree, None if it is none."""
    text = query if isinstance(query, str) else query.text
    if not text.startswith(SIMPLE) or not (isinstance(query, str) or query.kind == "query"):
        return None
    from eventide.lang.selections import plan_selection

    return plan_selection(text, surroundings, partial(plan_whole, surroundings=surroundings))


def plan_whole(text: str, surroundings: Surroundings) -> Plan:
    """Return the plan of a text that reads a whole stream."""
    known, indexed, named = surroundings.catalog, surroundings.indexed, surroundings.named
    return plan_sql(text, known, indexed=indexed, named=named)


def planned(statement: Statement, surroundings: Surroundings, params: object) -> Plan:
    """Return the plan of a statement that was not seen before."""
    text, catalog, named = statement.text, surroundings.catalog, surroundings.named
    try:
        parsed = parse(statement, params)
        if SYSTEM in text.lower():
            parsed = with_system_tables(parsed, catalog)
        whole = text
        if named:
            texts = NamedTexts.of(text, named)
            parsed, whole = with_named(parsed, texts, catalog), texts.whole
        if statement.kind == "cel":
            return optimise(plan_events(parsed, catalog, whole), IN_ORDER)
        plan = plan_query(parsed, catalog, whole, surroundings.indexed)
        return optimise(bind(plan, catalog))
    except RecursionError:
        raise too_deep().located_in(text) from None
    except EventideError as error:
        texts = NamedTexts.of(text, named)
        error.span = None if error.span is None else close_brackets(error.span, texts.whole)
        texts.locate(error)
        raise error from None
