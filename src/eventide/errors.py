"""Every error Eventide raises: one class a stage, each saying what, where and what would work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a query's text, `text[start:end]`.

    >>> Span(7, 10).of("SELECT car FROM cars")
    'car'
    """

    start: int
    end: int

    def of(self, text: str) -> str:
        """Return the part of `text` that this span covers."""
        return text[self.start : self.end]


class EventideError(Exception):
    """The root of all errors of this package.

    `span` is the place in the query text, `text` that text, and `hint` says what would work.
    `str(error)` is the paragraph a person reads.
    """

    def __init__(self, message: str, *, span: Span | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.hint = hint
        self.text: str | None = None

    def located_in(self, text: str) -> Self:
        """Remember the text that `span` points into; the innermost text wins."""
        if self.text is None:
            self.text = text
        return self

    def __str__(self) -> str:
        lines = [self.message]
        if self.text is not None and self.span is not None:
            lines += point_at(self.text, self.span)
        if self.hint is not None:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class SchemaError(EventideError, ValueError):
    """A schema is wrong, or rows do not fit one."""


class IngestError(EventideError, ValueError):
    """Events cannot be read from a file, a frame or a list."""


class StoreError(EventideError, OSError):
    """A database folder cannot be read or written as asked."""


class BusyError(StoreError):
    """Another writer holds a stream's lock: nothing was changed, and trying again may work."""


class SinkError(EventideError, OSError):
    """A sink could not take rows. `try_again` says whether the same rows may work later."""

    def __init__(self, message: str, *, hint: str | None = None, try_again: bool = True) -> None:
        super().__init__(message, hint=hint)
        self.try_again = try_again


class ParseError(EventideError, ValueError):
    """A query text does not follow the grammar."""


class BindError(EventideError, ValueError):
    """A query names something that does not exist, or uses it with the wrong type."""


class PlanError(EventideError, ValueError):
    """A plan is malformed. Seeing one of these from a query text is a defect of Eventide."""


class UnsupportedError(EventideError, NotImplementedError):
    """A query that is valid, but that this engine cannot run."""


class EvaluationError(EventideError, ArithmeticError):
    """A value at run time has no answer: an overflow, a failed cast."""


class StateError(EventideError, ValueError):
    """A dumped state cannot be loaded: wrong version, wrong operator, or damaged."""


class StateVersionError(StateError):
    """A dumped state is of another release of Eventide, which wrote another format."""


class StateLimitError(EventideError, MemoryError):
    """A live query needs more memory than it may have; the text names what uses it."""


class RuleError(EventideError, ValueError):
    """A detection rule, or a mapping for rules, cannot be read or has no query.

    `file`, `rule` and `where`, a place in the rule, are known as far as the error has come.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        file: str = "",
        rule: str = "",
        where: str = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.file, self.rule, self.where = file, rule, where

    def inside(self, *, file: str = "", rule: str = "", where: str = "") -> Self:
        """Remember where it happened; what is known already stays."""
        self.file, self.rule = self.file or file, self.rule or rule
        self.where = self.where or where
        return self

    def __str__(self) -> str:
        places = [each for each in (self.file, self.rule, self.where) if each]
        return ": ".join([*places, super().__str__()])


class UnboundedStateWarning(UserWarning):
    """A live query may need more and more memory; the text names the cure."""


class pointing_into:  # noqa: N801 - read as a word of a with statement
    """Give errors that are raised inside the query text that their spans point into."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __enter__(self) -> None:
        """Begin: every step of a live query does, so this is no generator."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Tell the error, if there is one."""
        if isinstance(error, EventideError):
            error.located_in(self.text)


def point_at(text: str, span: Span) -> list[str]:
    r"""Return the line of `text` that `span` starts in, and a line of carets under it.

    >>> for line in point_at("SELECT sped\nFROM cars", Span(7, 11)):
    ...     print(line)
      SELECT sped
             ^^^^
    """
    start = min(span.start, len(text))
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    line = text[line_start:line_end]
    width = max(1, min(span.end, line_end) - start)
    # Tabs are kept in the margin so that the carets stand under the place in any terminal.
    margin = "".join("\t" if char == "\t" else " " for char in text[line_start:start])
    return [f"  {line}", f"  {margin}{'^' * width}"]


def listed(names: list[str] | tuple[str, ...], limit: int = 12) -> str:
    """Join names for a hint, cutting long lists short.

    >>> listed(["car", "speed"])
    'car, speed'
    """
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown}, … ({len(names)} in all)"
