"""Mark the keywords of TPSTREAM and SITUATIONS, so that the grammar of SQL can read the rest.

Some of them mean something else in SQL: `;` ends a statement, BETWEEN and AT behind a condition
would belong to it, END ends a CASE. Where they are ours, they become tokens that SQL ignores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import Token, TokenType

CLAUSES = ("TPSTREAM", "SITUATIONS")
"""Keywords that may stand behind a table; elsewhere they are plain names."""
PARTS = frozenset(
    (
        *("PARTITION", "DEFINE", "GAP", "DIALECT", "PATTERN", "WITHIN", "DETECT", "CONFIRM"),
        *("LIMIT", "RETURN"),
    )
)
"""The words that the parts of a clause begin with."""
SPOKEN = frozenset((*PARTS, "AND", "OR", "AS", "AT", "BETWEEN", "CROSS"))
"""Words that are names of situations only in quotes."""
MARK = TokenType.BACKSLASH
"""What our tokens become: no rule of SQL begins with it, and it cannot be a name."""

_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
_COMPARISONS = frozenset(
    (
        *(TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE),
        *(TokenType.LIKE, TokenType.ILIKE, TokenType.IN, TokenType.IS, TokenType.BETWEEN),
    )
)
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_PARAMETERS = (TokenType.PLACEHOLDER, TokenType.PARAMETER)
_VALUES = (*_NAMES, *_PARAMETERS, TokenType.NUMBER, TokenType.STRING, TokenType.INTERVAL)
_TEXTS = frozenset(kind for kind in TokenType if f"_{kind.name}".endswith("_STRING"))
"""Tokens that are text in quotes, with any words in them."""
_FUNCTIONS = frozenset(DuckDBParser.NO_PAREN_FUNCTION_PARSERS)
"""The functions that need no brackets."""
_NOTHING = Token(TokenType.SEMICOLON, "")


def readable(tokens: Sequence[Token], *, is_statement: bool) -> list[Token]:
    """Return the tokens of a text with those of our clauses marked, and the FROM of a statement."""
    found = list(tokens)
    end = len(found)
    if is_statement:
        while found[-1].token_type == TokenType.SEMICOLON:
            found.pop()
        end = statement_start(found)
        found[end:] = [_of_kind(found[end], MARK), *_marked(found[end + 1 :])]
    for place, (word, following) in enumerate(pairwise(tokens[:end])):
        if is_clause(word, following):
            start = place + 2
            end = start + _length(found[start:])
            found[start:end] = _marked(found[start:end])
    return found


def is_clause(word: Token, following: Token) -> bool:
    """Whether one of our clauses begins here."""
    opened = following.token_type == TokenType.L_PAREN
    return opened and word.token_type == TokenType.VAR and word.text.upper() in CLAUSES


def is_part(tokens: Sequence[Token], place: int) -> bool:
    """Whether a part of a clause begins at a token, at a place where a name could stand too."""
    word, following = _pair(tokens, place)
    if word.token_type == TokenType.PARTITION_BY:
        return True
    if not names_part(word) or word.token_type != TokenType.VAR:
        return False
    if following.token_type in _VALUES or defines(tokens[place : place + 3]):
        return True
    # Any word may be the name of a situation: no SQL has DEFINE, a word and AS.
    named = following.text.isidentifier() and not names_part(following)
    return named and defines(tokens)


def names_part(word: Token) -> bool:
    """Whether a token is one of the words that begin parts."""
    first = word.text.upper().split()[:1]
    return not is_quoted(word) and not PARTS.isdisjoint(first)


def is_quoted(word: Token) -> bool:
    """Whether a token is a quoted name or a text: neither is a keyword."""
    return word.token_type == TokenType.IDENTIFIER or word.token_type in _TEXTS


def keyword_of(token: Token) -> str:
    """Return a keyword, with one space between two words; an empty text for quoted ones."""
    return "" if is_quoted(token) else " ".join(token.text.upper().split())


def is_spare_comma(tokens: Sequence[Token], place: int) -> bool:
    """Whether a comma stands in front of the next part, or of the end."""
    comma, word = _pair(tokens, place)
    if comma.token_type != TokenType.COMMA:
        return False
    if word.token_type in (TokenType.R_PAREN, TokenType.SEMICOLON, TokenType.PARTITION_BY):
        return True
    _, following = _pair(tokens, place + 1)
    values = (TokenType.NUMBER, TokenType.STRING, TokenType.INTERVAL)
    goes_on = following.text.isidentifier() or following.token_type in values
    return names_part(word) and goes_on and following.token_type != TokenType.ALIAS


def defines(tokens: Sequence[Token]) -> bool:
    """Whether DEFINE, a name and AS stand in a text, outside of brackets."""
    depth = 0
    for place, token in enumerate(tokens[:-2]):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth == 0 and token.token_type == TokenType.VAR and token.text.upper() == "DEFINE":
            name, then = _pair(tokens, place + 1)
            if name.text.isidentifier() and then.token_type == TokenType.ALIAS:
                return True
    return False


def is_statement(tokens: Sequence[Token]) -> bool:
    """Whether a text is a statement of TPStream: FROM, a table, and a part of the clause.

    WITH may stand before it.
    """
    said = tokens[statement_start(tokens) :]
    return bool(said) and is_part(said, place_behind_table(said))


def statement_start(tokens: Sequence[Token]) -> int:
    """Return where FROM stands, if a text begins with it or has only WITH before it."""
    first = tokens[0].token_type if tokens else None
    if first == TokenType.FROM:
        return 0
    depth = 0
    for place, token in enumerate(tokens if first == TokenType.WITH else ()):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth == 0 and token.token_type in (TokenType.FROM, TokenType.SELECT):
            return place if token.token_type == TokenType.FROM else len(tokens)
    return len(tokens)


def place_behind_table(tokens: Sequence[Token]) -> int:
    """Return the place behind FROM cars, FROM cars c or FROM cars AS c."""
    place = 1 + _table_length(tokens[1:])
    for behind in range(place, place + 2):
        if is_part(tokens, behind):
            return behind
        if _pair(tokens, behind)[0].token_type not in (TokenType.ALIAS, *_NAMES):
            return behind
    return place + 2


def _pair(tokens: Sequence[Token], place: int) -> tuple[Token, Token]:
    word, following = (*tokens[place : place + 2], _NOTHING, _NOTHING)[:2]
    return word, following


def _table_length(tokens: Sequence[Token]) -> int:
    if tokens and tokens[0].token_type == TokenType.L_PAREN:
        return 2 + _length(tokens[1:])
    place = 1
    while place < len(tokens) and tokens[place].token_type == TokenType.DOT:
        place += 2
    return place


def _length(tokens: Iterable[Token]) -> int:
    """Return how many tokens stand before the bracket that closes those around them."""
    depth, count = 1, 0
    for token in tokens:
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if not depth:
            break
        count += 1
    return count


def _marked(tokens: list[Token]) -> list[Token]:
    tokens = _named(tokens)
    ours = set(_durations(tokens))
    marked = []
    for place, token in enumerate(tokens):
        following = tokens[place + 1].token_type if place + 1 < len(tokens) else None
        kind = token.token_type
        if place in ours or kind == TokenType.SEMICOLON:
            kind = MARK
        elif kind == TokenType.END and following == TokenType.L_PAREN:
            kind = TokenType.VAR
        marked.append(_of_kind(token, kind))
    return marked


def _named(tokens: list[Token]) -> list[Token]:
    """Turn keywords of SQL into names where situations have them: DEFINE all AS …, max(all.x)."""
    around = list(zip([_NOTHING, *tokens], tokens, [*tokens[1:], _NOTHING], strict=False))
    names: dict[str, str] = {}
    kinds: dict[int, TokenType] = {}
    for place, (before, word, following) in enumerate(around):
        opened = before.token_type == TokenType.COMMA or before.text.upper() == "DEFINE"
        named = word.text.isidentifier() and word.text.upper() not in SPOKEN
        # A text is not a name: 'v' AS z is a constant.
        named = named and word.token_type not in _TEXTS
        if opened and named and following.token_type == TokenType.ALIAS:
            names.setdefault(word.text.lower(), word.text)
            kinds[place] = TokenType.VAR
    part = ""
    for place, (before, word, following) in enumerate(around):
        if word.token_type in _TEXTS:
            continue
        if names_part(word) and before.token_type != TokenType.ALIAS:
            part = word.text.upper()
        ends = (before.token_type, following.token_type)
        of_match = ends == (TokenType.L_PAREN, TokenType.R_PAREN) or ends[1] == TokenType.DOT
        if word.text.lower() in names and part == "PATTERN":
            kinds[place] = TokenType.VAR
        elif word.text.lower() in names and part == "RETURN" and of_match:
            # In expressions of SQL, words such as CASE are names only in quotes.
            kinds[place] = TokenType.IDENTIFIER
    found = list(tokens)
    for place, kind in kinds.items():
        token = tokens[place]
        plain = token.token_type == TokenType.VAR and token.text.upper() not in _FUNCTIONS
        if not plain and token.token_type != TokenType.IDENTIFIER:
            spelled = names[token.text.lower()] if kind == TokenType.IDENTIFIER else None
            found[place] = _of_kind(token, kind, spelled)
    return found


def _of_kind(token: Token, kind: TokenType, text: str | None = None) -> Token:
    if kind == token.token_type:
        return token
    said = token.text if text is None else text
    return Token(kind, said, token.line, token.col, token.start, token.end, token.comments)


def _durations(tokens: list[Token]) -> Iterator[int]:
    """Yield where a duration begins: AT LEAST, AT MOST, or a BETWEEN with lengths of time."""
    opened: list[TokenType] = []
    compared, pending = False, False
    for place, token in enumerate(tokens):
        kind = token.token_type
        following = tokens[place + 1] if place + 1 < len(tokens) else _NOTHING
        function = kind == TokenType.END and following.token_type == TokenType.L_PAREN
        if kind in _OPENING:
            opened.append(kind)
        elif kind == TokenType.END:
            # Without a CASE it is a column.
            if not function and TokenType.CASE in opened[-1:]:
                opened.pop()
        elif kind in _CLOSING and opened:
            opened.pop()
        if opened:
            continue
        if token.text.upper() == "AT" and following.text.upper() in ("LEAST", "MOST"):
            yield place
        elif kind == TokenType.BETWEEN and (compared or _has_units(tokens, place + 1)):
            yield place
            pending = True
        elif kind == TokenType.AND and pending:
            pending = False
        elif kind in (TokenType.AND, TokenType.OR, TokenType.COMMA, TokenType.ALIAS):
            compared = False
        elif kind in _COMPARISONS:
            compared, pending = True, kind == TokenType.BETWEEN


def _has_units(tokens: list[Token], place: int) -> bool:
    """Whether the bounds behind a BETWEEN are lengths of time: 4 s AND 30 s."""
    bounds = tokens[place : place + 12]
    ends = [at for at, token in enumerate(bounds) if token.token_type == TokenType.AND]
    return any(_has_unit(bounds[at:]) for at in (0, *(end + 1 for end in ends[:1])))


def _has_unit(tokens: list[Token]) -> bool:
    if len(tokens) < 2 or tokens[0].token_type != TokenType.NUMBER:
        return False
    return tokens[1].token_type == TokenType.VAR and tokens[1].text.upper() not in {*PARTS, "AT"}
