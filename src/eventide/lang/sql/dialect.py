"""Our dialect of SQL: DuckDB's with our clauses, and division by zero giving NULL everywhere."""

from __future__ import annotations

from typing import ClassVar

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokenizer_core import TokenType

from eventide.lang.sql.standing.clause import StandingParser


class Eventide(DuckDB):
    """DuckDB's SQL with MATCH_RECOGNIZE, TPSTREAM, SITUATIONS, relations and windows in FROM."""

    SAFE_DIVISION = True

    class Tokenizer(DuckDB.Tokenizer):
        """DuckDB's tokens, MATCH_RECOGNIZE, and names in back quotes."""

        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **DuckDB.Tokenizer.KEYWORDS,
            "MATCH_RECOGNIZE": TokenType.MATCH_RECOGNIZE,
            # A window: sqlglot knows only the setting of a session.
            "SESSION": TokenType.VAR,
        }
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]
        # Behind a ; of PATTERN, words such as RESET are plain names.
        COMMAND_PREFIX_TOKENS: ClassVar[set[TokenType]] = set()
        # A $ is a parameter, or the end of the rows in a PATTERN: $a,$b is no string of DuckDB's.
        HEREDOC_STRINGS: ClassVar[list[str | tuple[str, str]]] = []

    Parser = StandingParser
