"""SQL: query text → plan.

parse.py        text → sqlglot's syntax tree; its errors become ours
cut.py          finds the blocks our operators can do, leaves the rest to DuckDB or Spark
block.py        a SELECT over one stream → plan nodes
window.py       GROUP BY TUMBLE and HOP
over.py         OVER (… RANGE | ROWS …)
ordering.py     ORDER BY, LIMIT and DISTINCT around a block
match_clause.py MATCH_RECOGNIZE: its grammar; match_pattern.py reads its PATTERN
match_names.py  which row of a match the columns in DEFINE and MEASURES are taken from
match_check.py  what can be wrong with it; match_plan.py makes the plan node of it
match_ctes.py   a CTE that it reads goes in its place
match_hints.py  what to write in it instead of the SQL of other places
situation_clause.py  TPSTREAM and SITUATIONS: their grammar, and that of a TPStream statement
situation_tokens.py  what is theirs among the words of SQL; situation_pattern.py reads PATTERN
situation_names.py   which situation the columns in RETURN are of; situation_plan.py: the nodes
situation_check.py   what can be wrong with a pattern; situation_hints.py what to write instead
statement.py    is a text a TPStream statement?
period_relations.py  a OVERLAPS b in ON; period_join.py puts what it joins into one input
standing_clause.py   [RANGE 60 SECONDS] behind a stream, ISTREAM (…) around a query: their grammar
standing_find.py     which queries stand; standing_plan.py plans them, standing_select.py a SELECT
standing_from.py     what FROM reads; standing_join.py joins it, standing_as_of.py ASOF JOIN
standing_scope.py    what its names mean; standing_group.py GROUP BY, standing_sets.py UNION
standing_exists.py   EXISTS and IN; standing_check.py what can be wrong with the whole
relation_rows.py     a relation in ordinary SQL: a standing input with its rows
remainder.py    a SELECT that stays SQL, and what its streams deliver
rest.py         what remains, as DuckDB's and Spark's text
spark_functions.py   its functions in Spark's words; kinds.py what they give, formats.py of times
arguments.py    no argument of a function is lost while it is read
outside.py      what it may not do: read files, ask the time, throw dice
expressions.py  scalar expressions; functions.py, literals.py and intervals.py are its tables
scope.py        what the names in a SELECT mean; stream_name.py which stream a table is
column_lists.py lists of names behind a table, AS c(t, who), and the columns of what FROM reads
values.py       VALUES as events
names.py        what its columns are called; qualifiers.py what may stand in front of a dot
spans.py        where in the text it stands
fragments.py    names and expressions that become part of a query's text
explain.py      EXPLAIN and EXPLAIN ANALYZE in front of a query
dialect.py      our grammar: DuckDB's, and what we add
"""

from __future__ import annotations

from collections.abc import Mapping

from eventide.errors import EventideError
from eventide.lang.sql.cut import plan_query
from eventide.lang.sql.parse import parse, too_deep
from eventide.lang.sql.spans import close_brackets
from eventide.plan.bind import bind
from eventide.plan.nodes import Plan
from eventide.plan.passes import optimise
from eventide.schema import Schema


def plan_sql(text: str, catalog: Mapping[str, Schema]) -> Plan:
    """Return the checked, optimised plan of a query over the streams of a catalog.

    >>> from eventide.plan.explain import explain
    >>> cars = Schema.of({"car": "string", "speed": "float64"})
    >>> print(explain(plan_sql("SELECT car FROM cars WHERE speed > 3", {"cars": cars})))
    Project car
      Filter speed > 3.0
        Scan cars (ts, car, speed)
    """
    try:
        return optimise(bind(plan_query(parse(text), catalog, text), catalog))
    except RecursionError:
        raise too_deep().located_in(text) from None
    except EventideError as error:
        error.span = None if error.span is None else close_brackets(error.span, text)
        raise error.located_in(text) from None
