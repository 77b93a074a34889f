"""A text → a pattern; lark's errors become ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import cast

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from eventide.errors import ParseError, Span
from eventide.lang.xscl.mistakes import mistake_of
from eventide.plan.xml.patterns import Axis, PatternStep, TreePattern, steps_of

Part = Tree[Token]

GRAMMAR = Path(__file__).with_name("grammar.lark")
MOST_STEPS = 100
"""Steps of a pattern; people write some five."""
_NAMELESS = "{}"


@dataclass(frozen=True, slots=True)
class ParsedPattern:
    """A pattern, and where its stream and its variables stand in the text."""

    pattern: TreePattern
    stream: Span
    variables: tuple[Span, ...]


def parse_pattern(text: str) -> ParsedPattern:
    """Return the pattern that a text is.

    >>> parsed = parse_pattern("blog//item->x[.//author->a][title = 'New']")
    >>> str(parsed.pattern)
    "blog//item->x[.//author->a][./title[. = 'New']]"
    >>> parsed.pattern.variables
    ('x', 'a')
    """
    try:
        tree = _parser().parse(text)
        stream, *steps = cast("list[Part]", tree.children)
        (named,) = cast("list[Token]", stream.children)
        root = _chain([_step(each) for each in steps])
    except UnexpectedInput as error:
        raise mistake_of(error, text) from None
    except RecursionError:
        message = "predicates inside each other on too many levels"
        raise ParseError(message, hint=f"a pattern has up to {MOST_STEPS} steps") from None
    if sum(1 for _ in steps_of(root)) > MOST_STEPS:
        message = f"a pattern of more than {MOST_STEPS} steps"
        raise ParseError(message, span=_span(named), hint="ask for less of a document at once")
    variables = [token for token in tree.scan_values(_is_word) if token is not named]
    _refuse_twice(variables)
    places = tuple(map(_span, variables))
    return ParsedPattern(TreePattern(_unquoted(named), root), _span(named), places)


@cache
def _parser() -> Lark:
    grammar = GRAMMAR.read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", propagate_positions=True, maybe_placeholders=True)


def _chain(steps: Sequence[PatternStep]) -> PatternStep:
    """Return steps one below the other: each is behind the predicates of the one before."""
    chain = steps[-1]
    for step in reversed(steps[:-1]):
        chain = replace(step, below=(*step.below, chain))
    return chain


def _step(part: Part) -> PatternStep:
    axis, name, tail = part.children
    kind: Axis = "descendant" if axis == "//" else "child"
    return _with_tail(PatternStep(kind, _name(cast("Token", name))), cast("Part", tail))


def _with_tail(branch: PatternStep, tail: Part) -> PatternStep:
    """Return a step with its variable, and with what its predicates ask of it."""
    variable, *predicates = tail.children
    if variable is not None:
        branch = replace(branch, variable=str(variable))
    for each in cast("list[Part]", predicates):
        branch = _with_predicate(branch, each)
    return branch


def _with_predicate(branch: PatternStep, predicate: Part) -> PatternStep:
    path, text = cast("tuple[Part, Token | None]", predicate.children)
    steps = [_first_or_step(each) for each in cast("list[Part]", path.children)]
    test = None if text is None else _unquoted(text)
    if steps:
        if test is not None:
            steps[-1] = _tested(steps[-1], test, text)
        return replace(branch, below=(*branch.below, _chain(steps)))
    if test is None:
        message = "[.] asks for nothing"
        raise ParseError(message, span=_span_of(predicate), hint="write [. = 'text'], or leave it")
    return _tested(branch, test, text)


def _first_or_step(part: Part) -> PatternStep:
    if part.data != "first":
        return _step(part)
    name, tail = part.children
    return _with_tail(PatternStep("child", _name(cast("Token", name))), cast("Part", tail))


def _tested(branch: PatternStep, test: str, token: Token | None) -> PatternStep:
    if branch.test not in (None, test):
        message = f"a node that is both {branch.test!r} and {test!r}"
        span = None if token is None else _span(token)
        raise ParseError(message, span=span, hint="no document has one; leave one of them out")
    return replace(branch, test=test)


def _refuse_twice(variables: Sequence[Token]) -> None:
    seen: set[str] = set()
    for token in variables:
        if token.lower() in seen:
            message = f"the variable {str(token)!r} is there twice"
            hint = "give each step a variable of its own, and compare them in WHERE"
            raise ParseError(message, span=_span(token), hint=hint)
        seen.add(token.lower())


def _name(token: Token) -> str:
    """Return a name as documents have it: no namespace is not written."""
    return token.replace(_NAMELESS, "")


def _unquoted(token: Token) -> str:
    quote = token[0]
    return token[1:-1].replace(quote * 2, quote) if quote in "'\"`" else str(token)


def _is_word(token: object) -> bool:
    return isinstance(token, Token) and token.type == "WORD"


def _span(token: Token) -> Span:
    assert token.start_pos is not None
    assert token.end_pos is not None
    return Span(token.start_pos, token.end_pos)


def _span_of(part: Part) -> Span:
    return Span(part.meta.start_pos, part.meta.end_pos)
