"""PATTERN of a TPSTREAM: tokens → relations between situations, as they are written.

    pattern      conjunction [CROSS]
    conjunction  alternatives {AND alternatives}
    alternatives term {(; | OR) term}
    term         ( conjunction ) | situation {relation {(; | OR) relation} situation}

Unlike in SQL, OR binds closer than AND: `a meets b; a overlaps b AND b before c` has two parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from eventide.errors import ParseError, Span
from eventide.lang.sql.names.written import Name
from eventide.lang.sql.situations.hints import spare_comma
from eventide.lang.sql.situations.tokens import MARK, PARTS, is_spare_comma
from eventide.lang.sql.spans import union
from eventide.plan.bind import suggestion
from eventide.plan.situations.allen import NAMES, WORDS

_TWO_WORDS = frozenset(name.removesuffix(" by") for name in NAMES if name.endswith(" by"))
MEANT = {
    "preceded": "follows",
    "followed": "precedes",
    "succeeds": "follows",
    "then": "precedes",
    "equal": "equals",
    "is": "equals",
    "inside": "during",
    "includes": "contains",
    "while": "intersects",
    "ends": "finishes",
}
"""Other names for relations."""
_JOIN_HINT = "constraints are joined with AND, alternatives of one pair with ; or OR"
_ROWS_HINT = (
    "between two situations stands a relation, such as before, meets, overlaps or during; "
    "rows one after the other are a MATCH_RECOGNIZE"
)
_NOT_HINT = (
    "write the relations that may hold, as in a before; overlaps b; that there is no such b is "
    "asked of rows: FROM … SITUATIONS (…) a WHERE NOT EXISTS (SELECT … WHERE a MEETS b)"
)
_FIRST_HINT = "write PATTERN a overlaps b, or a situation alone"


@dataclass(frozen=True, slots=True)
class TextRelation:
    """`a overlaps b`; the name in lower case, its words parted by one space."""

    first: Name
    name: str
    second: Name

    @property
    def span(self) -> Span:
        """Where it stands."""
        return Span(self.first.span.start, self.second.span.end)

    def __str__(self) -> str:
        return f"{self.first.text} {self.name} {self.second.text}"


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Relations of which one has to hold."""

    relations: tuple[TextRelation, ...]

    @property
    def span(self) -> Span:
        """Where they stand."""
        found = union(each.span for each in self.relations)
        assert found is not None
        return found

    def __str__(self) -> str:
        return " or ".join(map(str, self.relations))


@dataclass(frozen=True, slots=True)
class RelationsText:
    """A parsed pattern: all its constraints have to hold; `alone` are names without one."""

    constraints: tuple[Alternatives, ...]
    alone: tuple[Name, ...]
    cross: bool
    span: Span

    @property
    def names(self) -> tuple[Name, ...]:
        """Every name in it, as often as it occurs."""
        related = (each for item in self.constraints for each in item.relations)
        return (*self.alone, *(name for each in related for name in (each.first, each.second)))


def read_relations(tokens: Sequence[Token], start: int) -> tuple[RelationsText, int]:
    """Return the pattern that begins at a token behind PATTERN, and where it ends."""
    reader = _TokenReader(tokens, start)
    part = reader.conjunction()
    cross = reader.takes(TokenType.CROSS)
    last = tokens[reader.place - 1]
    span = Span(tokens[start].start, last.end + 1)
    text = RelationsText(tuple(part.constraints), tuple(part.alone), cross, span)
    return text, reader.place


@dataclass
class _Part:
    """The constraints of a part of a pattern."""

    span: Span
    constraints: list[Alternatives] = field(default_factory=list)
    alone: list[Name] = field(default_factory=list)


@dataclass
class _TokenReader:
    """Reads tokens from left to right; each method reads what it is named after."""

    tokens: Sequence[Token]
    place: int

    @property
    def current(self) -> Token | None:
        return self.tokens[self.place] if self.place < len(self.tokens) else None

    @property
    def before(self) -> Token:
        return self.tokens[self.place - 1]

    def takes(self, kind: TokenType) -> bool:
        if self.current is None or self.current.token_type != kind:
            return False
        self.place += 1
        return True

    def conjunction(self) -> _Part:
        whole = self.alternatives()
        while self.takes(TokenType.AND):
            part = self.alternatives()
            whole.constraints += part.constraints
            whole.alone += part.alone
            whole.span = Span(whole.span.start, part.span.end)
        return whole

    def alternatives(self) -> _Part:
        terms = [self.term()]
        while self.takes(MARK) or self.takes(TokenType.OR):
            terms.append(self.term())
        if len(terms) == 1:
            return terms[0]
        relations: list[TextRelation] = []
        for term in terms:
            relations += self.one_constraint(term).relations
        span = Span(terms[0].span.start, terms[-1].span.end)
        return _Part(span, [Alternatives(tuple(relations))])

    @staticmethod
    def one_constraint(term: _Part) -> Alternatives:
        if term.alone:
            name = term.alone[0]
            message = f"{name.text} alone is no alternative"
            hint = f"say how it stands to the other one, as in {name.text} before …"
            raise ParseError(message, span=name.span, hint=hint)
        if len(term.constraints) > 1:
            message = "an alternative is one relation, here are several"
            hint = "; and OR part relations of one pair: write the others behind AND"
            raise ParseError(message, span=term.span, hint=hint)
        return term.constraints[0]

    def term(self) -> _Part:
        opening = self.current
        if opening is None or not self.takes(TokenType.L_PAREN):
            return self.chain()
        part = self.conjunction()
        if not self.takes(TokenType.R_PAREN):
            if self.current is not None and not _ends(self.current):
                self.fail(f"cannot read PATTERN near {self.current.text!r}", _JOIN_HINT)
            self.fail("a ( of PATTERN is not closed", "end it with )", opening)
        return part

    def chain(self) -> _Part:
        first = self.situation(_FIRST_HINT)
        part = _Part(first.span)
        while not _ends(self.current):
            names = self.relations(first)
            second = self.situation(f"write {first.text} {names[-1]} and the other situation")
            either = tuple(TextRelation(first, name, second) for name in names)
            part.constraints.append(Alternatives(either))
            part.span = Span(part.span.start, second.span.end)
            first = second
        if not part.constraints:
            part.alone.append(first)
        return part

    def relations(self, first: Name) -> list[str]:
        """Read `meets`, or alternatives such as `meets; overlaps`."""
        names = [self.relation(first)]
        while self.current is not None and self.current.token_type in (MARK, TokenType.OR):
            following = self.tokens[self.place + 1] if self.place + 1 < len(self.tokens) else None
            if following is None or not _relates(following):
                break
            self.place += 1
            names.append(self.relation(first))
        return names

    def situation(self, hint: str) -> Name:
        token = self.current
        self.refuse_not()
        quoted = token is not None and token.token_type == TokenType.IDENTIFIER
        if token is None or not (quoted or _is_word(token)):
            if self.before.token_type in (MARK, TokenType.AND, TokenType.OR):
                hint = "leave it out, or write a relation behind it"
            self.fail(f"a situation is missing behind {self.before.text}", hint, self.before)
        self.place += 1
        return Name(token.text, quoted, Span(token.start, token.end + 1))

    def relation(self, first: Name) -> str:
        token = self.current
        assert token is not None
        self.refuse_not()
        if is_spare_comma(self.tokens, self.place):
            raise spare_comma(Span(token.start, token.end + 1), self.tokens[self.place + 1])
        if not _is_word(token):
            hint = _ROWS_HINT if token.text in "*+?{|" else _JOIN_HINT
            self.fail(f"cannot read PATTERN near {token.text!r}", hint)
        self.place += 1
        name = token.text.lower().replace("_", " ")
        if name in _TWO_WORDS:
            self.takes(TokenType.DASH)
            if self.current is None or self.current.text.lower() != "by":
                self.fail(f"{token.text} is half a relation", f"write {name} by", token)
            self.place += 1
            return f"{name} by"
        if name not in WORDS:
            related = self.current is not None and _is_word(self.current)
            hint = suggestion(name, list(WORDS), "relation") if related else _ROWS_HINT
            if name.removesuffix(" by") in MEANT:
                hint = f"write {first.text} {MEANT[name.removesuffix(' by')]} …"
            self.fail(f"no relation {token.text!r}", hint, token)
        return name

    def refuse_not(self) -> None:
        if self.current is not None and self.current.token_type == TokenType.NOT:
            self.fail("NOT stands in PATTERN", _NOT_HINT)

    def fail(self, message: str, hint: str, token: Token | None = None) -> NoReturn:
        place = token or self.current or self.before
        raise ParseError(message, span=Span(place.start, place.end + 1), hint=hint)


def _is_word(token: Token) -> bool:
    return token.text.isidentifier() and not _ends(token)


def _relates(token: Token) -> bool:
    """Whether a token is a relation, or the first word of one."""
    name = token.text.lower().replace("_", " ")
    return _is_word(token) and (name in WORDS or name in _TWO_WORDS)


def _ends(token: Token | None) -> bool:
    """Whether a chain of relations is over."""
    if token is None or token.token_type in (
        *(MARK, TokenType.OR, TokenType.AND, TokenType.R_PAREN, TokenType.CROSS),
        *(TokenType.PARTITION_BY, TokenType.ORDER_BY),
    ):
        return True
    return token.token_type != TokenType.IDENTIFIER and token.text.upper() in PARTS
