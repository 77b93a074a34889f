"""TPSTREAM ( … ) and SITUATIONS ( … ): the grammar of both clauses, and of a TPStream statement.

Either becomes a `SituationTable` in FROM, which holds its source and a `SituationClause`.
The statement `FROM cars PARTITION BY … RETURN …` is `SELECT * FROM cars TPSTREAM (…)`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NoReturn, cast

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from eventide.errors import BindError, ParseError, Span
from eventide.lang.sql.intervals import interval_us
from eventide.lang.sql.names.written import Item, Name
from eventide.lang.sql.patterns.parser import MatchParser
from eventide.lang.sql.situations.hints import (
    PARTITION_HINT,
    foreign_part,
    missing_part,
    query_part,
    spare_comma,
    unread_hint,
    wrong_clause,
)
from eventide.lang.sql.situations.pattern import RelationsText, read_relations
from eventide.lang.sql.situations.tokens import (
    MARK,
    PARTS,
    SPOKEN,
    is_clause,
    is_part,
    is_spare_comma,
    keyword_of,
    names_part,
)
from eventide.plan.situations.allen import Dialect
from eventide.plan.situations.nodes import Detection

Kind = Literal["TPSTREAM", "SITUATIONS"]
_NEEDED = {"TPSTREAM": ("DEFINE", "PATTERN", "WITHIN", "RETURN"), "SITUATIONS": ("DEFINE",)}
_NO_LIMIT = 1 << 62


class SituationTable(exp.Expression, exp.Func):
    """A source in FROM: a table or subquery, and the clause behind it."""

    _sql_names: ClassVar[list[str]] = ["TPSTREAM"]
    arg_types: ClassVar[dict[str, bool]] = {"this": True}

    @property
    def clause(self) -> SituationClause:
        """The parsed clause."""
        return cast("SituationClause", self.args["clause"])


@dataclass(frozen=True, slots=True)
class Length:
    """A length of time, and where it stands."""

    us: int
    span: Span


@dataclass(frozen=True, slots=True)
class Definition:
    """`name AS condition`, and how long it has to hold."""

    name: Name
    condition: exp.Expr
    least: Length | None = None
    most: Length | None = None


@dataclass
class SituationClause:
    """The parts of a clause. `seen` has the place of each part that was given.

    `stream` is the source of a statement, None for a clause in brackets.
    """

    kind: Kind
    span: Span
    stream: str | None = None
    keys: list[Item] = field(default_factory=list)
    definitions: list[Definition] = field(default_factory=list)
    gap: Length | None = None
    dialect: Dialect = "allen"
    pattern: RelationsText | None = None
    within: Length | None = None
    detection: Detection = "early"
    confirm: bool = False
    limit: int | None = None
    returns: list[Item] = field(default_factory=list)
    seen: dict[str, Span] = field(default_factory=dict)


def _span(token: Token) -> Span:
    return Span(token.start, token.end + 1)


class SituationParser(MatchParser):
    """Our grammar: DuckDB's with MATCH_RECOGNIZE, TPSTREAM and SITUATIONS behind a table."""

    BEHIND_LENGTHS: ClassVar[frozenset[str]] = PARTS
    """The words that may follow a length of time; none of them is its unit."""

    def reset(self) -> None:
        """Forget the last text."""
        super().reset()
        self._in_statement = False

    def _parse_statement(self) -> exp.Expr | None:
        if self._curr.token_type != MARK or self._curr.text.upper() != "FROM":
            return super()._parse_statement()
        self._in_statement = True
        keyword = self._curr
        self._advance()
        table = super()._parse_table()
        assert table is not None
        stream = table.name if isinstance(table, exp.Table) else "(SELECT …)"
        clause = self._read_parts(SituationClause("TPSTREAM", _span(keyword), stream))
        select = exp.Select(expressions=[exp.Star()])
        select.set("from_", exp.From(this=_table_of(table, clause)))
        return select

    def _parse_table_alias(
        self, alias_tokens: Collection[TokenType] | None = None
    ) -> exp.TableAlias | None:
        if self._at_clause() or (self._in_statement and is_part(self._tokens, self._index)):
            return None
        self._refuse_near_clause()
        return super()._parse_table_alias(alias_tokens)

    def _parse_clause_behind(self, table: exp.Expr) -> exp.Expr | None:
        if not self._at_clause():
            self._refuse_near_clause()
            return super()._parse_clause_behind(table)
        node = _table_of(table, self._bracketed_clause())
        node.set("alias", self._parse_table_alias())
        return node

    def _at_clause(self) -> bool:
        return is_clause(self._curr, self._next)

    def _refuse_near_clause(self) -> None:
        """Refuse SITUATION (DEFINE …), which is nearly a clause of ours."""
        inside = self._tokens[self._index + 2 : self._index + 3]
        if self._next.token_type == TokenType.L_PAREN and any(map(names_part, inside)):
            wrong = wrong_clause(self._curr.text, _span(self._curr))
            if wrong is not None:
                raise wrong

    def _bracketed_clause(self) -> SituationClause:
        word, opening = self._curr, self._next
        self._advance(2)
        kind: Kind = "TPSTREAM" if word.text.upper() == "TPSTREAM" else "SITUATIONS"
        clause = self._read_parts(SituationClause(kind, _span(word)))
        if not self._match(TokenType.R_PAREN):
            self._fail(f"{kind} ( is not closed", opening, "end it with )")
        return clause

    def _read_parts(self, clause: SituationClause) -> SituationClause:
        """Read the parts of a clause, in any order, up to its end."""
        while self._curr and self._curr.token_type != TokenType.R_PAREN:
            self._read_part(clause)
        if self._curr and self._in_statement:
            self._fail("a ) closes nothing", self._curr, "leave it out")
        for name in _NEEDED[clause.kind]:
            if name not in clause.seen:
                raise missing_part(clause.kind, name, clause.span)
        return clause

    def _read_part(self, clause: SituationClause) -> None:
        first = self._curr
        readers: dict[str, Callable[[SituationClause], None]] = {
            "PARTITION BY": self._read_situation_keys,
            "DEFINE": self._read_definitions,
            "GAP": self._read_gap,
            "DIALECT": self._read_dialect,
            "PATTERN": self._read_relations,
            "WITHIN": self._read_window,
            "DETECT": self._read_detection,
            "CONFIRM": self._read_confirm,
            "LIMIT": self._read_limit,
            "RETURN": self._read_returns,
        }
        name = keyword_of(first)
        if name not in readers:
            self._no_part(clause)
        foreign = foreign_part(clause.kind, name, _span(first))
        if foreign is not None:
            raise foreign
        if name in clause.seen:
            self._fail(f"{name} is given twice", first, "leave one of them out")
        self._advance()
        readers[name](clause)
        clause.seen[name] = Span(first.start, self._prev.end + 1)

    def _no_part(self, clause: SituationClause) -> NoReturn:
        token = self._curr
        self._check_spare_comma()
        wrong = query_part(clause.kind, keyword_of(token), _span(token), clause.stream, clause.seen)
        foreign = wrong or foreign_part(clause.kind, keyword_of(token), _span(token))
        if foreign is not None:
            raise foreign
        hint = unread_hint(clause.kind, self._prev, token, self._next)
        self._fail(f"cannot read {clause.kind} near {token.text!r}", token, hint)

    def _check_spare_comma(self) -> None:
        if is_spare_comma(self._tokens, self._index):
            raise spare_comma(_span(self._curr), self._next)

    def _match_comma(self) -> bool:
        """Read a comma; something has to follow it."""
        self._check_spare_comma()
        return bool(self._match(TokenType.COMMA))

    def _read_situation_keys(self, clause: SituationClause) -> None:
        clause.keys = self._situation_items(PARTITION_HINT)

    def _read_returns(self, clause: SituationClause) -> None:
        clause.returns = self._situation_items("RETURN max(fast.speed) AS top")

    def _situation_items(self, hint: str) -> list[Item]:
        items = [self._situation_item(hint)]
        while self._match_comma():
            items.append(self._situation_item(hint))
        return items

    def _situation_item(self, hint: str) -> Item:
        node = self._match_expression()
        if self._match(TokenType.ALIAS):
            return Item(node, self._match_name("a name after AS", hint))
        word = self._curr.token_type == TokenType.VAR and self._curr.text.upper() not in PARTS
        if word or self._curr.token_type == TokenType.IDENTIFIER:
            self._fail(f"AS is missing before {self._curr.text!r}", self._curr, hint)
        return Item(node, None)

    def _read_definitions(self, clause: SituationClause) -> None:
        hint = "write DEFINE fast AS speed > 70 AT LEAST 4 SECONDS"
        while True:
            name = self._match_name("the name of a situation", hint)
            if not name.quoted and name.text.upper() in SPOKEN:
                message = f"{name.text} is a word of {clause.kind}"
                quoted = f'give the situation another name, or quote it: "{name.text}"'
                raise ParseError(message, span=name.span, hint=quoted)
            if not self._match(TokenType.ALIAS):
                behind = f"write {name.text} AS condition"
                self._fail(f"AS is missing behind {name.text!r}", self._prev, behind)
            condition = self._match_expression()
            clause.definitions.append(Definition(name, condition, *self._lasting()))
            if not self._match_comma():
                return

    def _lasting(self) -> tuple[Length | None, Length | None]:
        """Read the bounds of a duration: AT LEAST d, AT MOST d or BETWEEN d AND d."""
        if self._curr.token_type != MARK or self._curr.text == ";":
            return None, None
        word = self._curr
        self._advance()
        least = most = None
        if word.text.upper() == "BETWEEN":
            least = self._length("BETWEEN")
            if not self._match(TokenType.AND):
                self._fail("BETWEEN has one bound", word, "write BETWEEN 4 s AND 30 s")
            most = self._length("AND")
        elif self._match_text_seq("LEAST"):
            least = self._length("AT LEAST")
        elif self._match_text_seq("MOST"):
            most = self._length("AT MOST")
        both = self._curr.token_type == TokenType.AND and self._next.token_type == MARK
        if self._curr.token_type == MARK or both:
            hint = "write BETWEEN 4 s AND 30 s for both bounds"
            self._fail("a situation has two durations", self._next if both else self._curr, hint)
        return least, most

    def _length(self, behind: str) -> Length:
        """Read a length of time: 5 MINUTES, 4s, 1 min 30 s, '90 s', INTERVAL '5' MINUTE."""
        first = self._curr
        found: exp.Expr | None = None
        if first.token_type == TokenType.INTERVAL:
            found = self._parse_interval()
            unit = None if found is None else found.args.get("unit")
            if isinstance(unit, exp.Var) and self._prev.text.upper() in self.BEHIND_LENGTHS:
                # sqlglot takes the next part for a unit.
                found = exp.Interval(this=found.this if found is not None else None)
                self._retreat(self._index - 1)
        elif self._match(TokenType.STRING):
            found = exp.Interval(this=exp.Literal.string(first.text))
        elif first.token_type == TokenType.NUMBER:
            found = exp.Interval(this=exp.Literal.string(self._amounts(behind)))
        if not isinstance(found, exp.Interval):
            place = first if first and first.token_type != TokenType.COMMA else self._prev
            self._fail(f"{behind} takes a length of time", place, f"write {behind} 5 MINUTES")
        span = Span(first.start, self._prev.end + 1)
        found.meta.update(start=span.start, end=span.end - 1)
        try:
            return Length(interval_us(found), span)
        except BindError as error:
            error.hint = f"write {behind} 10 SECONDS"
            raise

    def _amounts(self, behind: str) -> str:
        """Read numbers and their units."""
        amounts = []
        while self._match(TokenType.NUMBER):
            number, unit = self._prev, self._curr
            if not unit or not unit.text.isidentifier() or self._ends_length(unit):
                hint = f"write {behind} {number.text} SECONDS, or MINUTES"
                if behind == "BETWEEN":
                    hint = f"write BETWEEN {number.text} SECONDS AND 30 SECONDS, or MINUTES"
                self._fail("expected a unit of time", number, hint)
            self._advance()
            amounts.append(f"{number.text} {unit.text}")
        return " ".join(amounts)

    def _ends_length(self, token: Token) -> bool:
        return token.text.upper() in {*self.BEHIND_LENGTHS, "AND"}

    def _read_gap(self, clause: SituationClause) -> None:
        clause.gap = self._length("GAP")

    def _read_window(self, clause: SituationClause) -> None:
        clause.within = self._length("WITHIN")

    def _read_relations(self, clause: SituationClause) -> None:
        clause.pattern, end = read_relations(self._tokens, self._index)
        self._advance(end - self._index)

    def _read_dialect(self, clause: SituationClause) -> None:
        word = self._curr.text.lower()
        if word not in ("allen", "paper"):
            hint = "write DIALECT ALLEN, or DIALECT PAPER for 'finishes' as in the TPStream paper"
            self._fail("DIALECT is ALLEN or PAPER", self._curr or self._prev, hint)
        clause.dialect = cast("Dialect", word)
        self._advance()

    def _read_detection(self, clause: SituationClause) -> None:
        word = self._curr.text.lower()
        if word not in ("early", "final"):
            hint = "EARLY is as soon as a match is certain, FINAL when all situations are over"
            self._fail("DETECT is EARLY or FINAL", self._curr or self._prev, hint)
        clause.detection = cast("Detection", word)
        self._advance()

    def _read_confirm(self, clause: SituationClause) -> None:
        clause.confirm = True

    def _read_limit(self, clause: SituationClause) -> None:
        number = self._curr
        if not (self._match(TokenType.NUMBER) and number.text.isdecimal()):
            self._fail("LIMIT takes a whole number", number or self._prev, "LIMIT 10 PER KEY")
        if not self._match_text_seq("PER", "KEY"):
            hint = f"write LIMIT {number.text} PER KEY; a LIMIT of all rows stands in a SELECT"
            self._fail("LIMIT is for each key here", number, hint)
        clause.limit = min(int(number.text), _NO_LIMIT)


def _table_of(table: exp.Expr, clause: SituationClause) -> SituationTable:
    node = SituationTable(this=table, clause=clause)
    node.meta.update(start=clause.span.start, end=clause.span.end - 1)
    return node
