"""Parts of the nodes about situations and periods."""

from __future__ import annotations

from dataclasses import dataclass

from eventide.plan.expressions import Expression
from eventide.plan.render import render
from eventide.plan.times import format_duration
from eventide.schema import DataType


@dataclass(frozen=True, slots=True)
class Situation:
    """A condition that holds for a while, and its duration: at least, at most."""

    name: str
    condition: Expression
    least_us: int = 0
    most_us: int | None = None

    @property
    def type(self) -> DataType:
        """The type of the condition."""
        return self.condition.type

    @property
    def text(self) -> str:
        """Its name, condition and duration as text."""
        text = f"{self.name} AS {render(self.condition)}"
        if self.most_us is None:
            return (
                f"{text} for at least {format_duration(self.least_us)}" if self.least_us else text
            )
        most = format_duration(self.most_us)
        least = f"{format_duration(self.least_us)} to" if self.least_us else "at most"
        return f"{text} for {least} {most}"


@dataclass(frozen=True, slots=True)
class Constraint:
    """The relations, as a mask of allen.py, that situation `first` may have to `second`.

    Both are places in the pattern's situations, and `first` is the smaller one.
    """

    first: int
    second: int
    mask: int


@dataclass(frozen=True, slots=True)
class RowPeriod:
    """The columns with the start and the end of a row's period, and the row's name in the query."""

    name: str
    start: str
    end: str
