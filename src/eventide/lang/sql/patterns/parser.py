"""The grammar of MATCH_RECOGNIZE ( … ), on top of DuckDB's."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import ClassVar, NoReturn, TypeVar

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from eventide.errors import ParseError, Span, UnsupportedError
from eventide.lang.sql.names.written import Item, Name
from eventide.lang.sql.patterns.clause import (
    SEMANTICS,
    MatchClause,
    RowPattern,
    SkipText,
    Subset,
)
from eventide.lang.sql.patterns.pattern import comment_hint, read_pattern
from eventide.lang.sql.windows.table_functions import WindowTableParser
from eventide.plan.bind import suggestion
from eventide.plan.patterns.tree import SkipTo, Strategy

_MEASURES = "MEASURES LAST(A.price) AS price"
_SHAPE = (
    "MATCH_RECOGNIZE (PARTITION BY … ORDER BY ts MEASURES … ONE ROW PER MATCH "
    "AFTER MATCH SKIP … PATTERN (A B+) WITHIN INTERVAL '5' MINUTE DEFINE B AS …)"
)
_SKIP_HINT = "write PAST LAST ROW, TO NEXT ROW, TO FIRST A or TO LAST A"
_CLAUSES = frozenset(
    (
        *("PARTITION", "ORDER", "MEASURES", "ONE", "ALL", "AFTER", "TIMEOUT", "STRATEGY"),
        *("PATTERN", "WITHIN", "SUBSET", "DEFINE", "SEEK", "INITIAL", ")"),
    )
)
"""The words that a clause inside MATCH_RECOGNIZE starts with, and its end."""
_NO_WORDS = (TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER)
_STRATEGIES: tuple[Strategy, ...] = ("contiguous", "skip_till_next", "skip_till_any")

_Node = TypeVar("_Node", bound=exp.Expr)
_PartReader = Callable[[MatchClause], None]


def _span(token: Token) -> Span:
    return Span(token.start, token.end + 1)


class MatchParser(WindowTableParser):
    """DuckDB's grammar with MATCH_RECOGNIZE behind a table or a subquery."""

    # The clause belongs to one table, not to the whole SELECT as sqlglot has it.
    QUERY_MODIFIER_PARSERS: ClassVar = {
        token: parser
        for token, parser in WindowTableParser.QUERY_MODIFIER_PARSERS.items()
        if token != TokenType.MATCH_RECOGNIZE
    }

    def reset(self) -> None:
        """Forget the last text."""
        super().reset()
        self._match_depth = 0

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
        table = super()._parse_table(
            schema, joins, alias_tokens, parse_bracket, is_db_reference, parse_partition,
            consume_pipe,
        )  # fmt: skip
        return None if table is None else self._parse_clauses_behind(table)

    def _parse_clauses_behind(self, table: exp.Expr) -> exp.Expr:
        """Read the clauses behind a table, each of which reads the rows of the one before."""
        while (behind := self._parse_clause_behind(table)) is not None:
            table = behind
        return table

    def _parse_clause_behind(self, table: exp.Expr) -> exp.Expr | None:
        """Read one clause behind a table, if there is one."""
        if not self._match(TokenType.MATCH_RECOGNIZE):
            return None
        clause = self._match_clause(self._prev)
        node = RowPattern(this=table, clause=clause)
        node.set("alias", self._parse_table_alias())
        node.meta.update(start=clause.span.start, end=clause.span.end - 1)
        return node

    def _parse_unary(self) -> exp.Expr | None:
        if not (self._match_depth and self._at_semantics()):
            return super()._parse_unary()
        self._advance()
        word = self._prev
        operand = super()._parse_unary()
        node = operand
        while isinstance(node, exp.Cast | exp.Bracket | exp.Dot):
            node = node.this
        if node is not None:
            node.meta[SEMANTICS] = (word.text.upper(), _span(word))
        return operand

    def _at_semantics(self) -> bool:
        """Whether RUNNING or FINAL stands here as a keyword: no name follows a column."""
        word, following = self._curr, self._next
        if word.token_type == TokenType.IDENTIFIER or not following:
            return False
        names = following.token_type in (TokenType.VAR, TokenType.IDENTIFIER, TokenType.FIRST)
        return word.text.upper() in ("RUNNING", "FINAL") and (
            names or following.token_type in self.FUNC_TOKENS - set(self.RANGE_PARSERS)
        )

    def validate_expression(self, expression: _Node, args: list[exp.Expr] | None = None) -> _Node:
        """Refuse a function of a match that has too few arguments, or too many."""
        if (
            self._match_depth
            and isinstance(expression, exp.Func)
            and expression.error_messages(args)
        ):
            opening, depth = self._index - 1, 1
            while depth and opening > 0:
                kind = self._tokens[opening].token_type
                depth += (kind == TokenType.R_PAREN) - (kind == TokenType.L_PAREN)
                opening -= 1
            called = self._tokens[opening]
            name, given = called.text.upper(), len(args or ())
            hint = f"write {name}(x)"
            if isinstance(expression, exp.First | exp.Last):
                hint = f"write {name}(x) or {name}(x, 2)"
            self._fail(f"{name} does not take {given} arguments", called, hint)
        return super().validate_expression(expression, args)

    def _free_names(self) -> None:
        """Allow any word where only a variable can stand: DROP.x, CLASSIFIER(DROP)."""
        depth = 1
        for index in range(self._index, len(self._tokens) - 1):
            token, following = self._tokens[index], self._tokens[index + 1]
            kind = token.token_type
            depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
            if not depth:
                break
            before = self._tokens[index - 2 : index]
            classified = following.token_type == TokenType.R_PAREN and [
                each.text.upper() for each in before
            ] == ["CLASSIFIER", "("]
            named = following.token_type == TokenType.DOT or classified
            if named and token.text.isidentifier() and kind not in _NO_WORDS:
                place = (token.line, token.col, token.start, token.end)
                # Not changed in place: the statement keeps its tokens.
                self._tokens[index] = Token(TokenType.VAR, token.text, *place, token.comments)
        self._advance(0)

    def _match_clause(self, keyword: Token) -> MatchClause:
        """Read the clause from its opening bracket to its closing one."""
        clause = MatchClause(_span(keyword))
        opening = self._curr
        if not self._match(TokenType.L_PAREN):
            self._fail("MATCH_RECOGNIZE has no brackets", keyword, _SHAPE)
        self._match_depth += 1
        self._free_names()
        while not self._match(TokenType.R_PAREN):
            if not self._curr:
                self._unclosed("MATCH_RECOGNIZE", opening)
            self._match_part(clause)
        self._match_depth -= 1
        if clause.pattern is None:
            self._fail("MATCH_RECOGNIZE has no PATTERN", keyword, "add PATTERN (A B+ C)")
        return clause

    def _match_part(self, clause: MatchClause) -> None:
        """Read one of the clauses inside; the standard prescribes their order, we do not."""
        first = self._curr
        reader: _PartReader
        readers: tuple[tuple[str, tuple[str, ...], _PartReader], ...] = (
            ("MEASURES", ("MEASURES",), self._read_measures),
            ("ROWS PER MATCH", ("ONE", "ROW", "PER", "MATCH"), self._read_one_row),
            ("ROWS PER MATCH", ("ALL", "ROWS", "PER", "MATCH"), self._read_all_rows),
            ("TIMEOUT ROWS", ("TIMEOUT", "ROWS"), self._read_timeout),
            ("AFTER MATCH SKIP", ("AFTER", "MATCH", "SKIP"), self._read_skip),
            ("STRATEGY", ("STRATEGY",), self._read_strategy),
            ("PATTERN", ("PATTERN",), self._read_pattern),
            ("WITHIN", ("WITHIN",), self._read_within),
            ("SUBSET", ("SUBSET",), self._read_subsets),
            ("DEFINE", ("DEFINE",), self._read_defines),
        )
        if self._match(TokenType.PARTITION_BY):
            name, reader = "PARTITION BY", self._read_keys
        elif self._match(TokenType.ORDER_BY):
            name, reader = "ORDER BY", self._read_order
        else:
            found = next((each for each in readers if self._match_text_seq(*each[1])), None)
            if found is None:
                self._wrong_part(clause)
            name, _, reader = found
        if name in clause.seen:
            self._fail(f"{name} is given twice", first, "leave one of them out")
        if "DEFINE" in clause.seen:
            self._fail(f"{name} stands behind DEFINE", first, f"put {name} before DEFINE")
        clause.seen[name] = _span(first)
        reader(clause)
        clause.seen[name] = Span(first.start, self._prev.end + 1)

    def _wrong_part(self, clause: MatchClause) -> NoReturn:
        token = self._curr
        word = token.text.upper()
        if word in ("SEEK", "INITIAL"):
            message = f"{word} belongs to row patterns in a window, which Eventide does not have"
            hint = "leave it out: MATCH_RECOGNIZE looks for matches from the first row on"
            raise UnsupportedError(message, span=_span(token), hint=hint)
        hints = {
            "ONE": "write ONE ROW PER MATCH",
            "ALL": "write ALL ROWS PER MATCH",
            "AFTER": f"write AFTER MATCH SKIP …; {_SKIP_HINT}",
            "TIMEOUT": "write TIMEOUT ROWS",
            "WITH": "write ALL ROWS PER MATCH WITH UNMATCHED ROWS",
        }
        before = self._tokens[self._index - 2]
        joined = before.token_type in (TokenType.AND, TokenType.OR)
        if "DEFINE" in clause.seen and token.token_type == TokenType.ALIAS and joined:
            message = f"{before.text} stands before the definition of {self._prev.text}"
            self._fail(message, before, "definitions are separated by commas")
        hint = hints.get(word, _SHAPE)
        if word == "AND" and clause.measures:
            hint = "measures are separated by commas"
        if "DEFINE" in clause.seen and self._next.token_type == TokenType.ALIAS:
            hint = "a comma is missing before it"
        self._fail(f"cannot read MATCH_RECOGNIZE near {token.text!r}", token, hint)

    def _unclosed(self, what: str, opening: Token) -> NoReturn:
        # sqlglot ends a statement at a semicolon, wherever it stands.
        end = self._prev.end + 1
        rest = self.sql[end:]
        if rest.lstrip().startswith(";"):
            place = end + rest.index(";")
            message = f"; stands inside the brackets of {what}"
            hint = "leave it out: what follows is just written behind it, A B"
            if what != "PATTERN":
                hint = "leave it out; measures and definitions are separated by commas"
            raise ParseError(message, span=Span(place, place + 1), hint=hint)
        hint = comment_hint(self.sql, _span(opening)) or "end it with )"
        self._fail(f"{what} ( is not closed", opening, hint)

    def _fail(self, message: str, token: Token, hint: str) -> NoReturn:
        raise ParseError(message, span=_span(token or self._prev), hint=hint)

    def _read_keys(self, clause: MatchClause) -> None:
        clause.keys = self._match_items()

    def _read_order(self, clause: MatchClause) -> None:
        clause.order = []
        for ordered in self._parse_csv(self._parse_ordered):
            assert isinstance(ordered, exp.Ordered)
            clause.order.append(ordered)
        if not clause.order:
            self._fail("ORDER BY names nothing", self._prev, "write ORDER BY ts, or leave it out")

    def _read_measures(self, clause: MatchClause) -> None:
        clause.measures = self._match_items()

    def _match_items(self) -> list[Item]:
        items = [self._match_item()]
        while self._match(TokenType.COMMA):
            items.append(self._match_item())
        return items

    def _match_item(self) -> Item:
        node = self._match_expression()
        if self._match(TokenType.ALIAS):
            return Item(node, self._match_name("a name after AS", _MEASURES))
        quoted = self._curr.token_type == TokenType.IDENTIFIER
        word = self._curr.token_type == TokenType.VAR and self._curr.text.upper() not in _CLAUSES
        if quoted or word:
            hint = f"write AS {_span(self._curr).of(self.sql)}"
            self._fail(f"AS is missing before {self._curr.text!r}", self._curr, hint)
        return Item(node, None)

    def _match_expression(self) -> exp.Expr:
        before = self._prev
        node = None if self._at_pattern() else self._parse_disjunction()
        if node is None:
            hint = f"something is missing after {before.text!r}"
            self._fail(f"cannot read the query near {before.text!r}", before, hint)
        return node

    def _at_pattern(self) -> bool:
        return self._curr.text.upper() == "PATTERN" and self._next.token_type == TokenType.L_PAREN

    def _match_name(self, what: str, hint: str = _SHAPE) -> Name:
        token = self._curr
        quoted = token.token_type == TokenType.IDENTIFIER
        named = quoted or token.text.replace("$", "_").isidentifier()
        if not token or not named or self._at_pattern():
            self._fail(f"expected {what}", token, hint)
        self._advance()
        return Name(token.text, quoted, _span(token))

    def _read_one_row(self, clause: MatchClause) -> None:
        clause.output = "one row"

    def _read_all_rows(self, clause: MatchClause) -> None:
        clause.output = "show empty"
        if self._match_text_seq("OMIT", "EMPTY", "MATCHES"):
            clause.output = "omit empty"
        elif self._match_text_seq("WITH", "UNMATCHED", "ROWS"):
            clause.output = "with unmatched"
        else:
            self._match_text_seq("SHOW", "EMPTY", "MATCHES")

    def _read_timeout(self, clause: MatchClause) -> None:
        clause.timeout_rows = True

    def _read_skip(self, clause: MatchClause) -> None:
        first = self._tokens[self._index - 3]
        to: SkipTo = "last"
        variable = None
        if self._match_text_seq("PAST", "LAST", "ROW"):
            to = "past last row"
        elif self._match_text_seq("TO", "NEXT", "ROW"):
            to = "next row"
        elif self._match_text_seq("TO"):
            self._check_skip_to()
            # FIRST and LAST may be variables too: SKIP TO LAST is one, SKIP TO LAST B is not.
            quoted = self._next.token_type == TokenType.IDENTIFIER
            named = quoted or self._next.text.upper() not in _CLAUSES
            if named and self._match_text_seq("FIRST"):
                to = "first"
            elif named:
                self._match_text_seq("LAST")
            variable = self._match_name("a variable after SKIP TO", _SKIP_HINT)
        else:
            hint = "write PAST LAST ROW" if self._curr.text.upper() == "PAST" else _SKIP_HINT
            self._fail("AFTER MATCH SKIP does not say where to go on", self._prev, hint)
        clause.skip = SkipText(to, variable, Span(first.start, self._prev.end + 1))

    def _check_skip_to(self) -> None:
        """Refuse TO NEXT and TO PAST without ROW behind them."""
        word, following = self._curr.text.upper(), self._next
        hints = {"NEXT": "write TO NEXT ROW", "PAST": "write PAST LAST ROW"}
        if word in hints and following and following.text.upper() not in _CLAUSES:
            self._fail(f"SKIP TO {word} {following.text} is no place", following, hints[word])

    def _read_strategy(self, clause: MatchClause) -> None:
        name = self._match_name("a strategy", f"there are {', '.join(_STRATEGIES)}")
        found = next((each for each in _STRATEGIES if each == name.text.lower()), None)
        if found is None:
            message = f"no strategy {name.text!r}"
            hint = suggestion(name.text, list(_STRATEGIES), "strategy")
            raise ParseError(message, span=name.span, hint=hint)
        clause.strategy = found

    def _read_pattern(self, clause: MatchClause) -> None:
        opening = self._curr
        if not self._match(TokenType.L_PAREN):
            self._fail("PATTERN has no brackets", self._prev, "write PATTERN (A B+ C)")
        start, depth = self._index, 1
        while self._curr and depth:
            if self._curr.token_type == TokenType.L_PAREN:
                depth += 1
            elif self._curr.token_type == TokenType.R_PAREN:
                depth -= 1
            self._advance()
        if depth:
            self._unclosed("PATTERN", opening)
        tokens = self._tokens[start : self._index - 1]
        clause.pattern = read_pattern(tokens, self.sql, Span(opening.start, self._prev.end + 1))

    def _read_within(self, clause: MatchClause) -> None:
        word = self._prev
        opening = self._curr
        if self._match(TokenType.L_PAREN):
            self._read_within(clause)
            if not self._match(TokenType.R_PAREN):
                self._unclosed("WITHIN", opening)
            return
        if self._curr.token_type == TokenType.INTERVAL:
            found = self._parse_interval()
        elif self._match_set((TokenType.NUMBER, TokenType.STRING)):
            amount = self._prev
            literal = exp.Literal.string(amount.text)
            literal.update_positions(amount)
            found = exp.Interval(this=literal)
            if amount.token_type == TokenType.NUMBER:
                hint = f"write WITHIN {amount.text} SECONDS, or MINUTES"
                if self._curr.text.upper() in _CLAUSES:
                    self._fail("expected a unit of time", amount, hint)
                unit = self._match_name("a unit of time", hint)
                found.set("unit", exp.Var(this=unit.text))
        else:
            found = None
        if not isinstance(found, exp.Interval):
            self._fail("WITHIN takes an interval", word, "write WITHIN INTERVAL '5' MINUTE")
        word_behind = found.args.get("unit")
        if word_behind is not None and word_behind.name.upper() in _CLAUSES:
            # sqlglot takes the next clause for a unit.
            found.set("unit", None)
            self._retreat(self._index - 1)
        clause.within = found

    def _read_subsets(self, clause: MatchClause) -> None:
        hint = "write SUBSET U = (A, B)"
        while True:
            name = self._match_name("the name of a subset", hint)
            if not (self._match(TokenType.EQ) and self._match(TokenType.L_PAREN)):
                self._fail(f"the subset {name.text} has no members", self._prev, hint)
            members = [self._match_name("a variable", hint)]
            while self._match(TokenType.COMMA):
                members.append(self._match_name("a variable", hint))
            if not self._match(TokenType.R_PAREN):
                self._fail(f"the members of {name.text} have no end", self._prev, hint)
            clause.subsets.append(Subset(name, tuple(members)))
            if not self._match(TokenType.COMMA):
                return

    def _read_defines(self, clause: MatchClause) -> None:
        while True:
            name = self._match_name("a variable", "write DEFINE B AS condition")
            if not self._match(TokenType.ALIAS):
                hint = f"write {name.text} AS condition"
                self._fail(f"AS is missing behind {name.text!r}", self._prev, hint)
            clause.defines.append((name, self._match_expression()))
            if not self._match(TokenType.COMMA):
                return
