"""Keep the rest of a query inside: no files, no foreign tables, no clock, no random numbers.

DuckDB is locked as well (engines/history/rest.py). The check here holds for every engine, and its
error points at the place.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from eventide.errors import BindError
from eventide.lang.sql.expressions import no_clock, unknown_function
from eventide.lang.sql.functions.aggregates import NTH_HINT
from eventide.lang.sql.functions.known import ANONYMOUS, has_more
from eventide.lang.sql.names.scope import refuse
from eventide.lang.sql.spans import span_of, written
from eventide.plan.functions import DATE_PARTS
from eventide.plan.user_functions import function_named

_CLOCKS = (
    exp.CurrentDate,
    exp.CurrentDatetime,
    exp.CurrentTime,
    exp.CurrentTimestamp,
    exp.CurrentTimestampLTZ,
    exp.Localtime,
    exp.Localtimestamp,
    exp.Systimestamp,
    exp.UtcDate,
    exp.UtcTime,
    exp.UtcTimestamp,
)
_CHANCE = (exp.Rand, exp.Randn, exp.Randstr, exp.Uniform, exp.Normal, exp.Uuid, exp.TableSample)
_SESSION = (
    exp.CurrentCatalog,
    exp.CurrentDatabase,
    exp.CurrentSchema,
    exp.CurrentSchemas,
    exp.CurrentTimezone,
    exp.CurrentUser,
    exp.CurrentVersion,
    exp.SessionUser,
)
_READS = (exp.ReadCSV, exp.ReadParquet)
_FROM_HINT = "FROM takes streams, CTEs and subqueries"

_OTHERS = ("date_part", "every")
"""Functions that are read under another name."""


def refuse_outside(rest: exp.Expr, inputs: Collection[str]) -> None:
    """Refuse a rest that reads or writes anything but its inputs, or depends on anything else."""
    _refuse_changes(rest)
    _refuse_tables(rest, inputs)
    for clock in rest.find_all(*_CLOCKS):
        raise no_clock(span_of(clock))
    for chance in rest.find_all(*_CHANCE):
        message = "a query has no dice: its answer depends on the events alone"
        raise BindError(message, span=span_of(chance), hint="sample in Python, after the query")
    for session in rest.find_all(*_SESSION):
        message = f"{written(session)} asks about the engine, not about events"
        raise BindError(message, span=span_of(session), hint="leave it out")
    for nth in rest.find_all(exp.First, exp.Last):
        if has_more(nth):
            refuse(f"{written(nth)} is no aggregate", nth, NTH_HINT)
    for node in rest.find_all(exp.Anonymous):
        name = node.name.lower()
        known = function_named(name) is not None or name in ANONYMOUS
        if not (known or name in DATE_PARTS or name in _OTHERS):
            raise unknown_function(node, span_of(node))


def _refuse_tables(rest: exp.Expr, inputs: Collection[str]) -> None:
    ctes = {cte.alias.lower() for cte in rest.find_all(exp.CTE)}
    for table in rest.find_all(exp.Table):
        known = isinstance(table.this, exp.Identifier) and not table.db
        if not (known and table.name.lower() in ctes.union(inputs)):
            refuse(f"{written(table)} cannot be read here", table, _FROM_HINT)
    for lateral in rest.find_all(exp.Lateral):
        if not isinstance(lateral.this, exp.Query | exp.Unnest | exp.Explode):
            refuse(f"{written(lateral.this)} is not a stream", lateral, _FROM_HINT)
    for read in rest.find_all(*_READS):
        refuse(f"{written(read)} is not a stream", read, _FROM_HINT)


def _refuse_changes(rest: exp.Expr) -> None:
    for change in rest.find_all(exp.DML, exp.DDL, exp.Into, exp.Command):
        what = f"{change.key.upper()} inside a query"
        refuse(what, change, "a query only reads; append through the Python API")
