"""Our dialect of SQL: DuckDB's, with row patterns, and division by zero giving NULL everywhere."""

from __future__ import annotations

from typing import ClassVar

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokenizer_core import TokenType

from eventide.lang.sql.match_clause import MatchParser


class Eventide(DuckDB):
    """DuckDB's SQL with MATCH_RECOGNIZE in FROM."""

    SAFE_DIVISION = True

    class Tokenizer(DuckDB.Tokenizer):
        """DuckDB's words and MATCH_RECOGNIZE."""

        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **DuckDB.Tokenizer.KEYWORDS,
            "MATCH_RECOGNIZE": TokenType.MATCH_RECOGNIZE,
        }

    Parser = MatchParser
