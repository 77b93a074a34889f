"""`cars [RANGE 60 SECONDS]` and `ISTREAM (SELECT …)`: the grammar of standing queries.

A window stands in square brackets behind a stream in FROM, before or after its alias:

    [RANGE 60 SECONDS]              an event for that long; INTERVAL '1' MINUTE is as good
    [RANGE 1 MINUTE JUMP 10 SECONDS]  its tail moves in steps
    [RANGE UNBOUNDED]               all events; what a stream without brackets is beside others
    [NOW]                           the events of this instant
    [ROWS 10]                       the last ten; [PARTITION BY car ROWS 10] of each car
    [LATEST BY car]                 the last one of each car
    [TUMBLE 1 HOUR]                 those of the hour that goes on; LANDMARK is the same
    [SINCE TIMESTAMP '…' UNTIL TIMESTAMP '…']  those of a fixed time; UNTIL may be left out
    [SESSION 30 SECONDS]            those of the session that goes on; PARTITION BY as above

Behind each may stand SLIDE 10 SECONDS, how often the answer is brought up to date, and INTERNAL:
results stay when events leave the window. Around a query may stand ISTREAM, DSTREAM or RSTREAM
( … ), the first and the last also as ISTREAM RESTORE ( … ), and WSTREAM ( … ) [ROWS 10].

A window becomes the argument `stream_window` of sqlglot's table, what stands around a query the
argument `report` of the subquery that the brackets are.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar, cast

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from eventide.errors import BindError, ParseError, Span
from eventide.lang.sql.names.written import Name
from eventide.lang.sql.situations.clause import Length, SituationParser
from eventide.lang.sql.situations.period_relations import RelationParser
from eventide.plan.bind import suggestion
from eventide.plan.standing.nodes import Report
from eventide.plan.standing.windows import (
    PeriodWindow,
    RangeWindow,
    RowsWindow,
    SessionWindow,
    SinceWindow,
    StreamWindow,
    Unbounded,
)
from eventide.plan.times import parse_timestamp

WINDOW_WORDS = (
    "RANGE",
    "NOW",
    "ROWS",
    "PARTITION",
    "LATEST",
    "TUMBLE",
    "LANDMARK",
    "SINCE",
    "SESSION",
)
_ENDS = frozenset(("JUMP", "SLIDE", "INTERNAL", "UNTIL"))
REPORTS: dict[str, Report] = {
    "ISTREAM": "istream",
    "DSTREAM": "dstream",
    "RSTREAM": "rstream",
    "WSTREAM": "current",
}
"""The words around a query, and the report that each asks for."""
_QUERY_STARTS = (TokenType.SELECT, TokenType.WITH, TokenType.FROM)
_SHAPE = "write [RANGE 60 SECONDS], [ROWS 10], [LATEST BY car], [TUMBLE 1 HOUR] or [SESSION 30 s]"
_MOST_ROWS = 10**12
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.ALIAS)
_ROUND = re.compile(
    r"\(\s*((?:PARTITION\s+BY\s+[^()]+?\s+)?(?:RANGE|ROWS|LATEST|TUMBLE|LANDMARK|SINCE|SESSION)\s+"
    r"(?:\d|'|INTERVAL\b|UNBOUNDED\b|BY\b|TIMESTAMP\b)[^()]*?)\s*\)",
    re.IGNORECASE,
)
"""A window in brackets of the wrong kind."""


@dataclass(frozen=True, slots=True)
class WindowClause:
    """A window as it was written; `keys` are those of PARTITION BY and LATEST BY."""

    window: StreamWindow
    span: Span
    keys: tuple[Name, ...] = ()
    slide: Length | None = None
    internal: Span | None = None


@dataclass(frozen=True, slots=True)
class ReportClause:
    """The clause around a query; `window` is that of WSTREAM."""

    word: str
    span: Span
    restore: Span | None = None
    window: WindowClause | None = None

    @property
    def report(self) -> Report:
        """The report that is wanted of the answer."""
        return REPORTS[self.word]


def window_of_table(table: exp.Expr) -> WindowClause | None:
    """Return the window behind a table, if there is one."""
    return cast("WindowClause | None", table.args.get("stream_window"))


def report_of(query: exp.Expr) -> ReportClause | None:
    """Return the clause around a query in brackets, if there is one."""
    return cast("ReportClause | None", query.args.get("report"))


def _span(token: Token) -> Span:
    return Span(token.start, token.end + 1)


class StandingParser(RelationParser):
    """Our grammar with windows behind streams, and ISTREAM and its like around queries."""

    BEHIND_LENGTHS: ClassVar[frozenset[str]] = SituationParser.BEHIND_LENGTHS | _ENDS

    def _parse_statement(self) -> exp.Expr | None:
        word, following = self._curr, self._next
        named = word.token_type == TokenType.VAR and word.text.upper() in REPORTS
        if named and following.token_type in _QUERY_STARTS:
            name = word.text.upper()
            self._fail(f"{name} has no brackets", word, f"write {name} (SELECT …)")
        if not self._at_report():
            return super()._parse_statement()
        query = self._parse_set_operations(self._reported())
        if self._curr and not self._match(TokenType.R_PAREN, advance=False):
            # What follows applies to the rows that are reported.
            around = exp.Select(expressions=[exp.Star()])
            around.set("from_", exp.From(this=query))
            return self._parse_query_modifiers(around)
        return query

    def _parse_select(
        self,
        nested: bool = False,
        table: bool = False,
        parse_subquery_alias: bool = True,
        parse_set_operation: bool = True,
        consume_pipe: bool = True,
    ) -> exp.Expr | None:
        if not self._at_report():
            return super()._parse_select(
                nested, table, parse_subquery_alias, parse_set_operation, consume_pipe
            )
        query = self._reported()
        return self._parse_set_operations(query) if parse_set_operation and not table else query

    def _parse_table(  # noqa: PLR0913, PLR0917  (sqlglot's signature)
        self,
        schema: bool = False,
        joins: bool = False,
        alias_tokens: Collection[TokenType] | None = None,
        parse_bracket: bool = False,
        is_db_reference: bool = False,
        parse_partition: bool = False,
        consume_pipe: bool = False,
    ) -> exp.Expr | None:
        self._refuse_round_window()
        if self._at_report():
            reported = self._reported()
            reported.set("alias", self._parse_table_alias(alias_tokens or self.TABLE_ALIAS_TOKENS))
            found = self._parse_clauses_behind(reported)
            self._take_window(found)
            for join in self._parse_joins() if joins else ():
                found.append("joins", join)
            return found
        table = super()._parse_table(
            schema, joins, alias_tokens, parse_bracket, is_db_reference, parse_partition,
            consume_pipe,
        )  # fmt: skip
        if table is not None:
            self._take_window(table)
        return table

    def _refuse_round_window(self) -> None:
        """Refuse `cars (RANGE 60 SECONDS)`, which would be read as a function or as an alias."""
        place = self._index
        while place < len(self._tokens) and self._tokens[place].token_type in _NAMES:
            place += 1
        opening = self._tokens[place : place + 1]
        if place == self._index or not opening:
            return
        found = _ROUND.match(self.sql, opening[0].start)
        if found is not None:
            self._fail("windows stand in square brackets", opening[0], f"write [{found[1]}]")

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        if isinstance(this, exp.Table) and self._curr.token_type == TokenType.L_BRACKET:
            this.set("stream_window", self._stream_window())
            return this
        return super()._parse_bracket(this)

    def _parse_table_alias(
        self, alias_tokens: Collection[TokenType] | None = None
    ) -> exp.TableAlias | None:
        alias = super()._parse_table_alias(alias_tokens)
        if alias is not None and self._curr.token_type == TokenType.L_BRACKET:
            alias.set("stream_window", self._stream_window())
        return alias

    def _take_window(self, table: exp.Expr) -> None:
        """Move a window that stands behind the alias to its table; read one behind a query."""
        alias = table.args.get("alias")
        behind = None if alias is None else window_of_table(alias)
        if alias is not None:
            alias.set("stream_window", None)
        if self._curr.token_type == TokenType.L_BRACKET and not isinstance(table, exp.Table):
            if behind is not None:
                table.set("stream_window", behind)
            behind = self._stream_window()
            if alias is None:
                table.set("alias", self._parse_table_alias())
        if behind is None:
            return
        if window_of_table(table) is not None:
            message = "a stream has two windows"
            raise ParseError(message, span=behind.span, hint="leave one of them out")
        table.set("stream_window", behind)

    def _at_report(self) -> bool:
        """Whether ISTREAM ( … ) or one of its like begins here."""
        word = self._curr
        if word.token_type != TokenType.VAR or word.text.upper() not in REPORTS:
            return False
        place = self._index + 1
        ahead = self._tokens[place : place + 1]
        if ahead and ahead[0].token_type == TokenType.VAR and ahead[0].text.upper() == "RESTORE":
            place += 1
        first = place
        while place < len(self._tokens) and self._tokens[place].token_type == TokenType.L_PAREN:
            place += 1
        inside = self._tokens[place : place + 1]
        if place == first or not inside:
            return False
        return inside[0].token_type in _QUERY_STARTS or inside[0].text.upper() in REPORTS

    def _reported(self) -> exp.Subquery:
        word = self._curr
        name = word.text.upper()
        self._advance()
        restore = _span(self._curr) if self._match_text_seq("RESTORE", advance=False) else None
        if restore is not None:
            self._advance()
        query = self._parse_wrapped(self._parse_statement)
        window = None
        if name == "WSTREAM":
            if self._curr.token_type != TokenType.L_BRACKET:
                hint = "write WSTREAM (…) [ROWS 10], or [RANGE 1 MINUTE]"
                self._fail("WSTREAM has no window behind it", word, hint)
            window = self._stream_window()
        node = exp.Subquery(this=query)
        node.set("report", ReportClause(name, _span(word), restore, window))
        node.meta.update(start=word.start, end=word.end)
        return node

    def _stream_window(self) -> WindowClause:
        """Read a window in square brackets."""
        opening = self._curr
        self._advance()
        keys = self._window_keys() if self._match(TokenType.PARTITION_BY) else ()
        word = self._curr
        kind = word.text.upper()
        if keys and kind not in ("ROWS", "SESSION"):
            hint = "write [PARTITION BY car ROWS 10] or [PARTITION BY car SESSION 30 SECONDS]"
            self._fail("PARTITION BY stands before ROWS or SESSION", word, hint)
        window: StreamWindow
        if kind == "LATEST":
            self._advance()
            if not self._match_text_seq("BY"):
                self._fail("LATEST is followed by BY", word, "write [LATEST BY car]")
            keys = self._window_keys()
            window = RowsWindow(1)
        else:
            window = self._window_kind(kind)
        slide, internal = self._window_ends()
        if not self._match(TokenType.R_BRACKET):
            place = self._curr or opening
            self._fail(f"cannot read the window near {place.text!r}", place, _SHAPE)
        return WindowClause(window, Span(opening.start, self._prev.end + 1), keys, slide, internal)

    def _window_kind(self, kind: str) -> StreamWindow:
        word = self._curr
        if kind not in WINDOW_WORDS:
            hint = suggestion(kind, list(WINDOW_WORDS), "window") if kind.isidentifier() else _SHAPE
            hint = hint if hint.startswith("did") else _SHAPE
            self._fail(f"no window {word.text!r}", word, hint)
        self._advance()
        match kind:
            case "NOW":
                return RangeWindow(1)
            case "ROWS":
                return RowsWindow(self._row_count())
            case "TUMBLE" | "LANDMARK":
                return PeriodWindow(self._positive(kind).us)
            case "SESSION":
                return SessionWindow(self._positive(kind).us)
            case "SINCE":
                return self._since()
        if self._match_text_seq("UNBOUNDED"):
            return Unbounded()
        size = self._positive("RANGE")
        jump = self._positive("JUMP") if self._match_text_seq("JUMP") else None
        return RangeWindow(size.us, None if jump is None else jump.us)

    def _positive(self, behind: str) -> Length:
        length = self._length(behind)
        if length.us <= 0:
            message = f"the length behind {behind} must be positive"
            raise BindError(message, span=length.span, hint=f"write {behind} 10 SECONDS")
        return length

    def _row_count(self) -> int:
        number = self._curr
        if not (self._match(TokenType.NUMBER) and number.text.isdecimal()):
            self._fail("ROWS takes a whole number", number or self._prev, "write [ROWS 10]")
        count = int(number.text)
        if not 0 < count <= _MOST_ROWS:
            message = f"a window of {count:,} rows"
            hint = "it has at least one row; [RANGE UNBOUNDED] has them all"
            raise BindError(message, span=_span(number), hint=hint)
        return count

    def _since(self) -> SinceWindow:
        first = self._curr
        since = self._window_time("SINCE")
        until = self._window_time("UNTIL") if self._match_text_seq("UNTIL") else None
        if until is not None and until <= since:
            message = "a window has to begin before it ends"
            place = Span(first.start, self._prev.end + 1)
            raise BindError(message, span=place, hint="SINCE is the earlier time")
        return SinceWindow(since, until)

    def _window_time(self, behind: str) -> int:
        self._match_texts(("TIMESTAMP", "DATE"))
        text = self._curr
        if not self._match(TokenType.STRING):
            hint = f"write {behind} TIMESTAMP '2026-01-31 12:00:00'"
            self._fail(f"{behind} takes a time", text or self._prev, hint)
        us = parse_timestamp(text.text)
        if us is None:
            message = f"{text.text!r} is not a timestamp"
            hint = "write it as '2026-01-31 12:00:00'"
            raise BindError(message, span=_span(text), hint=hint)
        return us

    def _window_keys(self) -> tuple[Name, ...]:
        keys = []
        while True:
            name = self._match_name("the name of a column", "write [PARTITION BY car ROWS 10]")
            if self._match(TokenType.DOT):
                name = self._match_name("the name of a column")
            keys.append(name)
            if not self._match(TokenType.COMMA):
                return tuple(keys)

    def _window_ends(self) -> tuple[Length | None, Span | None]:
        """Read SLIDE and INTERNAL, in either order."""
        slide, internal = None, None
        while True:
            word = self._curr
            if slide is None and self._match_text_seq("SLIDE"):
                slide = self._positive("SLIDE")
            elif internal is None and self._match_text_seq("INTERNAL"):
                internal = _span(word)
            else:
                return slide, internal
