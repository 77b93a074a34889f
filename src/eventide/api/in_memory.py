"""Queries over tables in memory, without a database: `eventide.sql` and its like."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING

import pyarrow as pa

from eventide.api.result import Result
from eventide.api.tables import Times, plan_tables, sources_for, tables_of
from eventide.engines.history.answer import Sources, run_history
from eventide.engines.history.weights import DEFAULTS, Weights
from eventide.errors import pointing_into
from eventide.interrupts import interruptible
from eventide.lang.sql.statement import Statement, read_cel, read_statement, read_tpstream
from eventide.plan.tree import Plan

if TYPE_CHECKING:
    from eventide.api.builder import Query
    from eventide.api.matches import Matches


def sql(query: Query, /, *, params: object = None, ts: Times = None, **tables: object) -> Result:
    """Answer a query over tables in memory: Arrow, pandas, polars or dicts.

    The time of a row is in the column `ts`, in the one that `ts` names (`ts="when"`, or by table,
    `ts={"cars": "when"}`), or in a pandas index of times. A table without times has the order of
    its rows. Only columns that the query reads are looked at. `params` are the values of `?` and
    `$name` in the query.

    >>> cars = pa.table({"ts": [0, 1, 2], "car": ["a", "a", "b"], "speed": [50.0, 60.0, 70.0]})
    >>> sql("SELECT car, speed FROM cars WHERE speed > 55", cars=cars).rows()
    [{'car': 'a', 'speed': 60.0}, {'car': 'b', 'speed': 70.0}]
    """
    return interruptible(over_tables)(read_statement(str(query)), params, ts, tables)


def cel(text: str, /, *, params: object = None, ts: Times = None, **tables: object) -> Result:
    """Answer a CEL query over tables in memory, as `sql` does a query.

    >>> cars = pa.table({"ts": [0, 1, 2], "car": ["a", "b", "a"], "speed": [50.0, 60.0, 70.0]})
    >>> cel("SELECT car, speed FROM FILTER{speed > 55} cars", cars=cars).rows()[0]["car"]
    'b'
    """
    return interruptible(over_tables)(read_cel(text), params, ts, tables)


def over_tables(
    statement: Statement, params: object, ts: Times, tables: Mapping[str, object]
) -> Result:
    """Answer a statement over tables in memory."""
    given = tables_of(tables, ts)
    plan = plan_tables(statement.explained, given, params)
    with pointing_into(statement.text):
        sources = sources_for(plan, given)
        if statement.explain is None:
            return Result(run_history(plan, sources))
        from eventide.api.explanation import Explanation
        from eventide.engines.explain.explained import explained

        analyze = statement.explain == "analyze"
        seen = explained(plan, sources, DEFAULTS, analyze=analyze)
        return plan_rows(Explanation.of(statement.text, seen))


def tpstream(text: str, /, *, params: object = None, ts: Times = None, **tables: object) -> Matches:
    """Answer a TPStream statement over tables in memory, as `sql` does a query."""
    statement = read_tpstream(text)
    if statement.explain is not None:
        from eventide.api.matches import Matches

        return Matches(sql(text, params=params, ts=ts, **tables).to_arrow())
    given = interruptible(tables_of)(tables, ts)
    plan = plan_tables(statement, given, params)
    return find_matches(text, plan, interruptible(sources_for)(plan, given), DEFAULTS)


def find_matches(text: str, plan: Plan, sources: Sources, weights: Weights) -> Matches:
    """Return the matches of a plan, with what is needed to draw them."""
    from eventide.api.matches import Matches

    def run(asked: Plan) -> pa.Table:
        with pointing_into(text):
            return interruptible(run_history)(asked, sources, weights)

    started = perf_counter()
    table = run(plan)
    return Matches(table, plan, run, text, perf_counter() - started)


def plan_rows(text: str) -> Result:
    """Return the lines of a text as rows: the answer to EXPLAIN."""
    return Result(pa.table({"plan": pa.array(text.split("\n"), pa.string())}))
