"""PATTERN ( … ): sqlglot's tokens → the tree of plan/patterns/tree.py."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from eventide.errors import ParseError, Span
from eventide.lang.sql.names.written import Name
from eventide.plan.patterns.program import MOST_INSTRUCTIONS
from eventide.plan.patterns.tree import (
    Absent,
    Alternate,
    Concat,
    Exclude,
    PartitionEnd,
    PartitionStart,
    Pattern,
    Permute,
    Repeat,
    Variable,
    variables_of,
)

_WORD_OR_MARK = re.compile(r"[^\W\d][\w$]*|\d\w*|\S")
_QUANTIFIERS = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_FOLLOWING = ("DEFINE", "WITHIN", "SUBSET", "STRATEGY")
_THEN = re.compile(r"-+>|=>|>>?|&&?|[,./;]")
"""Signs that other languages write between a row and the next."""
_NOT = ("!", "~", "¬")
_TIMES_HINT = "write {2}, {2,}, {2,5} or {,5}"
_COMMENT_HINT = "-- starts a comment: put a space between the braces and their contents, {- A -}"


@dataclass(frozen=True, slots=True)
class PatternText:
    """A parsed pattern, and where its parts stand in the query.

    `names` are its variables as they are first written; `anchors` are the places of `^` and `$`.
    """

    tree: Pattern
    names: tuple[Name, ...]
    anchors: tuple[Span, ...]
    span: Span

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables in the order in which they first occur."""
        return variables_of(self.tree)


@dataclass(frozen=True, slots=True)
class _Mark:
    """A name, a number or one character of a pattern."""

    kind: str
    text: str
    span: Span

    @property
    def is_name(self) -> bool:
        return self.kind in ("name", "quoted")

    def is_word(self, word: str) -> bool:
        return self.kind == "name" and self.text.upper() == word


def read_pattern(tokens: Sequence[Token], text: str, span: Span) -> PatternText:
    """Return the pattern of the tokens between the brackets of PATTERN.

    `text` is the query, and `span` where the brackets stand in it.
    """
    marks = [mark for token in tokens for mark in _marks(token, text)]
    reader = _MarkReader(marks, text, span)
    tree = reader.whole()
    return PatternText(tree, tuple(reader.names), tuple(reader.anchors), span)


def comment_hint(text: str, span: Span) -> str | None:
    """Return the hint for a bracket whose partner may be inside a comment."""
    return _COMMENT_HINT if re.search(r"\{--|--\}", text[span.start :]) else None


def _marks(token: Token, text: str) -> Iterator[_Mark]:
    """Yield the parts of a token: sqlglot may take `||` or `A$` for one token."""
    raw = text[token.start : token.end + 1]
    if token.token_type == TokenType.IDENTIFIER:
        yield _Mark("quoted", token.text, Span(token.start, token.end + 1))
        return
    if token.token_type == TokenType.NUMBER:
        # The value of a parameter is not in the text.
        yield _Mark("number", token.text, Span(token.start, token.end + 1))
        return
    if token.token_type == TokenType.STRING:
        yield _Mark("symbol", raw, Span(token.start, token.end + 1))
        return
    for found in _WORD_OR_MARK.finditer(raw):
        start = token.start + found.start()
        word = found[0].rstrip("$")
        if word and (word[0].isalpha() or word[0] == "_"):
            yield _Mark("name", word, Span(start, start + len(word)))
            start += len(word)
        elif word:
            yield _Mark("symbol", word, Span(start, start + len(word)))
        for place in range(len(found[0]) - len(word)):
            yield _Mark("symbol", "$", Span(start + place, start + place + 1))


@dataclass
class _MarkReader:
    """Reads marks from left to right; each method reads what it is named after."""

    marks: list[_Mark]
    text: str
    span: Span
    place: int = 0
    names: list[Name] = field(default_factory=list)
    anchors: list[Span] = field(default_factory=list)

    def whole(self) -> Pattern:
        """Read all of it."""
        if not self.marks:
            message = "the pattern is empty"
            raise ParseError(
                message,
                span=self.span,
                hint="write PATTERN (A B+ C); no row at all is PATTERN (())",
            )
        tree = self.alternatives()
        if self.place < len(self.marks):
            self.unexpected()
        return tree

    def alternatives(self) -> Pattern:
        options = [self.sequence()]
        while self.takes("|"):
            options.append(self.sequence())
        return options[0] if len(options) == 1 else Alternate(tuple(options))

    def sequence(self) -> Pattern:
        parts: list[Pattern] = []
        while not self.at_end_of_sequence():
            parts.append(self.repeated())
        if not parts:
            self.missing()
        return parts[0] if len(parts) == 1 else Concat(tuple(parts))

    def at_end_of_sequence(self) -> bool:
        return self.place >= len(self.marks) or self.next_is("|", ")", ",") or self.at_closing()

    def at_closing(self) -> bool:
        return self.next_is("-") and self.next_is("}", ahead=1)

    def repeated(self) -> Pattern:
        start = self.marks[self.place].span.start
        part = self.element()
        if not self.at_quantifier():
            return part
        if isinstance(part, Absent) and part.span == Span(start, self.last.end):
            message = f"NOT {part.name} cannot repeat"
            hint = f"NOT {part.name} already means that no row skipped here is {part.name}"
            raise ParseError(message, span=self.marks[self.place].span, hint=hint)
        least, most = self.times()
        greedy = not self.takes("?")
        span = Span(start, self.last.end)
        if self.at_quantifier():
            message = "two quantifiers behind one another"
            hint = "put brackets around the inner one, as in (A+){2}"
            raise ParseError(message, span=self.marks[self.place].span, hint=hint)
        return Repeat(part, least, most, greedy=greedy, span=span)

    def at_quantifier(self) -> bool:
        if self.next_is("{"):
            return not self.next_is("-", ahead=1)
        return self.next_is(*_QUANTIFIERS)

    def times(self) -> tuple[int, int | None]:
        opening = self.take()
        if opening.text != "{":
            return _QUANTIFIERS[opening.text]
        self.refuse_comment(opening)
        least = most = self.count()
        if self.takes(","):
            most = self.count()
        elif least is None:
            self.wrong_times(opening)
        if not self.takes("}"):
            self.wrong_times(opening)
        span = Span(opening.span.start, self.last.end)
        if most == 0:
            message = "a part cannot repeat 0 times"
            hint = "leave it out, or write {,1} for at most once"
            raise ParseError(message, span=span, hint=hint)
        if most is not None and (least or 0) > most:
            message = f"a part cannot repeat at least {least} and at most {most} times"
            raise ParseError(message, span=span, hint=f"write {{{most},{least}}}")
        if max(least or 0, most or 0) > MOST_INSTRUCTIONS:
            message = f"a part cannot repeat more than {MOST_INSTRUCTIONS:,} times by count"
            raise ParseError(message, span=span, hint="write + or *, and count in a condition")
        return least or 0, most

    def count(self) -> int | None:
        if not (self.place < len(self.marks) and self.marks[self.place].kind == "number"):
            return None
        mark = self.take()
        digits = mark.text.replace("_", "")
        if not (digits.isascii() and digits.isdecimal()):
            message = f"{mark.text} is not a number of times"
            raise ParseError(message, span=mark.span, hint=_TIMES_HINT)
        return int(digits) if len(digits) < 20 else MOST_INSTRUCTIONS + 1

    def refuse_comment(self, opening: _Mark) -> None:
        place = Span(opening.span.start, opening.span.end + 2)
        if place.of(self.text) == "{--":
            message = "a comment starts here"
            raise ParseError(message, span=place, hint=_COMMENT_HINT)

    def wrong_times(self, opening: _Mark) -> NoReturn:
        closing = (mark.span.end for mark in self.marks[self.place :] if mark.text == "}")
        end = next(closing, self.last.end)
        message = "this is neither a number of times nor an exclusion"
        raise ParseError(
            message,
            span=Span(opening.span.start, end),
            hint=f"{_TIMES_HINT}; exclude with {{- A -}}",
        )

    def element(self) -> Pattern:
        mark = self.take()
        if mark.is_word("NOT"):
            return self.absent(mark)
        if mark.is_word("PERMUTE") and self.next_is("("):
            return self.permutation()
        if mark.is_name:
            return Variable(self.spelled(mark), mark.span)
        match mark.text:
            case "(":
                return self.group(mark)
            case "{" if self.takes("-"):
                part = self.alternatives()
                if not self.at_closing():
                    self.unclosed(mark, "{-", "-}")
                self.place += 2
                return Exclude(part, Span(mark.span.start, self.last.end))
            case "{":
                self.refuse_comment(mark)
                self.place -= 1
                self.no_part("{")
            case "^" | "$" as anchor:
                self.anchors.append(mark.span)
                return PartitionStart() if anchor == "^" else PartitionEnd()
            case "*" | "+" | "?":
                self.place -= 1
                self.no_part(mark.text)
        self.place -= 1
        return self.unexpected()

    def group(self, opening: _Mark) -> Pattern:
        if self.takes(")"):
            return Concat(())
        inner = self.alternatives()
        if not self.takes(")"):
            self.unclosed(opening, "(", ")")
        return inner

    def permutation(self) -> Pattern:
        opening = self.take()
        parts = [self.alternatives()]
        while self.takes(","):
            parts.append(self.alternatives())
        if not self.takes(")"):
            self.unclosed(opening, "(", ")")
        return Permute(tuple(parts))

    def absent(self, word: _Mark) -> Pattern:
        if self.place < len(self.marks) and self.marks[self.place].is_name:
            mark = self.take()
            return Absent(self.spelled(mark), span=Span(word.span.start, mark.span.end))
        message = "NOT takes one variable"
        hint = "write NOT B; none of several is NOT B NOT C"
        raise ParseError(message, span=word.span, hint=hint)

    def spelled(self, mark: _Mark) -> str:
        """Return a variable as it was spelled where it first occurs.

        Where `"a"` is another variable, `a` is called `A`, as SQL reads it.
        """
        name = Name(mark.text, mark.kind == "quoted", mark.span)
        for each in self.names:
            if each.folded == name.folded:
                return each.text
        if not name.quoted and any(
            each.kind == "quoted" and each.text == name.text for each in self.marks
        ):
            name = replace(name, text=name.folded)
        self.names.append(name)
        return name.text

    @property
    def last(self) -> Span:
        return self.marks[self.place - 1].span

    def take(self) -> _Mark:
        self.place += 1
        return self.marks[self.place - 1]

    def next_is(self, *texts: str, ahead: int = 0) -> bool:
        place = self.place + ahead
        if place >= len(self.marks):
            return False
        return self.marks[place].kind == "symbol" and self.marks[place].text in texts

    def takes(self, text: str) -> bool:
        found = self.next_is(text)
        self.place += found
        return found

    def missing(self) -> NoReturn:
        """Raise the error for an empty alternative, group or exclusion."""
        at_end = self.place >= len(self.marks)
        span = self.last if at_end else self.marks[self.place].span
        message = "an alternative of the pattern is empty"
        if not (self.next_is("|") or (self.place and self.marks[self.place - 1].text == "|")):
            message = "a part of the pattern is missing"
        hint = comment_hint(self.text, self.span) if at_end else None
        raise ParseError(message, span=span, hint=hint or "write () where no row is wanted")

    def no_part(self, quantifier: str) -> NoReturn:
        message = f"{quantifier} has no part before it to repeat"
        hint = "a quantifier stands behind a variable or a group, as in A+ or (A B)*"
        raise ParseError(message, span=self.marks[self.place].span, hint=hint)

    def unclosed(self, opening: _Mark, shown: str, closing: str) -> NoReturn:
        if self.place < len(self.marks) and not self.next_is(")"):
            self.unexpected()
        message = f"{shown} is not closed"
        span = Span(opening.span.start, opening.span.start + len(shown))
        hint = comment_hint(self.text, opening.span) or f"end it with {closing}"
        raise ParseError(message, span=span, hint=hint)

    def unexpected(self) -> NoReturn:
        mark = self.marks[self.place]
        for earlier in self.marks[: self.place]:
            if earlier.kind == "name" and earlier.text.upper() in _FOLLOWING:
                message = f"PATTERN ( is not closed before {earlier.text}"
                raise ParseError(message, span=earlier.span, hint="end it with )")
        message = f"{mark.text!r} cannot stand in a pattern"
        hint = "a pattern has variables, ( ) | * + ? {2,5} ^ $ {- -}, PERMUTE(…) and NOT"
        then = _THEN.match(self.text, mark.span.start)
        if then is not None:
            message = f"{then[0]!r} cannot stand in a pattern"
            hint = "what follows is just written behind it: A B"
            raise ParseError(message, span=Span(*then.span()), hint=hint)
        if mark.text in _NOT:
            following = self.marks[self.place + 1 : self.place + 2]
            name = following[0].text if following and following[0].is_name else "B"
            hint = f"write NOT {name}, with STRATEGY skip_till_next"
        if mark.text in ("}", ")", "-"):
            message = f"{mark.text!r} stands alone in the pattern"
        raise ParseError(message, span=mark.span, hint=hint)
