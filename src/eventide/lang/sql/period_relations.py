"""`a OVERLAPS b` in ON: a relation of Allen between the periods of two rows.

SQL has no such words but OVERLAPS, and that one stands between pairs of times. So a relation is
read only where a condition of JOIN has a name, one of the words, and another name.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import ClassVar, cast

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from eventide.errors import ParseError, Span
from eventide.lang.sql.situation_clause import SituationParser
from eventide.lang.sql.situation_pattern import MEANT
from eventide.lang.sql.spans import span_of
from eventide.plan.allen import NAMES, relation_named
from eventide.plan.nodes import END_TS, START_TS

_VERY_NEAR = 0.75


class PeriodRelation(exp.Expression, exp.Func):
    """A relation between two aliases; `expressions` are the four bounds it is about.

    To sqlglot it is a function, which every dialect can write, in errors and names of columns.
    """

    _sql_names: ClassVar[list[str]] = ["PERIOD_RELATION"]
    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}
    is_var_len_args: ClassVar[bool] = True

    @property
    def relation(self) -> int:
        """The relation, as a bit of `plan.allen`."""
        return cast("int", self.args["relation"])

    @property
    def aliases(self) -> tuple[str, str]:
        """The names on both sides."""
        first, _, second, _ = self.expressions
        return str(first.table), str(second.table)


class RelationParser(SituationParser):
    """The grammar with relations between periods in the ON of a JOIN."""

    def reset(self) -> None:
        """Forget the last text."""
        super().reset()
        self._conditions: list[TokenType] = []

    def _parse_disjunction(self) -> exp.Expr | None:
        word = self._prev.token_type if self._prev else None
        if word not in (TokenType.ON, TokenType.WHERE):
            return super()._parse_disjunction()
        self._conditions.append(word)
        try:
            return super()._parse_disjunction()
        finally:
            self._conditions.pop()

    def _parse_range(self, this: exp.Expr | None = None, parse_is: bool = False) -> exp.Expr | None:
        if this is None and self._conditions:
            first = self._index
            relation = self._period_relation()
            if relation is not None and self._conditions[-1] == TokenType.WHERE:
                said = " ".join(token.text for token in self._tokens[first : self._index])
                message = f"{said} stands in WHERE"
                hint = f"relations of periods stand in ON: FROM … JOIN … ON {said}"
                raise ParseError(message, span=span_of(relation), hint=hint)
            if relation is not None:
                return relation
        return super()._parse_range(this, parse_is)

    def _period_relation(self) -> PeriodRelation | None:
        """Read `a overlaps b`, `a met by b` or `a met-by b`, if that is what stands here."""
        ahead = self._tokens[self._index : self._index + 6]
        found = (self._relation_ahead(ahead, words) for words in (3, 2, 1))
        return next((each for each in found if each is not None), None)

    def _relation_ahead(self, ahead: list[Token], words: int) -> PeriodRelation | None:
        """Read a relation of so many words; a dash is one of three."""
        if len(ahead) < words + 2:
            return None
        first, *said, second = ahead[: words + 2]
        if words == 3 and said.pop(1).token_type != TokenType.DASH:
            return None
        if not (self._names(first) and self._names(second)):
            return None
        if any(word.token_type == TokenType.IDENTIFIER for word in said):
            return None
        name = " ".join(word.text.lower().replace("_", " ") for word in said)
        relation = relation_named(name)
        if relation is None:
            by = [word.text.lower() for word in said[1:]]
            if said[0].token_type == TokenType.VAR and by in ([], ["by"]):
                _suggest(name, said, (first.text, second.text))
            return None
        following = ahead[words + 2] if len(ahead) > words + 2 else None
        if following is not None and following.token_type in (TokenType.DOT, TokenType.L_PAREN):
            return None
        self._advance(words + 2)
        bounds = [_bound(token, bound) for token in (first, second) for bound in (START_TS, END_TS)]
        node = PeriodRelation(expressions=bounds, relation=relation)
        node.meta.update(start=first.start, end=second.end)
        return node

    def _names(self, token: Token) -> bool:
        return token.token_type in (TokenType.VAR, TokenType.IDENTIFIER) or (
            token.token_type in self.TABLE_ALIAS_TOKENS
        )


def _bound(token: Token, name: str) -> exp.Column:
    quoted = token.token_type == TokenType.IDENTIFIER
    table = exp.to_identifier(token.text, quoted=quoted)
    table.meta.update(start=token.start, end=token.end)
    return exp.Column(this=exp.to_identifier(name), table=table)


def _suggest(name: str, said: list[Token], sides: tuple[str, str]) -> None:
    """Refuse a word that is nearly a relation: no SQL has three names in a row in ON."""
    meant = MEANT.get(name.removesuffix(" by"))
    near = [meant] if meant else get_close_matches(name, NAMES, n=1, cutoff=_VERY_NEAR)
    if near:
        message = f"no relation {' '.join(word.text for word in said)!r} between periods"
        span = Span(said[0].start, said[-1].end + 1)
        relation = near[0].upper()
        hint = f"write {sides[0]} {relation} {sides[1]}" if meant else f"did you mean {relation}?"
        raise ParseError(message, span=span, hint=hint)


def sides_of_relations(query: exp.Expr) -> list[exp.Expr]:
    """Return what stands on the sides of the joins by relation of a query."""
    sides: list[exp.Expr] = []
    for select in query.find_all(exp.Select):
        joins = [
            join
            for join in select.args.get("joins") or ()
            if (on := join.args.get("on")) is not None and on.find(PeriodRelation)
        ]
        if joins and select.args.get("from_") is not None:
            sides += [select.args["from_"].this, *(join.this for join in joins)]
    return sides
