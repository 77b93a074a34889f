"""The terminal output of the demo: a line a step, with its time, once it is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from eventide.sinks.progress import Advance, counting, silently

WIDTH = 78
"""The column at which the seconds end."""


class DemoStep:
    """A step in progress: it moves a bar, and has a sentence for its end."""

    def __init__(self, advance: Advance) -> None:
        self.advance = advance
        self.reached = 0
        self.sentence = ""
        self.started = perf_counter()

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return perf_counter() - self.started

    def reach(self, count: int) -> None:
        """Move the bar on to a count; it never goes back."""
        if count > self.reached:
            self.advance(count - self.reached)
            self.reached = count

    def say(self, sentence: str) -> None:
        """Set the sentence that the terminal shows when the step is done."""
        self.sentence = sentence


@dataclass(frozen=True, slots=True)
class Teller:
    """Prints the demo on a terminal."""

    console: Console

    @contextmanager
    def step(self, doing: str, events: int | None = None) -> Iterator[DemoStep]:
        """Show the step in progress, with a bar if it counts events; at the end print its line."""
        if events is None:
            with self.console.status(f"{doing} …"):
                step = DemoStep(silently)
                yield step
        else:
            with counting(self.console, doing, events) as advance:
                step = DemoStep(advance)
                yield step
        self.done(step.sentence, step.seconds)

    def done(self, sentence: str, seconds: float) -> None:
        """Print the line of a step."""
        time = f"{seconds:.1f} s"
        room = max(2, WIDTH - 2 - len(sentence) - len(time))
        line = Text("✓ ", "green").append(sentence, "default").append(" " * room + time, "dim")
        self.console.print(line, soft_wrap=True)

    def note(self, sentence: str) -> None:
        """Print something that is not a step."""
        self.console.print(Text("– ", "yellow").append(sentence, "default"), soft_wrap=True)

    def table(self, columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
        """Print rows under a step, all but the first column to the right."""
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2))
        for index, name in enumerate(columns):
            table.add_column(name, justify="right" if index else "left", no_wrap=True)
        for row in rows:
            table.add_row(*row)
        self.console.print(Padding(table, (1, 0, 1, 2), expand=False))
