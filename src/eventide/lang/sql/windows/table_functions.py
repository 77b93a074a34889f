"""Windows as table functions: FROM TUMBLE(cars, ts, INTERVAL '10' SECOND).

Flink writes `TABLE(TUMBLE(TABLE cars, DESCRIPTOR(ts), INTERVAL '10' SECOND))`. Both forms become a
`GROUP BY TUMBLE(…)` where the SELECT groups by window_start and window_end. Elsewhere, a row of
TUMBLE has two more columns, the bounds of its window.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from eventide.errors import ParseError, Span
from eventide.lang.sql.functions.arguments import ArgumentParser
from eventide.lang.sql.intervals import interval_us
from eventide.lang.sql.names.scope import refuse, sources_of
from eventide.lang.sql.windows.group_by import is_window
from eventide.plan.windows.nodes import WINDOW_END, WINDOW_START

_FORMS = {
    "TUMBLE": "TUMBLE(cars, ts, INTERVAL '10' SECOND)",
    "HOP": "HOP(cars, ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND): how often, then how long",
    "SESSION": "SESSION(cars, ts, INTERVAL '30' SECOND)",
}
WINDOW_TABLES = frozenset({*_FORMS, "CUMULATE"})
"""The functions that are windows in FROM."""
_LENGTHS = {"TUMBLE": 1, "HOP": 2, "SESSION": 1}
_BOUNDS = (WINDOW_START, WINDOW_END)
_STARTS = {f"{name.lower()}_start": name.lower() for name in _FORMS}
_ENDS = {f"{name.lower()}_end": name.lower() for name in _FORMS}
BOUND_FUNCTIONS = frozenset({*_STARTS, *_ENDS})
"""The functions that name a bound of the window of GROUP BY."""


class WindowTable(exp.Expression):
    """A window over a table in FROM: `kind` is TUMBLE, HOP or SESSION."""

    arg_types = {  # noqa: RUF012  (sqlglot's attribute)
        "this": True,
        "kind": True,
        "time": True,
        "lengths": True,
        "keys": False,
        "alias": False,
        "joins": False,
    }


class WindowTableParser(ArgumentParser):
    """DuckDB's grammar with windows as tables."""

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
        wrapped = self._at_window_table(self._index + 2) and self._is_table_word()
        if not wrapped and not self._at_window_table(self._index):
            return super()._parse_table(
                schema, joins, alias_tokens, parse_bracket, is_db_reference, parse_partition,
                consume_pipe,
            )  # fmt: skip
        if wrapped:
            self._advance(2)
        node = self._window_table()
        if wrapped:
            self._expect(TokenType.R_PAREN, ")", "close the bracket of TABLE(")
        node.set("alias", self._parse_table_alias(alias_tokens or self.TABLE_ALIAS_TOKENS))
        for join in self._parse_joins() if joins else ():
            node.append("joins", join)
        return node

    def _is_table_word(self) -> bool:
        opened = self._next and self._next.token_type == TokenType.L_PAREN
        return bool(opened) and self._curr.token_type == TokenType.TABLE

    def _at_window_table(self, place: int) -> bool:
        """Whether TUMBLE ( or one of its like stands at a place."""
        word, opening = (*self._tokens[place : place + 2], None, None)[:2]
        if word is None or opening is None or opening.token_type != TokenType.L_PAREN:
            return False
        named = word.token_type != TokenType.IDENTIFIER
        return named and word.text.upper() in WINDOW_TABLES

    def _window_table(self) -> WindowTable:
        word = self._curr
        kind = word.text.upper()
        if kind == "CUMULATE":
            refuse_cumulate(_span(word))
        self._advance(2)
        self._argument_name("DATA")
        self._match(TokenType.TABLE)
        table = self._parse_table()
        if table is None:
            self._wrong(kind, word)
        keys = []
        if self._match(TokenType.PARTITION_BY):
            while True:
                keys.append(self._window_column(kind))
                if not self._match(TokenType.COMMA) or self._at_time():
                    break
            self._retreat(self._index - 1)
        self._expect(TokenType.COMMA, ",", _FORMS[kind])
        self._argument_name("TIMECOL")
        time = self._described(kind)
        lengths = []
        while self._match(TokenType.COMMA):
            self._argument_name("SIZE", "SLIDE", "GAP")
            lengths.append(self._parse_assignment())
        if len(lengths) != _LENGTHS[kind] or None in lengths:
            self._wrong(kind, word)
        self._expect(TokenType.R_PAREN, ")", _FORMS[kind])
        node = WindowTable(this=table, kind=kind, time=time, lengths=lengths, keys=keys)
        node.meta.update(start=word.start, end=self._prev.end)
        return node

    def _argument_name(self, *names: str) -> None:
        """Read NAME => in front of an argument."""
        following = self._next
        if following and following.token_type == TokenType.FARROW:
            if self._curr.text.upper() not in names:
                what = " or ".join(names)
                self._fail_at(f"expected {what}", self._curr, "leave the names of arguments out")
            self._advance(2)

    def _at_time(self) -> bool:
        return self._curr.text.upper() in ("DESCRIPTOR", "TIMECOL")

    def _described(self, kind: str) -> exp.Expr:
        """Read DESCRIPTOR(ts) or ts."""
        wrapped = self._curr.text.upper() == "DESCRIPTOR"
        if wrapped:
            self._advance(2)
        column = self._window_column(kind)
        if wrapped:
            self._expect(TokenType.R_PAREN, ")", "write DESCRIPTOR(ts)")
        return column

    def _window_column(self, kind: str) -> exp.Expr:
        token = self._curr
        named = token and (token.token_type == TokenType.IDENTIFIER or token.text.isidentifier())
        if not named:
            self._wrong(kind, token or self._prev)
        self._advance()
        name = exp.Identifier(this=token.text, quoted=token.token_type == TokenType.IDENTIFIER)
        name.update_positions(token)
        return exp.Column(this=name)

    def _expect(self, kind: TokenType, text: str, hint: str) -> None:
        if not self._match(kind):
            self._fail_at(f"expected {text}", self._curr or self._prev, hint)

    def _wrong(self, kind: str, token: Token) -> None:
        self._fail_at(f"cannot read {kind} as a table", token, f"write FROM {_FORMS[kind]}")

    def _fail_at(self, message: str, token: Token, hint: str) -> None:
        raise ParseError(message, span=_span(token), hint=hint)


def _span(token: Token) -> Span:
    return Span(token.start, token.end + 1)


def refuse_cumulate(span: Span) -> None:
    """Refuse CUMULATE, which would report a window several times."""
    message = "there is no CUMULATE"
    hint = "a window in brackets reports as it fills: FROM cars [TUMBLE 1 HOUR]"
    raise ParseError(message, span=span, hint=hint)


def apply_window_tables(query: exp.Expr) -> None:
    """Replace windows as tables by GROUP BY TUMBLE(…), and TUMBLE_START(…) by window_start."""
    for select in list(query.find_all(exp.Select)):
        tables = list(sources_of(select))
        if len(tables) == 1 and isinstance(tables[0], WindowTable) and _bounds_in_group(select):
            _group_by_window(select, tables[0])
        _name_bounds(select)
    for node in list(query.find_all(WindowTable)):
        _add_bounds(node)


def _bounds_in_group(select: exp.Select) -> bool:
    group = select.args.get("group")
    return group is not None and any(map(_is_bound, group.expressions))


def _is_bound(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and node.name.lower() in _BOUNDS


def _group_by_window(select: exp.Select, node: WindowTable) -> None:
    """FROM TUMBLE(cars, ts, size) GROUP BY k, window_start → FROM cars GROUP BY k, TUMBLE(…)."""
    table = _inside(node)
    names = {each.lower() for each in (node.alias, table.alias_or_name) if each}
    group = select.args["group"]
    keys = [*node.args["keys"], *(each for each in group.expressions if not _is_bound(each))]
    window = exp.Anonymous(
        this=node.args["kind"], expressions=[node.args["time"], *node.args["lengths"]]
    )
    window.meta.update(node.meta)
    group.set("expressions", [*_distinct(keys), window])
    for column in select.find_all(exp.Column):
        if _is_bound(column) and column.table.lower() in names:
            column.set("table", None)
    node.replace(table)


def _distinct(keys: list[exp.Expr]) -> Iterator[exp.Expr]:
    seen: list[exp.Expr] = []
    for key in keys:
        if key not in seen:
            seen.append(key)
            yield key


def _inside(node: WindowTable) -> exp.Expr:
    """Return the table of a window, with the alias and the joins that stand behind the window."""
    table: exp.Expr = node.this
    if node.args.get("alias") is not None:
        table.set("alias", node.args["alias"])
    elif isinstance(table, exp.Subquery) and not table.alias:
        table.set("alias", exp.TableAlias(this=exp.to_identifier("windowed")))
    if node.args.get("joins"):
        table.set("joins", node.args["joins"])
    return table


def _add_bounds(node: WindowTable) -> None:
    """TUMBLE(cars, ts, size) → (SELECT *, … AS window_start, … AS window_end FROM cars)."""
    if node.args["kind"] != "TUMBLE":
        what = f"{node.args['kind']} as a table without a GROUP BY of its windows"
        refuse(what, node, f"add GROUP BY {WINDOW_START}, {WINDOW_END}")
    (length,) = node.args["lengths"]
    if not isinstance(length, exp.Interval):
        refuse("a window's length is an interval", length, _FORMS["TUMBLE"])
    start = _start_of(node.args["time"], interval_us(length))
    end = exp.Add(this=start.copy(), expression=length.copy())
    alias = node.args.get("alias") or exp.TableAlias(
        this=exp.to_identifier(node.this.alias_or_name or "windowed")
    )
    bounds = [exp.alias_(start, WINDOW_START), exp.alias_(end, WINDOW_END)]
    select = exp.Select(expressions=[exp.Star(), *bounds])
    select.set("from_", exp.From(this=node.this))
    node.replace(exp.Subquery(this=select, alias=alias, joins=node.args.get("joins")))


def _start_of(time: exp.Expr, size_us: int) -> exp.Expr:
    """Return the start of the window of an instant: the last multiple of its size.

    Before 1970 the remainder of a division is negative, so it is taken twice.
    """
    size = exp.Literal.number(size_us)
    us = exp.Anonymous(this="epoch_us", expressions=[time])
    rest = exp.Paren(this=exp.Mod(this=us.copy(), expression=size))
    positive = exp.Paren(this=exp.Add(this=rest, expression=size.copy()))
    rest = exp.Paren(this=exp.Mod(this=positive, expression=size.copy()))
    return exp.UnixToTime(this=exp.Sub(this=us, expression=rest), scale=exp.UnixToTime.MICROS)


def _name_bounds(select: exp.Select) -> None:
    """TUMBLE_START(…), with the arguments of the GROUP BY, → window_start."""
    group = select.args.get("group")
    windows = [each for each in group.expressions if is_window(each)] if group is not None else []
    for call in list(select.find_all(exp.Anonymous)):
        name = call.name.lower()
        kind = _STARTS.get(name) or _ENDS.get(name)
        if kind is None or call.find_ancestor(exp.Select) is not select:
            continue
        if not windows or windows[0].name.lower() != kind or _differs(call, windows[0]):
            what = f"{call.name.upper()} without the same {kind.upper()} in GROUP BY"
            refuse(what, call, f"write GROUP BY {kind.upper()}(…), and {_BOUNDS[0]} for its start")
        column = exp.column(exp.to_identifier(_BOUNDS[name in _ENDS]))
        column.this.meta.update(call.meta)
        call.replace(column)


def _differs(call: exp.Expr, window: exp.Expr) -> bool:
    return bool(call.expressions != window.expressions)
