"""Sources in FROM that are written in a language of their own take their places in the tree."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from eventide.lang.sql.standing.clause import window_of_table


def put_sources(query: exp.Expr, word: str, selects: Sequence[exp.Select]) -> None:
    """Put a SELECT in brackets in the place of each `word` ( ) in FROM, left to right."""
    calls = [
        table
        for table in query.find_all(exp.Table)
        if isinstance(table.this, exp.Anonymous) and table.this.name.upper() == word
    ]
    calls.sort(key=lambda table: int(table.this.meta["start"]))
    for table, select in zip(calls, selects, strict=True):
        alias = table.args.get("alias")
        found = exp.Subquery(this=select, alias=alias, joins=table.args.get("joins"))
        found.set("stream_window", window_of_table(table))
        table.replace(found)
