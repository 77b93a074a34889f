"""Our dialect of SQL: DuckDB's, with division by zero giving NULL on every engine."""

from __future__ import annotations

from sqlglot.dialects.duckdb import DuckDB


class Eventide(DuckDB):
    """DuckDB's SQL. The place where pattern clauses are added to the grammar."""

    SAFE_DIVISION = True
