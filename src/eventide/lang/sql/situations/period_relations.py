"""`a OVERLAPS b` in ON and WHERE: a relation of Allen between the periods of two rows.

SQL has only OVERLAPS, and between pairs of times. So a relation is recognised only where a
condition has a name, one of the words, and another name. Several words have OR between them:
`a MEETS OR OVERLAPS b`.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import ClassVar, cast

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from eventide.errors import ParseError, Span
from eventide.lang.sql.situations.clause import SituationParser
from eventide.lang.sql.situations.pattern import MEANT
from eventide.plan.situations.allen import WORDS, mask_named
from eventide.plan.situations.nodes import END_TS
from eventide.schema import START_TS

_VERY_NEAR = 0.75
_NOTHING = Token(TokenType.SEMICOLON, "")


class PeriodRelation(exp.Expression, exp.Func):
    """A relation between two aliases; `expressions` are the four bounds it is about.

    For sqlglot it is a function, so that every dialect can print it, in errors and column names.
    """

    _sql_names: ClassVar[list[str]] = ["PERIOD_RELATION"]
    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}
    is_var_len_args: ClassVar[bool] = True

    @property
    def mask(self) -> int:
        """The relations that it allows, as a mask of `plan.situations.allen`."""
        return cast("int", self.args["mask"])

    @property
    def open_ends(self) -> bool:
        """Whether a period with a null end is still open."""
        return bool(self.args["open_ends"])

    @property
    def aliases(self) -> tuple[str, str]:
        """The names on both sides."""
        first, _, second, _ = self.expressions
        return str(first.table), str(second.table)


class RelationParser(SituationParser):
    """The grammar with relations between periods in ON and WHERE."""

    def reset(self) -> None:
        """Forget the last text."""
        super().reset()
        self._in_condition = False

    def _parse_disjunction(self) -> exp.Expr | None:
        before = self._in_condition
        word = self._prev.token_type if self._prev else None
        self._in_condition = before or word in (TokenType.ON, TokenType.WHERE)
        try:
            return super()._parse_disjunction()
        finally:
            self._in_condition = before

    def _parse_range(self, this: exp.Expr | None = None, parse_is: bool = False) -> exp.Expr | None:
        if this is None and self._in_condition:
            relation = self._period_relation()
            if relation is not None:
                return relation
        return super()._parse_range(this, parse_is)

    def _period_relation(self) -> PeriodRelation | None:
        """Read `a overlaps b`, `a met by b` or `a meets or overlaps b`, if that stands here."""
        first, place, mask = self._token(self._index), self._index + 1, 0
        if not self._names(first):
            return None
        while True:
            said = self._relation_at(place)
            if not said:
                self._suggest_relation(first, place)
                return None
            mask |= mask_named(_spelled(said)) or 0
            place += len(said)
            if self._token(place).token_type != TokenType.OR:
                break
            place += 1
        second, following = self._token(place), self._token(place + 1)
        if not self._names(second):
            return None
        if following.token_type in (TokenType.DOT, TokenType.L_PAREN):
            return None
        self._advance(place + 1 - self._index)
        open_ends = self._match_text_seq("NULLS", "OPEN")
        bounds = [_bound(token, bound) for token in (first, second) for bound in (START_TS, END_TS)]
        node = PeriodRelation(expressions=bounds, mask=mask, open_ends=bool(open_ends))
        node.meta.update(start=first.start, end=second.end)
        return node

    def _relation_at(self, place: int) -> list[Token]:
        """Return the tokens of the relation at a place: one, two, or two and a dash."""
        for words in (3, 2, 1):
            said = self._tokens[place : place + words]
            dashed = len(said) == 3 and said[1].token_type == TokenType.DASH
            quoted = any(word.token_type == TokenType.IDENTIFIER for word in said)
            whole = len(said) == words and (words < 3 or dashed) and not quoted
            if whole and mask_named(_spelled(said)) is not None:
                return said
        return []

    def _suggest_relation(self, first: Token, place: int) -> None:
        """Refuse a word that is nearly a relation: SQL never has three names in a row here."""
        for words in (2, 1):
            said, second = self._tokens[place : place + words], self._token(place + words)
            by = [word.text.lower() for word in said[1:]]
            plain = self._token(place).token_type == TokenType.VAR and by in ([], ["by"])
            if plain and self._names(second):
                _suggest(_spelled(said), said, (first.text, second.text))

    def _token(self, place: int) -> Token:
        return self._tokens[place] if place < len(self._tokens) else _NOTHING

    def _names(self, token: Token) -> bool:
        return token.token_type in (TokenType.VAR, TokenType.IDENTIFIER) or (
            token.token_type in self.TABLE_ALIAS_TOKENS
        )


def _spelled(said: list[Token]) -> str:
    """Return the words of a relation as `plan.situations.allen` has them."""
    words = [word.text.lower().replace("_", " ") for word in said if word.text != "-"]
    return " ".join(words)


def _bound(token: Token, name: str) -> exp.Column:
    quoted = token.token_type == TokenType.IDENTIFIER
    table = exp.to_identifier(token.text, quoted=quoted)
    table.meta.update(start=token.start, end=token.end)
    return exp.Column(this=exp.to_identifier(name), table=table)


def _suggest(name: str, said: list[Token], sides: tuple[str, str]) -> None:
    meant = MEANT.get(name.removesuffix(" by"))
    near = [meant] if meant else get_close_matches(name, WORDS, n=1, cutoff=_VERY_NEAR)
    if near:
        message = f"no relation {' '.join(word.text for word in said)!r} between periods"
        span = Span(said[0].start, said[-1].end + 1)
        relation = near[0].upper()
        hint = f"write {sides[0]} {relation} {sides[1]}" if meant else f"did you mean {relation}?"
        raise ParseError(message, span=span, hint=hint)


def relations_in(node: exp.Expr) -> list[PeriodRelation]:
    """Return the relations of a condition, without those of queries inside it."""
    if isinstance(node, PeriodRelation):
        return [node]
    inner = (child for child in node.iter_expressions() if not isinstance(child, exp.Query))
    return [relation for child in inner for relation in relations_in(child)]


def parts_of(condition: exp.Expr | None) -> list[exp.Expr]:
    """Return the conditions that an AND joins; of a WHERE, those of its condition."""
    if condition is None:
        return []
    if isinstance(condition, exp.Where):
        return parts_of(condition.this)
    inner = condition.unnest()
    if not isinstance(inner, exp.And):
        return [condition]
    return [part for each in inner.flatten() for part in parts_of(each)]


def is_related(part: exp.Expr) -> bool:
    """Whether a condition is a relation, or several with OR, AND and NOT."""
    inner = part.unnest()
    if isinstance(inner, exp.Or | exp.And):
        return all(map(is_related, inner.flatten()))
    return (
        is_related(inner.this) if isinstance(inner, exp.Not) else isinstance(inner, PeriodRelation)
    )


def sides_of_relations(query: exp.Expr) -> list[exp.Expr]:
    """Return the sources on both sides of the relations of a query."""
    sides: dict[int, exp.Expr] = {}
    for relation in query.find_all(PeriodRelation):
        for name in relation.aliases:
            around = relation.find_ancestor(exp.Select)
            side = None
            while around is not None and side is None:
                side = _source_named(around, name)
                around = around.find_ancestor(exp.Select)
            if side is not None:
                sides[id(side)] = side
    return list(sides.values())


def _source_named(select: exp.Select, name: str) -> exp.Expr | None:
    """Return the source of a SELECT that has a name."""
    from_ = select.args.get("from_")
    sources = [] if from_ is None else [from_.this]
    sources += [join.this for join in select.args.get("joins") or ()]
    return next((each for each in sources if each.alias_or_name.lower() == name.lower()), None)
